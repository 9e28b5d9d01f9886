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

	admin    netip.AddrPort // of a weir
	children int            // how many processes it starts

	// change puts other services in force, by a reload where the proxy knows no
	// other way.
	change func([]service) error
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
	dir      string // for their files
	place    place  // of the proxies
	services []service
	fields   bool              // the others add the X- fields that Weir adds
	weir     map[string]string // binary of each proxy that is a weir
	policy   map[string]string // accept policy of each, if not the default
	workers  int               // of each
	version  map[string]string // filled as they start
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
	put := func(list []service) error {
		objects := []rig.Object{rig.Class()}
		for i, v := range list {
			name := fmt.Sprintf("s%d", i)
			objects = append(objects, rig.Svc("default", name, v.endpoints...)...)
			objects = append(objects, rig.Ingress("default", name, rig.R(v.host, "/", "Prefix", name)))
		}
		return dir.Put(objects...)
	}
	if err := put(s.services); err != nil {
		return err
	}
	p.change = put
	admin, err := rig.FreeAddr(rig.Loopback)
	if err != nil {
		return err
	}
	p.admin = admin
	s.version[p.name] = firstLine(binary, "version")
	args := []string{"agent", "--source", "dir", "--manifests", dir.Path,
		"--controller-class", rig.Controller, "--http-address", p.addr.String(),
		"--admin-address", admin.String(), "--workers", fmt.Sprint(s.workers), "--access-log", "off"}
	if policy := s.policy[p.name]; policy != "" {
		args = append(args, "--accept-policy", policy)
		if policy == "cpu" || policy == "least-loaded" {
			args = append(args, "--bpf", "require")
		}
	}
	p.child, err = start(s.place, binary, args...)
	return err
}

func maxHosts() int {
	n := 0
	for _, r := range rows {
		n = max(n, r.hosts)
	}
	return n
}

// service is what a host leads to.
type service struct {
	host      string
	endpoints []netip.AddrPort
}

// services returns that of each host, with one endpoint.
func (o *origin) services() []service {
	var list []service
	for i := range maxHosts() {
		list = append(list, service{hostName(i), []netip.AddrPort{o.endpoint(i)}})
	}
	return list
}

// each writes format once for every service, with its number, its endpoints,
// each in endpointFormat, and its host.
func each(list []service, format, endpointFormat string) string {
	var b strings.Builder
	for i, s := range list {
		var endpoints strings.Builder
		for n, e := range s.endpoints {
			fmt.Fprintf(&endpoints, endpointFormat, n, e)
		}
		fmt.Fprintf(&b, format, i, &endpoints, s.host)
	}
	return b.String()
}
