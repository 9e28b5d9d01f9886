package smuggling

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weirproxy/weir/tests/rig"
)

func TestRefusesBareLineEnds(t *testing.T) {
	h := "Host: " + host
	run(t, []row{
		r400("LF after request line", "GET /p HTTP/1.1\n"+h+"\r\n\r\n"),
		r400("LF after a field", "GET /p HTTP/1.1\r\n"+h+"\nX: 1\r\n\r\n"),
		r400("LF LF at the end", "GET /p HTTP/1.1\r\n"+h+"\n\n"),
		r400("LF at the end", "GET /p HTTP/1.1\r\n"+h+"\r\n\n"),
		r400("all LF", "GET /p HTTP/1.1\n"+h+"\n\n"),
		r400("CR in request line", "GET /p\r HTTP/1.1\r\n"+h+"\r\n\r\n"),
		r400("CR in a value", "GET /p HTTP/1.1\r\n"+h+"\r\nX: a\rb\r\n\r\n"),
		r400("CR before name", "GET /p HTTP/1.1\r\n"+h+"\r\n\rX: a\r\n\r\n"),
		r400("CR CR LF", "GET /p HTTP/1.1\r\n"+h+"\r\r\n\r\n"),
		r400("CR X at the end", "GET /p HTTP/1.1\r\n"+h+"\r\n\rX"),
	})
}

func TestRefusesMalformedFields(t *testing.T) {
	rows := []row{
		r400("folded with space", get("X: a", " b")),
		r400("folded with tab", get("X: a", "\tb")),
		r400("fold before first field", "GET /p HTTP/1.1\r\n X: 1\r\nHost: "+host+"\r\n\r\n"),
		r400("name over two lines", get("Content-", "Length: 5")),
		r400("space before colon", get("X : a")),
		r400("empty name", get(": a")),
		r400("no colon", get("Content-Length 10")),
		r400("space in name", get("X Y: a")),
		r400("delimiter in name", get("X(Y): a")),
		r400("0xFF in name", get("X\xff: a")),
	}
	for _, b := range []byte{0, 1, 7, 8, 0x0b, 0x0c, 0x1b, 0x1f, 0x7f} {
		rows = append(rows,
			r400(fmt.Sprintf("0x%02x in name", b), get("X"+string(b)+"Y: a")),
			r400(fmt.Sprintf("0x%02x in value", b), get("X: a"+string(b)+"b")),
			r400(fmt.Sprintf("0x%02x in target", b), "GET /a"+string(b)+"b HTTP/1.1\r\nHost: "+host+"\r\n\r\n"))
	}
	run(t, rows)
}

