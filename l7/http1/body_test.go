package http1

import (
	"fmt"
	"strings"
	"testing"
)

// decodeAll feeds s to a body of the given kind as a connection would: read by
// read, what is left over kept. cuts are the indices at which a read ends.
func decodeAll(kind BodyKind, length int64, s string, lim *Limits, cuts ...int) (payload, trailers string, n int, err *Error) {
	var d Body
	d.Init(kind, length)
	var held []byte
	for start, i := 0, 0; i <= len(cuts); i++ {
		end := len(s)
		if i < len(cuts) {
			end = cuts[i]
		}
		held = append(held, s[start:end]...)
		start = end
		p, used, err := d.Decode(held[:len(held):len(held)], lim)
		if err != nil {
			return payload, "", n, err
		}
		payload += string(p)
		n += used
		if d.Done() {
			return payload, string(d.Trailers()), n, nil
		}
		held = append([]byte(nil), held[used:]...)
	}
	return payload, "unfinished", n, nil
}

var bodies = []struct{ name, in, want string }{
	{"one chunk", "5\r\nhello\r\n0\r\n\r\n", `"hello" "" all`},
	{"empty body", "0\r\n\r\n", `"" "" all`},
	{"many chunks", "1\r\na\r\n2\r\nbc\r\n003\r\ndef\r\n0\r\n\r\n", `"abcdef" "" all`},
	{"capital digits", "A\r\n0123456789\r\n0b\r\n0123456789a\r\n0\r\n\r\n", `"01234567890123456789a" "" all`},
	{"zeros up to 16 digits", "0000000000000001\r\na\r\n0000000000000000\r\n\r\n", `"a" "" all`},
	{"what follows is left", "1\r\na\r\n0\r\n\r\nGET / HTTP/1.1\r\n", `"a" "" 11`},
	{"line ends inside of the data", "4\r\n\r\n\r\n\r\n0\r\n\r\n", `"\r\n\r\n" "" all`},
	{"unfinished size", "1", `"" "unfinished" all`},
	{"unfinished data", "5\r\nhel", `"hel" "unfinished" all`},
	{"unfinished end", "1\r\na\r\n0\r\n", `"a" "unfinished" all`},
	{"unfinished trailer is left in place", "1\r\na\r\n0\r\nX: 1\r\n", `"a" "unfinished" 9`},

	{"extension", "1;a=b\r\na\r\n0;x\r\n\r\n", `"a" "" all`},
	{"extension with white space and quotes", "1; a = \"b;\tc\" \r\na\r\n0\r\n\r\n", `"a" "" all`},
	{"extension of 4 KiB", "1" + strings.Repeat(";", 4096) + "\r\na\r\n0\r\n\r\n", `"a" "" all`},
	{"extension over 4 KiB", "1" + strings.Repeat(";", 4097) + "\r\na\r\n0\r\n\r\n", "400 chunk_extensions_too_long"},
	{"extension over 4 KiB, unfinished", "1" + strings.Repeat(";", 4097), "400 chunk_extensions_too_long"},
	{"extensions of 16 KiB", strings.Repeat("1"+strings.Repeat(";", 4096)+"\r\na\r\n", 4) + "0\r\n\r\n", `"aaaa" "" all`},
	{"extensions over 16 KiB", strings.Repeat("1"+strings.Repeat(";", 4096)+"\r\na\r\n", 4) + "0;\r\n\r\n", "400 chunk_extensions_too_long"},
	{"CR CR in an extension", "1;a=b\r\rX\r\na\r\n0\r\n\r\n", "400 bare_cr"},
	{"bare LF in an extension", "1;a\nb\r\na\r\n0\r\n\r\n", "400 bare_lf"},
	{"NUL in an extension", "1;a\x00b\r\na\r\n0\r\n\r\n", "400 bad_chunk_extension"},

	{"size 0x1", "0x1\r\na\r\n0\r\n\r\n", "400 bad_chunk_size"},
	{"size +1", "+1\r\na\r\n0\r\n\r\n", "400 bad_chunk_size"},
	{"size -0", "-0\r\n\r\n", "400 bad_chunk_size"},
	{"size 1_0", "1_0\r\n", "400 bad_chunk_size"},
	{"size empty", "\r\na\r\n0\r\n\r\n", "400 bad_chunk_size"},
	{"size empty with extension", ";a\r\n", "400 bad_chunk_size"},
	{"space before the size", " 1\r\na\r\n0\r\n\r\n", "400 bad_chunk_size"},
	{"space after the size", "1 \r\na\r\n0\r\n\r\n", "400 bad_chunk_size"},
	{"space before an extension", "1 ;a\r\na\r\n0\r\n\r\n", "400 bad_chunk_size"},
	{"size of 17 digits", "00000000000000001\r\na\r\n0\r\n\r\n", "400 bad_chunk_size"},
	{"size 2^63", "8000000000000000\r\n", "400 bad_chunk_size"},
	{"size 2^64-1", "ffffffffffffffff\r\n", "400 bad_chunk_size"},
	{"size ends in a bare LF", "1\na\r\n0\r\n\r\n", "400 bare_lf"},
	{"size ends in a bare CR", "1\r0\r\n", "400 bare_cr"},
	{"data too long", "1\r\nab\r\n0\r\n\r\n", "400 bad_chunk_end"},
	{"data too short", "3\r\na\r\n0\r\n\r\n", "400 bad_chunk_end"},
	{"data ends in a bare LF", "1\r\na\n0\r\n\r\n", "400 bare_lf"},
	{"data ends in a bare CR", "1\r\na\r0\r\n\r\n", "400 bare_cr"},
	{"last line ends in a bare LF", "0\r\n\n", "400 bare_lf"},
	{"last chunk ends in a bare LF", "0\n\r\n", "400 bare_lf"},
	{"last line ends in a bare CR", "0\r\n\rX\r\n\r\n", "400 bare_cr"},

	{"trailers", "0\r\nX-Sum: 9\r\nY:\t8 \r\n\r\n", `"" "X-Sum: 9\r\nY:\t8 \r\n" all`},
	{"trailers behind data", "2\r\nhi\r\n1\r\n!\r\n0\r\nX-Sum: 9\r\n\r\nGET", `"hi!" "X-Sum: 9\r\n" 28`},
	{"forbidden trailers", "0\r\nContent-Length: 7\r\nX-Sum: 9\r\ntransfer-encoding: chunked\r\nHost: x\r\nAuthorization: x\r\nSet-Cookie: x\r\nCookie: x\r\n" +
		"Content-Foo: x\r\nIf-Match: x\r\nX-Forwarded-For: x\r\nProxy-Authorization: x\r\nPragma: x\r\nX_Sum: x\r\nETag: y\r\nConnection: x-sum\r\nTrailer: x\r\n\r\n",
		`"" "X-Sum: 9\r\nETag: y\r\n" all`},
	{"only forbidden trailers", "0\r\nHost: x\r\n\r\n", `"" "" all`},
	{"pseudo field in trailers", "0\r\n:path: /\r\n\r\n", "400 empty_field_name"},
	{"bare LF in trailers", "0\r\nX: 1\n\r\n", "400 bare_lf"},
	{"bare CR in trailers", "0\r\nX: 1\rY: 2\r\n\r\n", "400 bare_cr"},
	{"folded trailer", "0\r\nX: 1\r\n 2\r\n\r\n", "400 obs_fold"},
	{"NUL in trailers", "0\r\nX: \x00\r\n\r\n", "400 control_character"},
	{"trailer line too long", "0\r\nX: " + strings.Repeat("x", 16<<10) + "\r\n\r\n", "431 line_too_long"},
	{"trailers too large", "0\r\n" + strings.Repeat("X: "+strings.Repeat("x", 8<<10)+"\r\n", 4) + "\r\n", "431 head_too_large"},
	{"trailers too large, unfinished", "0\r\n" + strings.Repeat("X: "+strings.Repeat("x", 8<<10)+"\r\n", 4), "431 head_too_large"},
	{"too many trailers", "0\r\n" + strings.Repeat("X: 1\r\n", 129) + "\r\n", "431 too_many_fields"},
}

