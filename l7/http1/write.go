package http1

import (
	"crypto/sha1"
	"encoding/base64"
	"strconv"
)

// ChunkHeadMax is the most bytes that the line before a chunk's data takes: 16
// hex digits and CRLF.
const ChunkHeadMax = 18

const hexDigits = "0123456789abcdef"

// PutChunkHead writes the line before a chunk of n bytes so that it ends at the
// end of dst and returns where in dst it starts. dst has at least ChunkHeadMax
// bytes: the headroom in front of a payload.
func PutChunkHead(dst []byte, n int) int {
	i := len(dst) - 2
	dst[i], dst[i+1] = '\r', '\n'
	for v := uint64(n); ; v >>= 4 {
		i--
		dst[i] = hexDigits[v&15]
		if v < 16 {
			return i
		}
	}
}

// AppendField appends "name: value" and CRLF. Neither is checked.
func AppendField(dst []byte, name, value []byte) []byte {
	dst = append(dst, name...)
	dst = append(dst, ':', ' ')
	dst = append(dst, value...)
	return append(dst, '\r', '\n')
}

// AppendUint appends v in decimal.
func AppendUint(dst []byte, v uint64) []byte { return strconv.AppendUint(dst, v, 10) }

// AppendStatusLine appends the first line of an HTTP/1.1 response. status has
// three digits; reason may be empty and is not checked.
func AppendStatusLine(dst []byte, status int, reason []byte) []byte {
	dst = append(dst, "HTTP/1.1 "...)
	dst = append(dst, byte('0'+status/100%10), byte('0'+status/10%10), byte('0'+status%10), ' ')
	dst = append(dst, reason...)
	return append(dst, '\r', '\n')
}

// webSocketGUID is the constant of RFC 6455, 1.3.
const webSocketGUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"

// WebSocketAccept appends the value of Sec-WebSocket-Accept, 28 bytes, that
// answers key (RFC 6455, 4.2.2). key has at most 64 bytes.
func WebSocketAccept(dst []byte, key []byte) []byte {
	var buf [64 + len(webSocketGUID)]byte
	n := copy(buf[:64], key)
	n += copy(buf[n:], webSocketGUID)
	sum := sha1.Sum(buf[:n])
	return base64.StdEncoding.AppendEncode(dst, sum[:])
}
