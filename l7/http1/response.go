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
	return 0, nil
}
