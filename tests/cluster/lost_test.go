package cluster

import (
	"errors"
	"fmt"
	"net"
	"os"
	"testing"
	"time"

	"github.com/weirproxy/weir/tests/pods"
	"github.com/weirproxy/weir/tests/rig"
)

// A pod that dies with its node closes no connection: without this, the tests of
// sudden death would be tests of a crash.
func TestAPodThatDiesWithItsNodeSaysNothing(t *testing.T) {
	w := newWorld(t)
	w.addNodes(pods.Bridged)
	d := w.addDeployment("s", "s", 1, nil)
	d.settled(1)
	lost := d.pods()[0]
	conn, err := net.DialTimeout("tcp", fmt.Sprintf("%s:%d", lost.Status.PodIP, pods.Port), rig.Deadline)
	w.must(err)
	defer conn.Close()
	w.must(w.kubelet.Lose(lost.Namespace, lost.Name))
	w.must(conn.SetReadDeadline(time.Now().Add(time.Second)))
	if n, err := conn.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("read %d bytes, %v; want silence", n, err)
	}
}
