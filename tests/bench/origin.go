package main

import (
	"bytes"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"

	"github.com/weirproxy/weir/tests/rig"
)

// origin is the backend of all proxies: one nginx worker that serves files from
// memory. It listens on every loopback address, so that each of 100 services
// can have an endpoint of its own.
type origin struct {
	*child
	port uint16
}

const originConfig = `daemon off;
worker_processes 1;
pid %[1]s/origin.pid;
error_log %[1]s/origin.log crit;
events { worker_connections 8192; }
http {
	access_log off;
	sendfile on;
	tcp_nopush on;
	keepalive_requests 100000000;
	keepalive_timeout 300s;
	open_file_cache max=100;
	client_body_temp_path %[1]s/o1; proxy_temp_path %[1]s/o2; fastcgi_temp_path %[1]s/o3;
	uwsgi_temp_path %[1]s/o4; scgi_temp_path %[1]s/o5;
	server {
		listen 0.0.0.0:%[2]d backlog=4096;
		root %[1]s/www;
	}
}
`

// endpoint returns the address of service i.
func (o *origin) endpoint(i int) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 1, byte(1 + i)}), o.port)
}

func startOrigin(dir string, where place) (*origin, error) {
	addr, err := rig.FreeAddr(netip.IPv4Unspecified())
	if err != nil {
		return nil, err
	}
	www := filepath.Join(dir, "www")
	if err := os.Mkdir(www, 0o755); err != nil {
		return nil, err
	}
	for _, r := range rows {
		if err := os.WriteFile(filepath.Join(www, r.path), bytes.Repeat([]byte("w"), int(r.bodyBytes)), 0o644); err != nil {
			return nil, err
		}
	}
	conf := filepath.Join(dir, "origin.conf")
	if err := os.WriteFile(conf, fmt.Appendf(nil, originConfig, dir, addr.Port()), 0o644); err != nil {
		return nil, err
	}
	c, err := start(where, "nginx", "-c", conf)
	if err != nil {
		return nil, err
	}
	o := &origin{child: c, port: addr.Port()}
	if err := o.await(o.endpoint(0)); err != nil {
		o.stop()
		return nil, err
	}
	return o, nil
}
