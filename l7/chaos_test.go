package l7

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirproxy/weir/l7/route"
)

// chaoticOrigin answers each request with its id in field and body, in random
// framings and pieces, and now and then breaks off, resets, or adds what nobody
// asked for. It returns its address and what it executed, by id.
func chaoticOrigin(t *testing.T, executed *sync.Map) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go chaoticConn(c.(*net.TCPConn), executed)
		}
	}()
	return l.Addr().String()
}

func chaoticConn(c *net.TCPConn, executed *sync.Map) {
	defer c.Close()
	in := bufio.NewReader(c)
	for {
		r, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		id := r.Header.Get("Id")
		if rand.IntN(20) == 0 { // without reading the body
			c.SetLinger(0)
			return
		}
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return
		}
		count, _ := executed.LoadOrStore(r.Method+" "+id, new(atomic.Int32))
		count.(*atomic.Int32).Add(1)
		if rand.IntN(30) == 0 {
			return // executed, not answered
		}
		body := strings.Repeat(id+"\n", 1+rand.IntN(1+rand.IntN(20_000)))
		var b strings.Builder
		if rand.IntN(4) == 0 {
			b.WriteString("HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n")
		}
		last, framing := rand.IntN(10) == 0, rand.IntN(3)
		fmt.Fprintf(&b, "HTTP/1.1 200 OK\r\nId: %s\r\n", id)
		switch framing {
		case 0:
			fmt.Fprintf(&b, "Content-Length: %d\r\n\r\n%s", len(body), body)
		case 1:
			b.WriteString("Transfer-Encoding: chunked\r\n\r\n")
			for p := body; len(p) > 0; {
				n := min(len(p), 1+rand.IntN(9000))
				fmt.Fprintf(&b, "%x;ext=1\r\n%s\r\n", n, p[:n])
				p = p[n:]
			}
			b.WriteString("0\r\nTrailing: 1\r\n\r\n")
		case 2:
			fmt.Fprintf(&b, "Connection: close\r\n\r\n%s", body)
			last = true
		}
		if rand.IntN(20) == 0 {
			b.WriteString("HTTP/1.1 200 OK\r\nId: stray\r\nContent-Length: 5\r\n\r\nstray")
			if framing == 2 {
				return
			}
		}
		out := b.String()
		if rand.IntN(25) == 0 {
			out = out[:rand.IntN(len(out))]
			last = true
		}
		for len(out) > 0 {
			n := min(len(out), 1+rand.IntN(1+rand.IntN(60_000)))
			if _, err := c.Write([]byte(out[:n])); err != nil {
				return
			}
			out = out[n:]
		}
		if last {
			return
		}
	}
}

// chaoticClient sends requests with ids of its own, pipelines some, reads slowly
// or not to the end, and fails the test if an answer carries another's id.
func chaoticClient(t *testing.T, addr string, client int, end time.Time, good *atomic.Int32) {
	for n := 0; time.Now().Before(end); {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Error(err)
			return
		}
		c.SetDeadline(time.Now().Add(20 * time.Second))
		in := bufio.NewReaderSize(c, 1+rand.IntN(8000))
		for range 1 + rand.IntN(10) {
			var ids, methods []string
			var b strings.Builder
			for range 1 + rand.IntN(3) {
				n++
				id, method := fmt.Sprintf("c%d-%d", client, n), "GET"
				switch rand.IntN(4) {
				case 0:
					method = "POST"
					body := strings.Repeat("x", rand.IntN(1+rand.IntN(200_000)))
					fmt.Fprintf(&b, "POST /%s HTTP/1.1\r\nHost: a\r\nId: %s\r\nContent-Length: %d\r\n\r\n%s", id, id, len(body), body)
				case 1:
					method = "PUT"
					fmt.Fprintf(&b, "PUT /%s HTTP/1.1\r\nHost: a\r\nId: %s\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", id, id)
				default:
					fmt.Fprintf(&b, "GET /%s HTTP/1.1\r\nHost: a\r\nId: %s\r\n\r\n", id, id)
				}
				ids, methods = append(ids, id), append(methods, method)
			}
			go io.WriteString(c, b.String())
			if rand.IntN(15) == 0 {
				break // gone without reading
			}
			if !chaoticAnswers(t, in, ids, methods, good) {
				break
			}
		}
		c.Close()
	}
}

// chaoticAnswers reads the answers to ids and reports whether the connection is
// good for more.
func chaoticAnswers(t *testing.T, in *bufio.Reader, ids, methods []string, good *atomic.Int32) bool {
	for i, id := range ids {
		req := &http.Request{Method: methods[i]}
		resp, err := http.ReadResponse(in, req)
		for err == nil && resp.StatusCode == 103 {
			resp, err = http.ReadResponse(in, req)
		}
		if err != nil {
			return false
		}
		if resp.StatusCode != 200 {
			io.Copy(io.Discard, resp.Body)
			if resp.StatusCode != 502 && resp.StatusCode != 504 {
				t.Errorf("%s %s: status %d", methods[i], id, resp.StatusCode)
			}
			if resp.Close {
				return false
			}
			continue
		}
		if got := resp.Header.Get("Id"); got != id {
			t.Errorf("%s %s got the answer to %q", methods[i], id, got)
			return false
		}
		body, err := io.ReadAll(resp.Body)
		if strings.Trim(strings.ReplaceAll(string(body), id+"\n", ""), id) != "" {
			t.Errorf("%s %s: the body holds something else", methods[i], id)
			return false
		}
		if err != nil || resp.Close {
			return false
		}
		good.Add(1)
	}
	return true
}

func TestAnswersAreNeverMixedUpInChaos(t *testing.T) {
	var executed sync.Map
	var origins []string
	for range 4 {
		origins = append(origins, chaoticOrigin(t, &executed))
	}
	b := serve(t, Config{Workers: 2}, func(p *route.Policy) { p.BodyBytesMax = 0 }, origins...)
	addr := b.server.Addresses()[0].String()
	end := time.Now().Add(4 * time.Second)
	var clients sync.WaitGroup
	var good atomic.Int32
	for i := range 16 {
		clients.Go(func() { chaoticClient(t, addr, i, end, &good) })
	}
	clients.Go(func() { // endpoints come and go meanwhile
		for i := 0; time.Now().Before(end); i++ {
			k := i % len(origins)
			b.endpoints(append(append([]string{}, origins[:k]...), origins[k+1:]...)...)
			<-time.After(20 * time.Millisecond)
		}
		b.endpoints(origins...)
	})
	clients.Wait()
	executed.Range(func(key, count any) bool {
		if n := count.(*atomic.Int32).Load(); n > 1 && strings.HasPrefix(key.(string), "POST") {
			t.Errorf("%s was executed %d times", key, n)
		}
		return true
	})
	if good.Load() < 100 {
		t.Errorf("only %d good answers", good.Load())
	}
	t.Logf("%d good answers", good.Load())
	for deadline := time.Now().Add(10 * time.Second); ; {
		left, idle := WorkerStats{}, uint64(0)
		for _, w := range b.server.Stats().Workers {
			left.Connections += w.Connections
			left.Active += w.Active
			left.UpstreamOpen += w.UpstreamOpen
			idle += w.UpstreamIdle
		}
		if left.Connections == 0 && left.Active == 0 && left.UpstreamOpen == idle {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("left over: %d connections, %d exchanges, %d endpoint connections of which %d idle", left.Connections, left.Active, left.UpstreamOpen, idle)
		}
		<-time.After(20 * time.Millisecond)
	}
}
