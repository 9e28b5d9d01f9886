package report

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// nameBytesMax is what the name of an object may have.
const nameBytesMax = 253

// objectName returns a valid name that begins with readable as far as that is
// valid and short enough, and that differs for every two pairs of arguments. With
// distinct "" and nothing to change it is readable itself.
func objectName(readable, distinct string) string {
	clean := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '-', r == '.':
			return r
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		}
		return '-'
	}, readable)
	if distinct == "" && clean == readable && len(clean) <= nameBytesMax {
		return clean
	}
	sum := sha256.Sum256([]byte(readable + "\x00" + distinct))
	suffix := "." + hex.EncodeToString(sum[:8])
	clean = clean[:min(len(clean), nameBytesMax-len(suffix))]
	return strings.Trim(clean, "-.") + suffix
}
