package smuggling

import (
	"strings"
	"testing"
)

const empty = "0\r\n\r\n" // the last chunk

func TestRefusesBothFramings(t *testing.T) {
	run(t, []row{
		r400("CL then TE", post("0\r\n\r\nX", "Content-Length: 6", "Transfer-Encoding: chunked")),
		r400("TE then CL", post("0\r\n\r\nX", "Transfer-Encoding: chunked", "Content-Length: 6")),
		r400("CL 0 and TE", post(empty, "Content-Length: 0", "Transfer-Encoding: chunked")),
		r400("on GET", get("Content-Length: 6", "Transfer-Encoding: chunked")+"0\r\n\r\nX"),
	})
}

func TestRefusesObfuscatedTransferEncoding(t *testing.T) {
	te := func(value string) string { return post(empty, "Transfer-Encoding: "+value) }
	either := func(name, payload string) row { return row{name, payload, []int{400, 501}} }
	run(t, []row{
		either("chunked, chunked", te("chunked, chunked")),
		either("gzip, chunked", te("gzip, chunked")),
		either("chunked, gzip", te("chunked, gzip")),
		either(",chunked", te(",chunked")),
		either("xchunked", te("xchunked")),
		either("identity", te("identity")),
		either("quoted", te(`"chunked"`)),
		either("parameter", te("chunked;q=1")),
		either("empty", te("")),
		either("VT before", te("\x0bchunked")),
		either("VT after", te("chunked\x0b")),
		either("0xA0 before", te("\xa0chunked")),
		either("0x85 after", te("chunked\x85")),
		either("0xFF after", te("chunked\xff")),
		either("two lines", post(empty, "Transfer-Encoding: chunked", "Transfer-Encoding: chunked")),
		either("two lines, different", post(empty, "Transfer-Encoding: chunked", "Transfer-Encoding: identity")),
		r400("space before colon", post(empty, "Transfer-Encoding : chunked")),
		r400("tab before colon", post(empty, "Transfer-Encoding\t: chunked")),
		r400("underscore", post(empty, "Transfer_Encoding: chunked")),
		r400("leading space", post(empty, " Transfer-Encoding: chunked")),
		r400("HTTP/1.0", "POST /p HTTP/1.0\r\nHost: "+host+"\r\nTransfer-Encoding: chunked\r\n\r\n"+empty),
	})
}

func TestRefusesBadContentLength(t *testing.T) {
	cl := func(value string) string { return post("x", "Content-Length: "+value) }
	run(t, []row{
		r400("+1", cl("+1")), r400("-1", cl("-1")), r400("0x10", cl("0x10")), r400("1_0", cl("1_0")),
		r400("empty", cl("")), r400("1Z", cl("1Z")), r400("1, 1", cl("1, 1")), r400("1 1", cl("1 1")),
		r400("1.0", cl("1.0")), r400("quoted", cl(`"1"`)),
		r400("2^63", cl("9223372036854775808")), r400("2^64+1", cl("18446744073709551617")),
		r400("40 digits", cl(strings.Repeat("9", 40))),
		r400("two equal", post("x", "Content-Length: 1", "Content-Length: 1")),
		r400("two different", post("xx", "Content-Length: 1", "Content-Length: 2")),
		r400("space before colon", post("x", "Content-Length : 1")),
	})
}

// TestRefusesBadChunks sends a good head: the backend may have seen it, but it
// must see neither the bad bytes nor an end of the body.
func TestRefusesBadChunks(t *testing.T) {
	w := newWorld(t)
	for name, chunks := range map[string]string{
		"0x1": "0x1\r\nZ\r\n" + empty, "+1": "+1\r\nZ\r\n" + empty, "-0": "-0\r\n\r\n", "1_0": "1_0\r\nZ\r\n" + empty,
		"empty": "\r\nZ\r\n" + empty, "leading space": " 1\r\nZ\r\n" + empty, "trailing space": "1 \r\nZ\r\n" + empty,
		"17 digits": "00000000000000001\r\nZ\r\n" + empty, "overflow": "ffffffffffffffff\r\nZ\r\n" + empty,
		"no CRLF after data": "1\r\nZ" + empty, "longer data": "1\r\nZZ\r\n" + empty, "CR in size": "1\r0\r\nZ\r\n" + empty,
		"bare LF after size": "1\nZ\r\n" + empty, "bare LF after data": "1\r\nZ\n" + empty, "bare LF after last": "0\n\n",
		"bare CR after size": "1\rZ\r\n" + empty, "CR CR in extension": "1;a=b\r\rX\r\nZ\r\n" + empty,
		"LF in extension": "1;a=b\nX\r\nZ\r\n" + empty, "extension of 5 KiB": "1;" + strings.Repeat("e", 5<<10) + "\r\nZ\r\n" + empty,
		"extensions of 24 KiB": strings.Repeat("1;"+strings.Repeat("e", 3<<10)+"\r\nZ\r\n", 8) + empty,
		"bad trailer":          "0\r\nX : 1\r\n\r\n", "trailer without name": "0\r\n:x\r\n\r\n", "trailer without colon": "0\r\nx\r\n\r\n", "folded trailer": "0\r\nX: 1\r\n 2\r\n\r\n", "CR X at the end": "0\r\n\rX",
	} {
		t.Run(name, func(t *testing.T) { w.badChunks(t, chunks) })
	}
}

func TestForwardsChunkExtensionsNormalised(t *testing.T) {
	w := newWorld(t)
	w.accepted(t, post("2;a=b;c=\"d\"\r\nhi\r\n00;x\r\n\r\n", "Transfer-Encoding: chunked"),
		[]string{"Transfer-Encoding: chunked\r\n", "\r\n\r\n2\r\nhi\r\n0\r\n\r\n"}, []string{";", "content-length"})
}

func TestForwardsLeadingZerosAsPlainNumber(t *testing.T) {
	w := newWorld(t)
	// The field's name too: "0010" alone also occurs in ports and request ids.
	w.accepted(t, post("0123456789", "Content-Length: 0010"), []string{"Content-Length: 10\r\n", "\r\n\r\n0123456789"}, []string{"length: 0", "transfer-encoding"})
}

func TestForwardsOneByteChunks(t *testing.T) {
	w := newWorld(t)
	w.accepted(t, post(strings.Repeat("1\r\nz\r\n", 500)+empty, "Transfer-Encoding: chunked"), []string{"chunked"}, nil)
	body := w.backend.Requests()[0].Body
	if len(body) != 500 {
		t.Errorf("backend read a body of %d bytes, want 500", len(body))
	}
}

func TestForwardsBodiesOfMethodsThatSeldomHaveOne(t *testing.T) {
	w := newWorld(t)
	for _, method := range []string{"GET", "DELETE", "OPTIONS"} {
		w.accepted(t, method+" /p HTTP/1.1\r\nHost: "+host+"\r\nContent-Length: 5\r\n\r\nhello",
			[]string{method + " /p HTTP/1.1\r\n", "Content-Length: 5\r\n", "\r\n\r\nhello"}, nil)
	}
}
