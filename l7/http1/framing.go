package http1

import "math"

// framing reads Content-Length and Transfer-Encoding (RFC 9112, 6). What the
// RFC lets a recipient repair is refused: two parsers repair it differently.
// kind is BodyNone if there is neither; length is -1 unless it was given.
func (h *Head) framing(minor int) (kind BodyKind, length int64, ref refusal) {
	const mask = 1<<FieldContentLength | 1<<FieldTransferEncoding
	switch h.seen & mask {
	case 0:
		return BodyNone, -1, ok
	case mask:
		return 0, 0, refLengthCoding
	case 1 << FieldContentLength:
		if h.twice&(1<<FieldContentLength) != 0 {
			return 0, 0, refTwoLengths
		}
		length, good := parseLength(h.Get(FieldContentLength))
		if !good {
			return 0, 0, refBadLength
		}
		return BodyLength, length, ok
	}
	switch v := h.Get(FieldTransferEncoding); {
	case minor == 0:
		return 0, 0, refCoding10
	case h.twice&(1<<FieldTransferEncoding) != 0:
		return 0, 0, refTwoCodings
	case equalFold(v, "chunked"):
		return BodyChunked, -1, ok
	case isToken(v):
		return 0, 0, refUnknownCoding
	}
	return 0, 0, refBadCoding
}

// parseLength parses one or more digits, of which the first may be zeros.
func parseLength(b []byte) (n int64, good bool) {
	for _, c := range b {
		d := int64(c) - '0'
		if d < 0 || d > 9 || n > (math.MaxInt64-d)/10 {
			return 0, false
		}
		n = n*10 + d
	}
	return n, len(b) > 0
}

// codingAlias reports whether a field would be read as Transfer-Encoding by a
// peer that takes '_' for '-'.
func (h *Head) codingAlias() bool {
	for i := range h.fields[:h.n] {
		if h.fields[i].flags&fieldUnderscore != 0 && equalFold(h.Name(i), "transfer_encoding") {
			return true
		}
	}
	return false
}