func TestRefusesMalformedRequestLines(t *testing.T) {
	line := func(s string) string { return s + "\r\nHost: " + host + "\r\n\r\n" }
	version := func(name, s string) row { return row{name, line(s), []int{400, 505}} }
	run(t, []row{
		r400("space in target", line("GET /a b HTTP/1.1")),
		r400("two spaces", line("GET  /a HTTP/1.1")),
		r400("two spaces before version", line("GET /a  HTTP/1.1")),
		r400("trailing space", line("GET /a HTTP/1.1 ")),
		r400("leading space", line(" GET /a HTTP/1.1")),
		r400("tab", line("GET\t/a\tHTTP/1.1")),
		version("1.10", "GET /a HTTP/1.10"), version("1.32", "GET /a HTTP/1.32"), version("2.0", "GET /a HTTP/2.0"),
		version("1.2", "GET /a HTTP/1.2"), version("lower case", "GET /a http/1.1"), version("HTTP/1,1", "GET /a HTTP/1,1"),
		version("HTTP/1", "GET /a HTTP/1"), version("HTTP/01.1", "GET /a HTTP/01.1"),
		{"HTTP/0.9", "GET /\r\n\r\n", []int{400, 505}},
		r400("method with delimiter", line("GE(T /a HTTP/1.1")),
		r400("empty method", line(" /a HTTP/1.1")),
		r400("TLS ClientHello", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"+strings.Repeat("\x00", 500)),
		r400("HTTP/2 preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").or(505),
	})
}

// or adds statuses that are right too.
func (r row) or(statuses ...int) row {
	r.statuses = append(r.statuses, statuses...)
	return r
}

func TestRefusesOtherTargetForms(t *testing.T) {
	line := func(s string) string { return s + " HTTP/1.1\r\nHost: " + host + "\r\n\r\n" }
	run(t, []row{
		r400("GET *", line("GET *")), r400("OPTIONS */x", line("OPTIONS */x")), r400("authority", line("GET "+host+":80")),
		{"CONNECT", "CONNECT " + host + ":80 HTTP/1.1\r\nHost: " + host + ":80\r\n\r\n", []int{405}},
		{"CONNECT with path", line("CONNECT /p"), []int{400, 405}},
		r400("no slash", line("GET p")), r400("fragment", line("GET /p#f")), r400("bad escape", line("GET /%zz")),
		r400("escaped NUL", line("GET /%00")), r400("above the root", line("GET /../x")), r400("above by escapes", line("GET /%2e%2e/x")),
		r400("other scheme", line("GET ftp://"+host+"/p")),
		r400("absolute, other host", line("GET http://b.example.test/p")),
		r400("absolute, userinfo", line("GET http://u@"+host+"/p")),
		r400("absolute, fragment", line("GET http://"+host+"/p#f")),
		r400("absolute, other port", line("GET http://"+host+":81/p")),
		r400("absolute, no host", line("GET http:///p")),
	})
}

func TestRefusesBadHosts(t *testing.T) {
	with := func(fields ...string) string {
		return "GET /p HTTP/1.1\r\n" + strings.Join(append(fields, "", ""), "\r\n")
	}
	run(t, []row{
		r400("missing", with("X: 1")), r400("two", with("Host: "+host, "Host: "+host)), r400("two different", with("Host: "+host, "Host: b")),
		r400("brace", with("Host: a{b")), r400("0xFF", with("Host: a\xffb")), r400("userinfo", with("Host: u@"+host)),
		r400("slash", with("Host: "+host+"/x")), r400("space", with("Host: a b")), r400("port of letters", with("Host: "+host+":http")),
		r400("port too big", with("Host: "+host+":65536")), r400("two ports", with("Host: "+host+":1:2")),
		r400("comma", with("Host: "+host+", b")), r400("open bracket", with("Host: [::1")),
	})
}

// TestAnEmptyHostIsServedByRulesWithoutHost: RFC 9112, 3.2 allows it for
// targets without authority; here no rule serves it.
func TestAnEmptyHostIsServedByRulesWithoutHost(t *testing.T) {
	w := newWorld(t)
	if m := rig.Do(t, w.Addr, "GET", "GET /p HTTP/1.1\r\nHost:\r\n\r\n"); m.Status != 404 {
		t.Errorf("empty Host -> %d, want 404", m.Status)
	}
	if n := w.backend.Bytes(); n != 0 {
		t.Errorf("backend saw %q", w.backend.Received())
	}
}

func TestRefusesBadExpectations(t *testing.T) {
	run(t, []row{
		{"other", post("x", "Content-Length: 1", "Expect: 200-ok"), []int{417}},
		{"obfuscated", post("x", "Content-Length: 1", "Expect: y 100-continue"), []int{417}},
		{"list", post("x", "Content-Length: 1", "Expect: 100-continue, x"), []int{417}},
	})
}

func TestRefusesAnUpgradeWithABody(t *testing.T) {
	ws := []string{"Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="}
	run(t, []row{
		r400("Content-Length", get(append(ws, "Content-Length: 5")...)+"hello"),
		r400("chunked", get(append(ws, "Transfer-Encoding: chunked")...)+"5\r\nhello\r\n"+empty),
	})
}
