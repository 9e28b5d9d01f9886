package http1

import "math"

// chunkState is what the next byte of a chunked body belongs to (RFC 9112, 7.1).
type chunkState uint8

const (
	chunkSize chunkState = iota
	chunkExtension
	chunkSizeLF
	chunkData
	chunkDataCR
	chunkDataLF
	chunkTrailer
)

// Bounds of what a chunk-size line may carry besides the size. Nobody uses
// extensions; they only serve to make parsers disagree or wait.
const (
	chunkDigitsMax     = 16
	extensionBytesMax  = 4 << 10  // in a line
	extensionsBytesMax = 16 << 10 // in a body
)

// decodeChunks is Decode for chunked bodies.
func (d *Body) decodeChunks(b []byte, lim *Limits) (payload []byte, n int, ref refusal) {
	start, end := 0, 0 // of the payload in b
	for n < len(b) && !d.done {
		if d.state == chunkTrailer {
			used, ref := d.decodeTrailers(b[n:], lim)
			if ref == incomplete {
				break
			}
			if ref != ok {
				return nil, 0, ref
			}
			n += used
			continue
		}
		if d.state == chunkData {
			k := int(min(d.left, int64(len(b)-n)))
			if end == start {
				start, end = n, n+k
			} else {
				copy(b[end:], b[n:n+k])
				end += k
			}
			n += k
			if d.left -= int64(k); d.left == 0 {
				d.state = chunkDataCR
			}
			continue
		}
		used, ref := d.decodeChunkLine(b[n:])
		if ref != ok {
			return nil, 0, ref
		}
		n += used
	}
	return b[start:end], n, ok
}

// decodeChunkLine takes bytes between the data of two chunks: at least one, at
// most to the end of the line.
func (d *Body) decodeChunkLine(b []byte) (n int, ref refusal) {
	for n < len(b) {
		c := b[n]
		switch d.state {
		case chunkDataCR:
			if c != '\r' {
				return 0, lineRefusal(c, refChunkEnd)
			}
			d.state = chunkDataLF
		case chunkDataLF:
			if c != '\n' {
				return 0, refBareCR
			}
			d.state = chunkSize
		case chunkSize:
			if ref = d.chunkSizeByte(c); ref != ok {
				return 0, ref
			}
		case chunkExtension:
			k := scanText(b, n) - n
			if d.extension += int32(min(k, extensionsBytesMax)); d.extension > extensionBytesMax ||
				d.extensions+d.extension > extensionsBytesMax {
				return 0, refChunkBytes
			}
			if n += k; n == len(b) {
				return n, ok
			}
			if b[n] != '\r' {
				return 0, lineRefusal(b[n], refChunkExtension)
			}
			d.state = chunkSizeLF
		case chunkSizeLF:
			if c != '\n' {
				return 0, refBareCR
			}
			d.startChunk()
			return n + 1, ok
		}
		n++
	}
	return n, ok
}

// chunkSizeByte takes one byte of a chunk's size or the one after it.
func (d *Body) chunkSizeByte(c byte) refusal {
	v := hexValue(c)
	switch {
	case v >= 0:
		if d.digits == chunkDigitsMax || d.left > math.MaxInt64>>4 {
			return refChunkSize
		}
		d.digits++
		d.left = d.left<<4 | int64(v)
	case d.digits > 0 && c == '\r':
		d.state = chunkSizeLF
	case d.digits > 0 && c == ';':
		d.state = chunkExtension
		d.extension = 1
	default:
		return lineRefusal(c, refChunkSize)
	}
	return ok
}

// startChunk goes on to what the size line that has ended was for.
func (d *Body) startChunk() {
	d.state = chunkData
	if d.left == 0 {
		d.state = chunkTrailer
	}
	d.extensions += d.extension
	d.extension, d.digits = 0, 0
}
