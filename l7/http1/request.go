package http1

// Request is the head of a request. Its slices alias the parsed buffer or the
// request's own scratch and are valid until the next Parse or until the buffer
// changes.
type Request struct {
	Head
	Method     Method
	MethodText []byte
	Target     []byte // origin form as sent; "*"; of an absolute form its path and query
	Path       []byte // normalised for matching: rooted, without query; "/" for "*"
	Query      []byte // raw, with its '?', or empty
	Rewritten  bool   // dot segments were removed: forward Path and Query, not Target
	Host       []byte // lower case, without port and trailing dot; IPv6 in brackets; empty: none
	Authority  []byte // host as sent, with port; from the target if that is absolute
	Minor      int    // of the version: 0 or 1
	Body       BodyKind
	Length     int64 // of the body in bytes, for BodyLength
	Close      bool  // the connection ends with this exchange
	Expect100  bool  // the client waits for a 100 before it sends the body
	TETrailers bool  // the client can take trailers

	// Upgrade is the one protocol that may become a tunnel, nil if none was
	// offered or the offer is ignored (RFC 9110, 7.8).
	Upgrade      []byte
	WebSocketKey []byte // for the upgrade to websocket: 24 bytes of base64

	scratch []byte
}

// Parse parses the head at the front of b.
//
// n > 0: it is complete and n bytes long. n == 0 without error: it is not; call
// again from its start when there are more bytes. Limits and grammar hold for
// incomplete heads too, so that nobody waits for the end of what is refused
// anyway. One empty line before the head is skipped (RFC 9112, 2.2).
func (r *Request) Parse(b []byte, lim *Limits) (n int, err *Error) {
	return 0, nil
}

// HeadEnd looks for the end of a head or trailer section in b, of which the
// first from bytes were looked at before. It returns the length of the section
// with its empty line, 0 if that hasn't come. A line feed alone is an error.
func HeadEnd(b []byte, from int) (end int, err *Error) {
	return 0, nil
}
