package http1

import (
	"bytes"
	"fmt"
	"testing"
)

func benchRequest(b *testing.B, head string) {
	var r Request
	buf := []byte(head)
	b.ReportAllocs()
	b.SetBytes(int64(len(buf)))
	for b.Loop() {
		if n, err := r.Parse(buf, &limits); n != len(buf) {
			b.Fatal(outcome(n, err))
		}
	}
}

func BenchmarkRequestBrowser(b *testing.B) { benchRequest(b, browserRequest) }

func BenchmarkRequestSmall(b *testing.B) {
	benchRequest(b, wire("GET / HTTP/1.1", "Host: shop.example", "User-Agent: wrk"))
}

func BenchmarkRequestDotSegments(b *testing.B) {
	benchRequest(b, wire("GET /a/../b/./c/%7Euser//d%2fe HTTP/1.1", "Host: Shop.Example:8080"))
}

func BenchmarkResponse(b *testing.B) {
	var r Response
	buf := []byte(serverResponse)
	b.ReportAllocs()
	b.SetBytes(int64(len(buf)))
	for b.Loop() {
		if n, err := r.Parse(buf, MethodGet, &limits); n != len(buf) {
			b.Fatal(outcome(n, err))
		}
	}
}

func BenchmarkHeadEnd(b *testing.B) {
	buf := []byte(browserRequest)
	b.ReportAllocs()
	b.SetBytes(int64(len(buf)))
	for b.Loop() {
		if n, err := HeadEnd(buf, 0); n != len(buf) {
			b.Fatal(outcome(n, err))
		}
	}
}

// benchChunks decodes 64 KiB that come in chunks of size bytes. It includes
// copying the input, which the decoder changes.
func benchChunks(b *testing.B, size int) {
	var in []byte
	for left := 64 << 10; left > 0; left -= size {
		in = fmt.Appendf(in, "%x\r\n", min(size, left))
		in = append(append(in, bytes.Repeat([]byte{'x'}, min(size, left))...), "\r\n"...)
	}
	in = append(in, "0\r\n\r\n"...)
	buf := make([]byte, len(in))
	var d Body
	b.ReportAllocs()
	b.SetBytes(int64(len(in)))
	for b.Loop() {
		copy(buf, in)
		d.Init(BodyChunked, 0)
		if _, n, err := d.Decode(buf, &limits); n != len(in) {
			b.Fatal(outcome(n, err))
		}
	}
}

func BenchmarkChunks1(b *testing.B)   { benchChunks(b, 1) }
func BenchmarkChunks64(b *testing.B)  { benchChunks(b, 64) }
func BenchmarkChunks4K(b *testing.B)  { benchChunks(b, 4<<10) }
func BenchmarkChunks64K(b *testing.B) { benchChunks(b, 64<<10) }
