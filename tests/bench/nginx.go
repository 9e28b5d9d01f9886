package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// nginxConfig takes the directory, the proxy's name, the size of its buffers
// and its double in KiB, the fields that it adds, and its servers.
const nginxConfig = `daemon off;
worker_processes 1;
pid %[1]s/%[2]s.pid;
error_log %[1]s/%[2]s.log crit;
events { worker_connections 16384; }
http {
	access_log off;
	keepalive_requests 100000000;
	keepalive_timeout 75s;
	server_names_hash_max_size 4096;
	client_max_body_size 1m;
	proxy_http_version 1.1;
	proxy_set_header Host $host;
	proxy_set_header Connection "";
%[5]s	proxy_connect_timeout 5s;
	proxy_buffer_size %[3]dk;
	proxy_buffers 8 %[3]dk;
	proxy_busy_buffers_size %[4]dk;
	proxy_max_temp_file_size 0;
	client_body_temp_path %[1]s/%[2]s1; proxy_temp_path %[1]s/%[2]s2; fastcgi_temp_path %[1]s/%[2]s3;
	uwsgi_temp_path %[1]s/%[2]s4; scgi_temp_path %[1]s/%[2]s5;
%[6]s}
`

const nginxFields = `	proxy_set_header X-Request-ID $request_id;
	proxy_set_header X-Real-IP $remote_addr;
	proxy_set_header X-Forwarded-For $remote_addr;
	proxy_set_header X-Forwarded-Host $host;
	proxy_set_header X-Forwarded-Port $server_port;
	proxy_set_header X-Forwarded-Proto $scheme;
	proxy_set_header X-Forwarded-Scheme $scheme;
	proxy_set_header X-Scheme $scheme;
`

const nginxServer = `	upstream s%[1]d { %[2]skeepalive 320; keepalive_requests 10000; keepalive_timeout 55s; }
	server { listen LISTEN; server_name %[3]s; location / { proxy_pass http://s%[1]d; } }
`

const nginxEndpoint = "server %[2]s; "

// writeNginx writes the configuration for list and returns its file.
func (p *proxy) writeNginx(s *settings, bufferKiB int, list []service) (string, error) {
	fields := ""
	if s.fields {
		fields = nginxFields
	}
	servers := strings.ReplaceAll(each(list, nginxServer, nginxEndpoint), "LISTEN", p.addr.String())
	text := fmt.Sprintf(nginxConfig, s.dir, p.name, bufferKiB, 2*bufferKiB, fields, servers)
	conf := filepath.Join(s.dir, p.name+".conf")
	return conf, os.WriteFile(conf, []byte(text), 0o644)
}

func (p *proxy) startNginx(s *settings, bufferKiB int) error {
	conf, err := p.writeNginx(s, bufferKiB, s.services)
	if err != nil {
		return err
	}
	s.version[p.name] = firstLine("nginx", "-v")
	p.children = 1
	p.change = func(list []service) error {
		if _, err := p.writeNginx(s, bufferKiB, list); err != nil {
			return err
		}
		return p.cmd.Process.Signal(syscall.SIGHUP)
	}
	p.child, err = start(s.place, "nginx", "-c", conf)
	return err
}
