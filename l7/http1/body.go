package http1

// Body finds the end of one message's body and takes the framing off.
type Body struct {
	kind  BodyKind
	done  bool
	state chunkState
	left  int64 // bytes of the body, or of the current chunk

	digits     uint8 // of the current chunk's size
	extension  int32 // bytes of extensions in the current line
	extensions int32 // bytes of extensions in the lines before
	scanned    int32 // bytes of the unfinished trailer section

	trailers []byte // aliases the last buffer
}

// Init starts a body; length counts for BodyLength only.
func (d *Body) Init(kind BodyKind, length int64) {
	*d = Body{kind: kind, done: kind == BodyNone || kind == BodyLength && length == 0}
	if kind == BodyLength {
		d.left = length
	}
}

// Decode takes the bytes at the front of b.
//
// payload is what they contain of the body; it aliases b. Of b, n bytes are
// used up; bytes after the end of the body never are. Only an unfinished
// trailer section is left in place: call again from there with more bytes, so b
// must have room for lim.HeadBytes. The parts of several chunks are moved
// together: of the first n bytes of b only payload and Trailers mean something
// afterwards. After an error there is no more to decode; its status is for a
// request.
func (d *Body) Decode(b []byte, lim *Limits) (payload []byte, n int, err *Error) {
	if d.done {
		return nil, 0, nil
	}
	switch d.kind {
	case BodyLength:
		n = int(min(int64(len(b)), d.left))
		d.left -= int64(n)
		d.done = d.left == 0
		return b[:n], n, nil
	case BodyChunked:
		payload, n, ref := d.decodeChunks(b, lim)
		if ref != ok {
			return nil, 0, &requestErrors[ref]
		}
		return payload, n, nil
	}
	return b, len(b), nil
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

// Trailers returns the trailer fields that may be forwarded, as lines that each
// end in CRLF. They alias the b of the call that ended the body and are valid
// until it changes.
func (d *Body) Trailers() []byte { return d.trailers }
