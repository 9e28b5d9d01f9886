package feature

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/weirproxy/weir/tests/rig"
)

// pool is an agent that sends host to one service with several recorders, named
// b0, b1 and so on. When the test ends nothing may be left of its connections.
type pool struct {
	*rig.Agent
	backends []*rig.Recorder
}

// settings are annotations without their prefix.
type settings map[string]string

func newPool(t *testing.T, n int, annotations settings, flags ...string) *pool {
	t.Helper()
	p := &pool{}
	var addrs []netip.AddrPort
	for i := range n {
		b := rig.NewRecorder(t, fmt.Sprintf("b%d", i))
		p.backends, addrs = append(p.backends, b), append(addrs, b.Addr)
	}
	p.Agent = rig.StartAgent(t, service(annotations, addrs...), append([]string{"--workers", "1"}, flags...)...)
	p.IdleAtEnd()
	return p
}

// service returns objects that send host to addrs, each in a slice of its own.
func service(annotations settings, addrs ...netip.AddrPort) []rig.Object {
	ingress := rig.Ingress("t1", "i", rig.R(host, "/", "Prefix", "s"))
	for name, value := range annotations {
		ingress.Annotate(rig.Nginx+name, value)
	}
	objects := []rig.Object{rig.Service("t1", "s"), ingress}
	for i, a := range addrs {
		objects = append(objects, rig.Slice("t1", fmt.Sprintf("s-%d", i), "s", "", int(a.Port()), rig.Ready(a.Addr().String())...))
	}
	return objects
}

// handle gives all backends the same handler.
func (p *pool) handle(h func(*rig.Exchange)) {
	for _, b := range p.backends {
		b.Handle(h)
	}
}

// hits returns how many requests each backend has received.
func (p *pool) hits() []int {
	var n []int
	for _, b := range p.backends {
		n = append(n, len(b.Requests()))
	}
	return n
}

func (p *pool) forget() {
	for _, b := range p.backends {
		b.Forget()
	}
}

// post returns a request with a body in bytes.
func post(method, target, body string, fields ...string) string {
	head := []string{method + " " + target + " HTTP/1.1", "Host: " + host, fmt.Sprintf("Content-Length: %d", len(body))}
	return rig.Lines(append(head, fields...)...) + body
}
