package l7

import "github.com/weirproxy/weir/l7/http1"

// nameHops is the field that counts how many Weirs a request has passed. An endpoint
// may be Weir itself, on this node or another, because somebody wrote an address into
// a slice or because a load balancer leads back: without a bound one request would
// go round until no connection is left. Via (RFC 9110, 7.6.3) could tell it too, but
// makes many servers answer without compression.
const nameHops = "X-Weir-Hops"

// hopsMax is how many a request may have passed: one for the outside, one inside, and
// some to spare. It must be a digit.
const hopsMax = 4

// isHops reports whether field i of r is nameHops.
func isHops(r *http1.Request, i int) bool {
	return r.ID(i) == http1.FieldNone && equalFoldText(r.Name(i), nameHops)
}

// hopsOf reads the value of nameHops; what no Weir would write counts as none.
func hopsOf(value []byte) int {
	if len(value) != 1 || value[0] < '0' || value[0] > '9' {
		return 0
	}
	return int(value[0] - '0')
}

// appendHops writes the field for a request that has passed so many.
func appendHops(b []byte, passed int) []byte {
	b = append(b, nameHops+": "...)
	return append(b, byte('1'+passed), '\r', '\n')
}
