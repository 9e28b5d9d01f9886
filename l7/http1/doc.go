// Package http1 is HTTP/1 on the wire: it parses heads, frames bodies and
// writes the lines that both are made of.
//
// It does no I/O: bytes in, offsets out. Everything is parsed in place, once,
// and without allocation; what a parse returns aliases the caller's buffer. The
// grammar is the strict core of RFC 9110 and RFC 9112: what two parsers could
// read differently is refused, never repaired.
//
// Nothing here is safe for use by two goroutines at a time.
package http1

// MaxFields is the most fields that a Head can hold, whatever Limits says.
const MaxFields = 256

// Limits bound a head or a trailer section. They are enforced while decoding.
type Limits struct {
	HeadBytes int // of a whole head or trailer section, > 0
	LineBytes int // of one line without its CRLF, > 0
	Fields    int // of the fields of a head or trailer section, 1 to MaxFields
}

// BodyKind says how the end of a message's body is found (RFC 9112, 6.3).
type BodyKind uint8

const (
	BodyNone       BodyKind = iota // there is none
	BodyLength                     // a known number of bytes, perhaps 0
	BodyChunked                    // the chunked coding
	BodyUntilClose                 // all until the connection closes: responses only
)

func (k BodyKind) String() string {
	return [...]string{"none", "length", "chunked", "until_close"}[k]
}
