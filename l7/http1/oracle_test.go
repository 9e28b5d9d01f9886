package http1

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// checkRequest compares Parse with net/http for a head and what follows it.
// What Parse takes, net/http must take too and read in the same way.
func checkRequest(t *testing.T, s []byte) {
	t.Helper()
	r, n, err := parseRequest(string(s), &limits)
	if n == 0 || err != nil {
		return
	}
	in := bufio.NewReader(bytes.NewReader(s))
	if bytes.HasPrefix(s, []byte("\r\n")) {
		in.Discard(2) // net/http has no use for RFC 9112, 2.2
	}
	want, errWant := http.ReadRequest(in)
	if errWant != nil {
		t.Fatalf("Parse takes %q, net/http: %v", s, errWant)
	}
	if string(r.MethodText) != want.Method || r.Minor != want.ProtoMinor {
		t.Errorf("%q: %s 1.%d, net/http: %s 1.%d", s, r.MethodText, r.Minor, want.Method, want.ProtoMinor)
	}
	if r.defaultPort == 0 && string(r.Target) != want.RequestURI {
		t.Errorf("%q: target %q, net/http: %q", s, r.Target, want.RequestURI)
	}
	if r.defaultPort != 0 && !strings.HasSuffix(want.RequestURI, strings.TrimLeft(string(r.Target), "/*")) {
		t.Errorf("%q: target %q, net/http: %q", s, r.Target, want.RequestURI)
	}
	if r.Query != nil && string(r.Query[1:]) != want.URL.RawQuery {
		t.Errorf("%q: query %q, net/http: %q", s, r.Query, want.URL.RawQuery)
	}
	if string(r.Authority) != want.Host {
		t.Errorf("%q: authority %q, net/http: %q", s, r.Authority, want.Host)
	}
	if got, want := framingOf(r.Body, r.Length), framingOfHTTP(want.ContentLength, want.TransferEncoding); got != want {
		t.Errorf("%q: body %s, net/http: %s", s, got, want)
	}
	compareFields(t, s, &r.Head, want.Header)
}

// checkResponse is checkRequest for responses.
func checkResponse(t *testing.T, s []byte, method Method) {
	t.Helper()
	r, n, err := parseResponse(string(s), method, &limits)
	if n == 0 || err != nil || r.Status == 101 {
		return
	}
	request := &http.Request{Method: "GET"}
	if method == MethodHead {
		request.Method = "HEAD"
	}
	want, errWant := http.ReadResponse(bufio.NewReader(bytes.NewReader(s)), request)
	if errWant != nil {
		t.Fatalf("Parse takes %q, net/http: %v", s, errWant)
	}
	if r.Status != want.StatusCode || r.Minor != want.ProtoMinor {
		t.Errorf("%q: %d 1.%d, net/http: %d 1.%d", s, r.Status, r.Minor, want.StatusCode, want.ProtoMinor)
	}
	compareFields(t, s, &r.Head, want.Header)
	if r.Body == BodyNone {
		if got, err := io.ReadAll(want.Body); len(got) != 0 || err != nil {
			t.Errorf("%q: no body, net/http: %q, %v", s, got, err)
		}
		return
	}
	got := framingOf(r.Body, r.Length)
	if r.Body == BodyUntilClose {
		got = "length -1"
	}
	if want := framingOfHTTP(want.ContentLength, want.TransferEncoding); got != want {
		t.Errorf("%q: body %s, net/http: %s", s, got, want)
	}
}

func framingOf(kind BodyKind, length int64) string {
	if kind == BodyChunked {
		return "chunked"
	}
	return fmt.Sprintf("length %d", length)
}

func framingOfHTTP(length int64, codings []string) string {
	if len(codings) == 1 && codings[0] == "chunked" {
		return "chunked"
	}
	return fmt.Sprintf("length %d", length)
}

// compareFields compares all fields but those that net/http moves elsewhere.
func compareFields(t *testing.T, s []byte, h *Head, want http.Header) {
	t.Helper()
	got := http.Header{}
	for i := range h.Len() {
		switch h.ID(i) {
		case FieldHost, FieldTransferEncoding, FieldTrailer, FieldConnection:
			continue
		}
		got.Add(string(h.Name(i)), string(h.Value(i)))
	}
	for _, name := range []string{"Trailer", "Connection"} {
		want.Del(name)
	}
	if got.Get("Pragma") == "no-cache" && got["Cache-Control"] == nil {
		want.Del("Cache-Control") // net/http adds it
	}
	if len(got) != len(want) {
		t.Fatalf("%q: fields %q, net/http: %q", s, got, want)
	}
	for name, values := range got {
		if !slices.Equal(values, want[name]) {
			t.Errorf("%q: %s: %q, net/http: %q", s, name, values, want[name])
		}
	}
}

