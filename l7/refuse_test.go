package l7

import (
	"fmt"
	"testing"

	"github.com/weirproxy/weir/l7/route"
)

// TestEndpointsThatRefuseCostNoTries: when most pods of a service end at once, the
// first requests meet one after the other.
func TestEndpointsThatRefuseCostNoTries(t *testing.T) {
	const refusing = 20
	for _, c := range []struct {
		name  string
		tries int
		want  int
	}{
		{"three tries", 3, 200},
		{"one try", 1, 502},
	} {
		t.Run(c.name, func(t *testing.T) {
			var addrs []string
			for range refusing {
				e := newEndpoint(t, hello("gone"))
				e.stop()
				addrs = append(addrs, e.addr)
			}
			good := newEndpoint(t, func(w *wire) {
				w.head()
				fmt.Fprint(w.TCPConn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
			})
			// Sorted by address, the one that works may stand anywhere: with one try
			// the first request must meet another.
			b := serve(t, Config{}, func(p *route.Policy) { p.Tries = c.tries }, append(addrs, good.addr)...)
			w := b.connect(t)
			w.send("POST / HTTP/1.1\r\nHost: a.example\r\nContent-Length: 2\r\n\r\nhi")
			r, _ := w.answer("POST")
			first := b.cluster.Endpoints().Active[0].Addr.String() == good.addr
			if r.StatusCode != c.want && !first {
				t.Errorf("answer %d, want %d", r.StatusCode, c.want)
			}
		})
	}
}
