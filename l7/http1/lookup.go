package http1

import (
	"fmt"
	"strings"
)

// ofOneHop is the set of the fields that end at every hop (RFC 9110, 7.6.1).
const ofOneHop = 1<<FieldConnection | 1<<FieldHTTP2Settings | 1<<FieldKeepAlive | 1<<FieldProxy |
	1<<FieldProxyConnection | 1<<FieldTE | 1<<FieldTrailer | 1<<FieldTransferEncoding | 1<<FieldUpgrade

// lowerNames are fieldNames in lower case.
var lowerNames = func() (list [fieldIDs]string) {
	for id, name := range fieldNames {
		list[id] = strings.ToLower(name)
	}
	return list
}()

// lookupTable holds each FieldID at the hash of its name. There are no
// collisions.
var lookupTable = func() (list [256]FieldID) {
	for id := FieldNone + 1; id < fieldIDs; id++ {
		slot := &list[lookupHash([]byte(fieldNames[id]))]
		if *slot != FieldNone {
			panic(fmt.Sprintf("http1: %s and %s have one hash: change the factor", *slot, id))
		}
		*slot = id
	}
	return list
}()

// lookupHash mixes the length, the first and the last two letters of name, which
// has at least two. The factor was found by trying until none of the known
// names met another.
func lookupHash(name []byte) uint8 {
	n := len(name)
	key := uint32(name[0]) | uint32(name[n-1])<<8 | uint32(name[n-2])<<16 | 0x202020
	return uint8((key + uint32(n)<<24) * 0xfbb230bb >> 24)
}

// lookup returns which known field a name means, in any spelling. name is a
// token.
func lookup(name []byte) FieldID {
	if len(name) < 2 {
		return FieldNone
	}
	id := lookupTable[lookupHash(name)]
	// Nearly always it is spelled as usual, or in lower case.
	if string(name) == fieldNames[id] || equalFold(name, lowerNames[id]) {
		return id
	}
	return FieldNone
}
