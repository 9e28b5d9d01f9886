package http1

// Response is the head of a response. Its slices alias the parsed buffer.
type Response struct {
	Head
	Status       int // 100 to 599
	ReasonPhrase []byte
	Minor        int // of the version: 0 or 1
	Body         BodyKind
	Length       int64 // of the body in bytes, for BodyLength
	Declared     int64 // Content-Length, also if there is no body (HEAD, 304); -1: none
	Close        bool  // the connection ends with this exchange

	Upgrade         []byte // of a 101 that lists upgrade in Connection: the protocol; else nil
	WebSocketAccept []byte // nil if there is not exactly one
}

// Parse parses the head at the front of b, which answers a request with the
// given method. It returns what Request.Parse returns; all errors have status
// 502.
func (r *Response) Parse(b []byte, method Method, lim *Limits) (n int, err *Error) {
	n, ref := r.parse(b[:min(len(b), lim.HeadBytes)], method, lim)
	switch ref {
	case ok:
		return n, nil
	case incomplete:
		return 0, nil
	}
	return 0, &responseErrors[ref]
}

func (r *Response) parse(b []byte, method Method, lim *Limits) (n int, ref refusal) {
	r.Upgrade, r.WebSocketAccept = nil, nil
	p, ref := r.parseStatusLine(b, lim)
	if ref != ok {
		if ref == incomplete {
			return 0, unfinished(b, 0, lim)
		}
		return 0, ref
	}
	if n, ref = r.parseFields(b, p, lim); ref != ok {
		return 0, ref
	}
	return n, r.interpret(method)
}

// parseStatusLine parses the line at the front of b (RFC 9112, 4). The space
// before an empty reason phrase may be missing.
func (r *Response) parseStatusLine(b []byte, lim *Limits) (next int, ref refusal) {
	const form = "HTTP/1.1 200"
	if ref := matchStatus(b, form); ref != ok {
		return 0, ref
	}
	r.Minor = int(b[7] - '0')
	r.Status = int(b[9]-'0')*100 + int(b[10]-'0')*10 + int(b[11]-'0')
	i := len(form)
	if b[i] != ' ' && b[i] != '\r' {
		return 0, lineRefusal(b[i], refStatusLine)
	}
	if b[i] == ' ' {
		i++
	}
	end := scanText(b, i)
	switch {
	case end == len(b):
		return 0, incomplete
	case end > lim.LineBytes:
		return 0, refLineBytes
	case b[end] != '\r':
		return 0, lineRefusal(b[end], refStatusLine)
	case end+1 == len(b):
		return 0, incomplete
	case b[end+1] != '\n':
		return 0, refBareCR
	}
	r.ReasonPhrase = b[i:end:end]
	return end + 2, ok
}

// matchStatus reports whether b starts like form but for its digits, and goes
// on after it.
func matchStatus(b []byte, form string) refusal {
	if len(b) > len(form) && string(b[:len(form)]) == form {
		return ok
	}
	for i := range min(len(b), len(form)) {
		switch c := b[i]; {
		case i == 7 && (c == '0' || c == '1'):
		case i == 9 && '1' <= c && c <= '5':
		case i > 9 && '0' <= c && c <= '9':
		case i < 9 && i != 7 && c == form[i]:
		default:
			return lineRefusal(c, refStatusLine)
		}
	}
	if len(b) <= len(form) {
		return incomplete
	}
	return ok
}

// interpret gives the fields their meaning; method is the request's.
func (r *Response) interpret(method Method) refusal {
	kind, length, ref := r.framing(r.Minor)
	if ref != ok {
		return ref
	}
	set, ref := r.connection()
	if ref != ok {
		return ref
	}
	r.Declared = length
	r.Body, r.Length = kind, max(length, 0)
	bodiless := r.Status < 200 || r.Status == 204
	switch {
	case bodiless && kind == BodyChunked:
		return refNoBody
	case bodiless || r.Status == 304 || method == MethodHead:
		r.Body, r.Length = BodyNone, 0
	case kind == BodyNone:
		r.Body = BodyUntilClose
	}
	if bodiless && kind == BodyLength {
		r.fields[r.first[FieldContentLength]].flags |= fieldDrop
	}
	r.Close = set&optionClose != 0 || r.Body == BodyUntilClose || r.Minor == 0 && set&optionKeepAlive == 0
	if r.Status == 101 && r.Minor > 0 && set&optionUpgrade != 0 {
		r.Upgrade = r.upgrade()
		r.WebSocketAccept = r.single(FieldSecWebSocketAccept)
	}
	return ok
}