func chunkedOutcome(in string, cuts ...int) string {
	payload, trailers, n, err := decodeAll(BodyChunked, 0, in, &limits, cuts...)
	if err != nil {
		return outcome(0, err)
	}
	s := fmt.Sprintf("%q %q ", payload, trailers)
	if n == len(in) {
		return s + "all"
	}
	return s + fmt.Sprint(n)
}

func TestChunkedBody(t *testing.T) {
	for _, c := range bodies {
		t.Run(c.name, func(t *testing.T) {
			if got := chunkedOutcome(c.in); got != c.want {
				t.Errorf("Decode(%.200q)\n got %s\nwant %s", c.in, got, c.want)
			}
		})
	}
}

func TestChunkedBodyIsTheSameInEverySplit(t *testing.T) {
	for _, c := range bodies {
		step := 1 + len(c.in)/200
		for i := 0; i <= len(c.in); i += step {
			for j := i; j <= len(c.in); j += step * (1 + len(c.in)/50) {
				if got := chunkedOutcome(c.in, i, j); got != c.want {
					t.Fatalf("%s, cut at %d and %d\n got %s\nwant %s", c.name, i, j, got, c.want)
				}
			}
		}
		var every []int
		for i := range min(len(c.in), 2000) {
			every = append(every, i)
		}
		if got := chunkedOutcome(c.in, every...); got != c.want {
			t.Errorf("%s, byte by byte\n got %s\nwant %s", c.name, got, c.want)
		}
	}
}

