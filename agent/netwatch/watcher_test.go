package netwatch

import (
	"net/netip"
	"testing"
	"testing/synctest"
	"time"
)

// TestNobodyIsLostWhileMessagesWait: one of them may tell of the route again.
func TestNobodyIsLostWhileMessagesWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []netip.Addr
		w := New(func(list []netip.Addr) { told = append(told, list...) })
		take := func(list ...message) {
			t.Helper()
			if err := w.take(list); err != nil {
				t.Fatal(err)
			}
		}
		w.table.setLink(link{index: vethA, kind: "veth", up: true, enable: true})
		w.table.setRoute(host(podA), hop{link: vethA}, false)
		take()
		w.table.removeRoute(host(podA), hop{link: vethA})
		take()
		time.Sleep(2 * grace)
		take(message{})
		if len(told) != 0 || w.Lost(podA) != 0 {
			t.Fatalf("told of %v while messages came", told)
		}
		take()
		if len(told) != 1 || told[0] != podA || w.Lost(podA) != 1 {
			t.Fatalf("told of %v, want %s when no more came", told, podA)
		}
		w.table.setRoute(host(podA), hop{link: vethA}, false)
		take(message{})
		if len(told) != 2 || w.Lost(podA) != 0 {
			t.Fatalf("told of %v, want %s once more: it is found", told, podA)
		}
		w.table.removeLink(vethA)
		take(message{})
		if s := w.Stats(); len(told) != 3 || s.Lost != 1 || s.Losses != 2 || s.Events != 3 {
			t.Fatalf("told of %v, %+v, want one loss more, at once", told, s)
		}
		w.end()
		if s := w.Stats(); len(told) != 4 || s.Lost != 0 || s.Losses != 2 || w.Lost(podA) != 0 {
			t.Fatalf("told of %v, %+v, want nothing to be lost when it has ended", told, s)
		}
	})
}
