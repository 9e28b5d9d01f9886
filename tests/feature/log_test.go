package feature

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/weirproxy/weir/tests/rig"
)

// logged returns the access log of an agent after three requests: 200, 404 and
// a POST with a body.
func logged(t *testing.T, format string) []string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "access.log")
	w := newWorld(t, "--access-log", format, "--access-log-file", file)
	c := rig.Dial(t, w.Addr)
	c.Send(rig.Get(host, `/x?q="1`, "User-Agent: test/1", `Referer: http://r.test/"quoted"`))
	c.Read("GET")
	c.Send(rig.Get("unknown.test", "/y"))
	c.Read("GET")
	c.Send("POST /z HTTP/1.1\r\nHost: " + host + "\r\nContent-Length: 5\r\n\r\nhello")
	c.Read("POST")
	var lines []string
	rig.Eventually(t, rig.Deadline, "three lines", func() error {
		b, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		lines = strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
		if len(lines) != 3 || lines[0] == "" {
			return fmt.Errorf("log has %q", b)
		}
		return nil
	})
	return lines
}

func TestTheJSONAccessLogParses(t *testing.T) {
	for i, line := range logged(t, "json") {
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Errorf("line %q: %v", line, err)
			continue
		}
		want := []float64{200, 404, 200}[i]
		if m["status"] != want {
			t.Errorf("status %v in %q, want %v", m["status"], line, want)
		}
		if target := []string{`/x?q="1`, "/y", "/z"}[i]; !contains(m, target) {
			t.Errorf("%q does not name the target %s", line, target)
		}
	}
}

func contains(m map[string]any, value string) bool {
	for _, v := range m {
		if s, ok := v.(string); ok && strings.Contains(s, value) {
			return true
		}
	}
	return false
}

// nginxLine is ingress-nginx's upstreaminfo format: $remote_addr -
// $remote_user [$time_local] "$request" $status $body_bytes_sent
// "$http_referer" "$http_user_agent" $request_length $request_time
// [$proxy_upstream_name] [$proxy_alternative_upstream_name] $upstream_addr
// $upstream_response_length $upstream_response_time $upstream_status $req_id.
var nginxLine = regexp.MustCompile(`^127\.0\.0\.1 - - \[\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d [+-]\d{4}\] "([^"]*)" (\d{3}) \d+ "([^"]*)" "([^"]*)" \d+ \d+\.\d{3} \[([^]]*)\] \[[^]]*\] (\S+) (\S+) (\S+) (\S+) ([0-9a-f]{32}|-)$`)

func TestTheNginxAccessLogHasItsFields(t *testing.T) {
	lines := logged(t, "nginx")
	var f [][]string
	for _, line := range lines {
		m := nginxLine.FindStringSubmatch(line)
		if m == nil {
			t.Fatalf("line %q does not have the format", line)
		}
		f = append(f, m)
	}
	if f[0][1] != `GET /x?q=\x221 HTTP/1.1` || f[0][2] != "200" || f[0][4] != "test/1" {
		t.Errorf("first line: %q", f[0][1:])
	}
	if strings.Contains(f[0][3], `"`) || !strings.Contains(f[0][3], `\x22quoted\x22`) {
		t.Errorf("quotes in the referer are not escaped: %q", lines[0])
	}
	if f[1][2] != "404" || f[1][6] != "-" || f[1][9] != "-" {
		t.Errorf("second line, without upstream: %q", f[1][1:])
	}
	if len(f[0][10]) != 32 || f[0][10] == f[2][10] {
		t.Errorf("request ids %q and %q, want two different ones", f[0][10], f[2][10])
	}
	if f[2][2] != "200" || !strings.HasPrefix(f[2][6], "127.0.0.1:") || f[2][9] != "200" || !strings.Contains(f[2][5], "t1-a-80") {
		t.Errorf("third line: %q", f[2][1:])
	}
}