func TestBodyOfKnownLength(t *testing.T) {
	var d Body
	d.Init(BodyLength, 5)
	if d.Done() || d.Remaining() != 5 || d.Kind() != BodyLength {
		t.Fatalf("fresh: done %v, remaining %d, kind %s", d.Done(), d.Remaining(), d.Kind())
	}
	p, n, err := d.Decode([]byte("hel"), &limits)
	if string(p) != "hel" || n != 3 || err != nil || d.Done() || d.Remaining() != 2 {
		t.Errorf("first: %q, %d, %v, done %v, remaining %d", p, n, err, d.Done(), d.Remaining())
	}
	p, n, err = d.Decode([]byte("loGET"), &limits)
	if string(p) != "lo" || n != 2 || err != nil || !d.Done() || d.Remaining() != 0 {
		t.Errorf("second: %q, %d, %v, done %v, remaining %d", p, n, err, d.Done(), d.Remaining())
	}
	p, n, err = d.Decode([]byte("GET"), &limits)
	if len(p) != 0 || n != 0 || err != nil {
		t.Errorf("after the end: %q, %d, %v", p, n, err)
	}
}

func TestBodiesThatEndAtOnceOrNever(t *testing.T) {
	var d Body
	for _, c := range []struct {
		kind   BodyKind
		length int64
	}{{BodyNone, 7}, {BodyLength, 0}} {
		d.Init(c.kind, c.length)
		if p, n, err := d.Decode([]byte("GET"), &limits); !d.Done() || len(p) != 0 || n != 0 || err != nil {
			t.Errorf("%s: done %v, %q, %d, %v", c.kind, d.Done(), p, n, err)
		}
	}
	d.Init(BodyUntilClose, 0)
	if p, n, err := d.Decode([]byte("GET"), &limits); d.Done() || string(p) != "GET" || n != 3 || err != nil || d.Remaining() != -1 {
		t.Errorf("until close: done %v, %q, %d, %v, remaining %d", d.Done(), p, n, err, d.Remaining())
	}
}

func TestInitForgetsTheBodyBefore(t *testing.T) {
	var d Body
	d.Init(BodyChunked, 0)
	if _, _, err := d.Decode([]byte("0\r\nX: 1\r\n\r\n"), &limits); err != nil || !d.Done() {
		t.Fatal(err)
	}
	d.Init(BodyChunked, 0)
	if d.Done() || d.Trailers() != nil {
		t.Errorf("after Init: done %v, trailers %q", d.Done(), d.Trailers())
	}
	p, n, err := d.Decode([]byte("1\r\na"), &limits)
	if string(p) != "a" || n != 4 || err != nil {
		t.Errorf("Decode = %q, %d, %v", p, n, err)
	}
}