// checkChunked compares the decoder with net/http's, for a body that comes
// after a head and is cut in two at cut.
func checkChunked(t *testing.T, body []byte, cut int) {
	t.Helper()
	payload, trailers, n, err := decodeAll(BodyChunked, 0, string(body), &limits)
	p2, t2, n2, err2 := decodeAll(BodyChunked, 0, string(body), &limits, min(cut, len(body)))
	if err != err2 {
		t.Fatalf("%q: %v whole, %v cut at %d", body, err, err2, cut)
	}
	if err != nil {
		return
	}
	if payload != p2 || trailers != t2 || n != n2 {
		t.Fatalf("%q: %q %q %d whole, %q %q %d cut at %d", body, payload, trailers, n, p2, t2, n2, cut)
	}
	in := bufio.NewReader(io.MultiReader(strings.NewReader("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"), bytes.NewReader(body)))
	r, errWant := http.ReadRequest(in)
	if errWant != nil {
		t.Fatal(errWant)
	}
	want, errWant := io.ReadAll(r.Body)
	if errWant != nil && (strings.Contains(errWant.Error(), "header line too long") ||
		strings.Contains(errWant.Error(), "chunked encoding contains too much non-data")) {
		return // its limits are lower
	}
	if payload != string(want) {
		t.Fatalf("%.300q: payload %.300q, net/http: %.300q, %v", body, payload, want, errWant)
	}
	if trailers == "unfinished" {
		return
	}
	if errWant != nil {
		t.Fatalf("Decode takes %.300q, net/http: %v", body, errWant)
	}
	left, _ := io.ReadAll(in)
	if string(left) != string(body[n:]) {
		t.Errorf("%q: %q follows, net/http: %q", body, body[n:], left)
	}
	for line := range strings.Lines(trailers) {
		name, value, _ := strings.Cut(strings.TrimRight(line, "\r\n"), ":")
		if !slices.Contains(r.Trailer.Values(name), strings.Trim(value, " \t")) {
			t.Errorf("%q: trailer %q, net/http: %q", body, line, r.Trailer)
		}
	}
}

func TestRequestsAsNetHTTPReadsThem(t *testing.T) {
	for _, c := range goodRequests {
		checkRequest(t, []byte(c.head))
	}
}

func TestResponsesAsNetHTTPReadsThem(t *testing.T) {
	for _, c := range goodResponses {
		checkResponse(t, []byte(c.head), c.method)
	}
}

func TestChunkedBodiesAsNetHTTPReadsThem(t *testing.T) {
	for _, c := range bodies {
		checkChunked(t, []byte(c.in), len(c.in)/2)
	}
}

// net/http writes what Parse reads.
func TestWhatNetHTTPWrites(t *testing.T) {
	for _, size := range []int{0, 1, 5000, 100_000} {
		body := strings.Repeat("x", size)
		for _, chunked := range []bool{false, true} {
			answer := http.Response{StatusCode: 200, ProtoMajor: 1, ProtoMinor: 1, Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(size)}
			if chunked {
				answer.ContentLength, answer.TransferEncoding = -1, []string{"chunked"}
			}
			var b bytes.Buffer
			if err := answer.Write(&b); err != nil {
				t.Fatal(err)
			}
			r, n, err := parseResponse(b.String(), MethodGet, &limits)
			if err != nil || n == 0 {
				t.Fatalf("Parse(%.100q) = %s", b.String(), outcome(n, err))
			}
			payload, _, used, err := decodeAll(r.Body, r.Length, b.String()[n:], &limits)
			if err != nil || payload != body || n+used != b.Len() || chunked != (r.Body == BodyChunked) {
				t.Errorf("%s bytes, chunked %v: %d bytes, %v, %d of %d used, kind %s",
					strconv.Itoa(size), chunked, len(payload), err, n+used, b.Len(), r.Body)
			}
		}
	}
}
