package http1

import (
	"encoding/binary"
	"math/bits"
)

// Character classes.
const (
	classToken      = 1 << iota // RFC 9110, 5.6.2
	classUnderscore             // '_', besides classToken
	classPath                   // stands for itself in a path: visible, none of % # ? / and of classEscape
	classTarget                 // visible, but '#'
	classHost                   // reg-name without escapes and capitals (RFC 3986, 3.2.2)
	classUnreserved             // RFC 3986, 2.3
	classBase64                 // without the padding
	classEscape                 // visible, but may stand in a URI only escaped (RFC 3986, 2)
)

var classes = makeClasses()

func makeClasses() (list [256]uint8) {
	set := func(class uint8, chars string) {
		for i := range len(chars) {
			list[chars[i]] |= class
		}
	}
	const (
		digits = "0123456789"
		lower  = "abcdefghijklmnopqrstuvwxyz"
		upper  = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	)
	set(classToken, digits+lower+upper+"!#$%&'*+-.^_`|~")
	set(classUnderscore, "_")
	set(classHost, digits+lower+"-._~!$&'()*+,;=")
	set(classUnreserved, digits+lower+upper+"-._~")
	set(classBase64, digits+lower+upper+"+/")
	for c := 0x21; c <= 0x7E; c++ {
		switch c {
		case '#':
		case '%', '?', '/':
			list[c] |= classTarget
		case '"', '<', '>', '\\', '^', '`', '{', '|', '}':
			list[c] |= classTarget | classEscape
		default:
			list[c] |= classTarget | classPath
		}
	}
	return list
}

// scanText returns the index of the first control character in b at or after
// i, tabs excepted, or len(b). Such is what ends a field value, well or badly.
func scanText(b []byte, i int) int {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	// Eight bytes at a time: the lowest bit that is set belongs to the first byte
	// under 0x20 or equal to 0x7F.
	for i+8 <= len(b) {
		x := binary.LittleEndian.Uint64(b[i:])
		del := x ^ 0x7F*ones
		hit := ((x-0x20*ones)&^x | (del-ones)&^del) & tops
		if hit == 0 {
			i += 8
			continue
		}
		if i += bits.TrailingZeros64(hit) / 8; b[i] != '\t' {
			return i
		}
		i++
	}
	for i < len(b) && (b[i] >= 0x20 && b[i] != 0x7F || b[i] == '\t') {
		i++
	}
	return i
}

// scanField scans the field line at p, which is inside b, and describes it in f,
// but for what its name means. next is the index after its CRLF. The line is
// incomplete if b ends before that.
func scanField(b []byte, p, lineBytes int, f *Field) (next int, ref refusal) {
	i, class := p, uint8(0)
	for ; i < len(b); i++ {
		c := classes[b[i]]
		if c&classToken == 0 {
			break
		}
		class |= c
	}
	if i == len(b) {
		return 0, incomplete
	}
	if b[i] != ':' || i == p {
		return 0, refuseName(b, p, i, lineBytes)
	}
	if i-p > nameBytes {
		return 0, refLineBytes
	}
	f.name, f.nameLen = uint32(p), uint16(i-p)
	f.flags = class & classUnderscore
	for i++; i < len(b) && (b[i] == ' ' || b[i] == '\t'); i++ {
	}
	value := i
	i = scanText(b, i)
	switch {
	case i == len(b):
		return 0, incomplete
	case i-p > lineBytes:
		return 0, refLineBytes
	case b[i] == '\n':
		return 0, refBareLF
	case b[i] != '\r':
		return 0, refControl
	case i+1 == len(b):
		return 0, incomplete
	case b[i+1] != '\n':
		return 0, refBareCR
	}
	next = i + 2
	for i > value && (b[i-1] == ' ' || b[i-1] == '\t') {
		i--
	}
	f.value, f.valueLen = uint32(value), uint32(i-value)
	return next, ok
}

// refuseName says what is wrong with the field name at p, which ends at i with
// something else than a colon, or is empty.
func refuseName(b []byte, p, i, lineBytes int) refusal {
	if i-p > lineBytes {
		return refLineBytes
	}
	switch c := b[i]; {
	case c == '\n':
		return refBareLF
	case c == '\r':
		return refNoColon
	case i == p && c == ':':
		return refEmptyName
	case c == ' ' || c == '\t':
		if i == p {
			return refObsFold
		}
		return refSpaceColon
	}
	return refBadName
}

// equalFold reports whether b is lower, which is in lower case, in any case.
func equalFold(b []byte, lower string) bool {
	if len(b) != len(lower) {
		return false
	}
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			c |= 0x20
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}

// trimSpace returns b without the white space around it.
func trimSpace(b []byte) []byte {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\t') {
		b = b[1:]
	}
	for len(b) > 0 && (b[len(b)-1] == ' ' || b[len(b)-1] == '\t') {
		b = b[:len(b)-1]
	}
	return b
}

// isToken reports whether b is a token.
func isToken(b []byte) bool {
	for _, c := range b {
		if classes[c]&classToken == 0 {
			return false
		}
	}
	return len(b) > 0
}
