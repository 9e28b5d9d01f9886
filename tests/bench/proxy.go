package main

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/weirproxy/weir/tests/rig"
)

// proxy is one of the programs that are compared.
type proxy struct {
	*child
	name string
	addr netip.AddrPort
	pids []int // of all its processes

	children int // how many processes it starts
}

// cpu returns the CPU time that the proxy's processes have used.
func (p *proxy) cpu() (time.Duration, error) {
	var sum time.Duration
	for _, pid := range p.pids {
		t, err := rig.CPUTime(pid)
		if err != nil {
			return 0, err
		}
		sum += t
	}
	return sum, nil
}

// rss returns the resident memory of the proxy's processes in bytes.
func (p *proxy) rss() (int64, error) {
	var sum int64
	for _, pid := range p.pids {
		n, err := rig.RSS(pid)
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return sum, nil
}

// settings are what the proxies have in common.
type settings struct {
	dir     string // for their files
	place   place  // of the proxies
	origin  *origin
	fields  bool              // the others add the X- fields that Weir adds
	weir    map[string]string // binary of each proxy that is a weir
	version map[string]string // filled as they start
}

// startProxy starts the proxy name: nginx-4k, nginx-64k, haproxy or a key of
// s.weir.
func startProxy(s *settings, name string) (*proxy, error) {
	addr, err := rig.FreeAddr(rig.Loopback)
	if err != nil {
		return nil, err
	}
	p := &proxy{name: name, addr: addr}
	switch binary, isWeir := s.weir[name]; {
	case isWeir:
		err = p.startWeir(s, binary)
	case name == "nginx-4k":
		err = p.startNginx(s, 4)
	case name == "nginx-64k":
		err = p.startNginx(s, 64)
	case name == "haproxy":
		err = p.startHAProxy(s)
	default:
		err = fmt.Errorf("unknown proxy %q: want weir, nginx-4k, nginx-64k or haproxy", name)
	}
	if err != nil {
		return nil, err
	}
	if err := p.ready(); err != nil {
		p.stop()
		return nil, err
	}
	return p, nil
}

func (p *proxy) ready() error {
	if err := p.await(p.addr); err != nil {
		return err
	}
	// nginx listens before its worker exists.
	for end := time.Now().Add(rig.Deadline); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		children, err := rig.Children(p.cmd.Process.Pid)
		if err != nil {
			return err
		}
		if len(children) >= p.children {
			p.pids = append(children, p.cmd.Process.Pid)
			return nil
		}
	}
	return fmt.Errorf("%s has not started its worker: %s", p.name, &p.log)
}

// busiest returns the process that does the work.
func (p *proxy) busiest() int {
	best, most := p.pids[0], time.Duration(-1)
	for _, pid := range p.pids {
		if t, err := rig.CPUTime(pid); err == nil && t > most {
			best, most = pid, t
		}
	}
	return best
}

func (p *proxy) startWeir(s *settings, binary string) error {
	dir := rig.Dir{Path: filepath.Join(s.dir, p.name)}
	if err := os.Mkdir(dir.Path, 0o755); err != nil {
		return err
	}
	objects := []rig.Object{rig.Class()}
	for i := range maxHosts() {
		name := fmt.Sprintf("s%d", i)
		objects = append(objects, rig.Svc("default", name, s.origin.endpoint(i))...)
		objects = append(objects, rig.Ingress("default", name, rig.R(hostName(i), "/", "Prefix", name)))
	}
	if err := dir.Put(objects...); err != nil {
		return err
	}
	admin, err := rig.FreeAddr(rig.Loopback)
	if err != nil {
		return err
	}
	s.version[p.name] = firstLine(binary, "version")
	p.child, err = start(s.place, binary, "agent", "--source", "dir", "--manifests", dir.Path,
		"--controller-class", rig.Controller, "--http-address", p.addr.String(),
		"--admin-address", admin.String(), "--workers", "1", "--access-log", "off")
	return err
}

func maxHosts() int {
	n := 0
	for _, r := range rows {
		n = max(n, r.hosts)
	}
	return n
}

// each writes format once for every service, with its number, endpoint and
// host.
func each(o *origin, format string) string {
	var b strings.Builder
	for i := range maxHosts() {
		fmt.Fprintf(&b, format, i, o.endpoint(i), hostName(i))
	}
	return b.String()
}
