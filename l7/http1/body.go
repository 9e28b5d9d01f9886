package http1

// Body finds the end of one message's body and takes the framing off.
type Body struct {
	kind     BodyKind
	done     bool
	left     int64  // bytes of the body, or of the current chunk
	trailers []byte // aliases the last buffer
}

// Init starts a body; length counts for BodyLength only.
func (d *Body) Init(kind BodyKind, length int64) {
	*d = Body{kind: kind, left: length, done: kind == BodyNone || kind == BodyLength && length == 0}
}

// Decode takes the bytes at the front of b.
//
// payload is what they contain of the body; it aliases b. Of b, n bytes are
// used up; bytes after the end of the body never are. Only an incomplete
// trailer section is left in place: call again from there with more bytes. In b
// the parts of several chunks are moved together, so its first n bytes are
// undefined but for payload.
func (d *Body) Decode(b []byte, lim *Limits) (payload []byte, n int, err *Error) {
	return nil, 0, nil
}

// Done reports whether the body has ended. One that lasts until the connection
// closes never does by itself.
func (d *Body) Done() bool { return d.done }

// Remaining returns how many bytes a BodyLength lacks, -1 for the other kinds.
func (d *Body) Remaining() int64 {
	if d.kind == BodyLength {
		return d.left
	}
	return -1
}

// Kind returns the kind given to Init.
func (d *Body) Kind() BodyKind { return d.kind }

// Trailers returns the trailer fields that may be forwarded as lines that each
// end in CRLF. They alias the last b and are valid from Done until it changes.
func (d *Body) Trailers() []byte { return d.trailers }
