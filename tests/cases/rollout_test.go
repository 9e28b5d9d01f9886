package cases

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/weirproxy/weir/tests/rig"
)

// TestCB67EndpointUpdatesDoNotFallBehind is the case at a quarter of its size:
// all endpoints of 50 services are replaced within 5 s; the old ones die 1 s
// after they were marked terminating.
func TestCB67EndpointUpdatesDoNotFallBehind(t *testing.T) {
	const services, replicas, sampled = 50, 4, 20
	port, err := rig.FreeAddr(netip.MustParseAddr("127.1.0.1"))
	if err != nil {
		t.Fatal(err)
	}
	address := func(generation, service, replica int) netip.AddrPort {
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, byte(1 + generation), byte(service), byte(1 + replica)}), port.Port())
	}
	pods := map[netip.AddrPort]*rig.Recorder{}
	generation := func(g, s int) (list []rig.Endpoint) {
		for r := range replicas {
			addr := address(g, s, r)
			if pods[addr] == nil {
				pods[addr] = rig.NewRecorderAt(t, addr.String(), addr)
			}
			list = append(list, rig.Endpoint{IP: addr.Addr().String(), Ready: new(true)})
		}
		return list
	}
	slice := func(s int, e []rig.Endpoint) rig.Object {
		name := fmt.Sprintf("s%d", s)
		return rig.Slice("t1", name+"-1", name, "", int(port.Port()), e...)
	}
	host := func(s int) string { return fmt.Sprintf("s%d.example.test", s) }
	var objects []rig.Object
	for s := range services {
		name := fmt.Sprintf("s%d", s)
		objects = append(objects, rig.Service("t1", name), slice(s, generation(0, s)), rig.Ingress("t1", name, rig.R(host(s), "/", "Prefix", name)))
	}
	a := rig.StartAgent(t, objects)
	var pulses []*rig.Pulse
	for s := range sampled {
		pulses = append(pulses, (&rig.Pulse{Addr: a.Addr, Host: host(s), Target: "/", Rate: 20}).Start())
	}

	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	var dying []*time.Timer
	for s := range services {
		<-tick.C
		e := generation(1, s)
		for r := range replicas {
			old := address(0, s, r)
			e = append(e, rig.Endpoint{IP: old.Addr().String(), Ready: new(false), Serving: new(true), Terminating: new(true)})
			pod := pods[old]
			dying = append(dying, time.AfterFunc(time.Second, pod.Close))
		}
		a.Put(slice(s, e))
		if s >= 15 { // the old ones are removed after they died
			a.Put(slice(s-15, generation(1, s-15)))
		}
	}
	for range 15 {
		<-tick.C
	}
	for _, timer := range dying {
		if timer.Stop() {
			t.Error("an old endpoint had not died at the end")
		}
	}
	for s, p := range pulses {
		shots := p.Stop()
		if bad := rig.Failed(shots, 200); len(bad) != 0 {
			t.Errorf("host %s: %d of %d requests failed, first: %v", host(s), len(bad), len(shots), bad[0])
		}
		if len(shots) < 60 {
			t.Errorf("host %s: only %d requests were made", host(s), len(shots))
		}
	}
}
