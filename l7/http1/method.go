package http1

// Method is a request's method.
type Method uint8

const (
	MethodOther Method = iota // one that this package doesn't know
	MethodGet
	MethodHead
	MethodPost
	MethodPut
	MethodDelete
	MethodConnect
	MethodOptions
	MethodTrace
	MethodPatch
)

// methodBytes is the length of the longest method that is accepted.
const methodBytes = 32

func methodOf(b []byte) Method {
	switch string(b) {
	case "GET":
		return MethodGet
	case "HEAD":
		return MethodHead
	case "POST":
		return MethodPost
	case "PUT":
		return MethodPut
	case "DELETE":
		return MethodDelete
	case "CONNECT":
		return MethodConnect
	case "OPTIONS":
		return MethodOptions
	case "TRACE":
		return MethodTrace
	case "PATCH":
		return MethodPatch
	}
	return MethodOther
}

// Idempotent reports whether a request that is sent twice has the effect of one
// (RFC 9110, 9.2.2). It is false for methods that aren't known.
func (m Method) Idempotent() bool {
	switch m {
	case MethodGet, MethodHead, MethodOptions, MethodTrace, MethodPut, MethodDelete:
		return true
	}
	return false
}
