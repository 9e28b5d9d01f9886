package main

import (
	"fmt"
	"os"
	"path/filepath"
)

const haproxyConfig = `global
	nbthread 1
	maxconn 8000
defaults
	mode http
	timeout connect 5s
	timeout client 75s
	timeout server 60s
	timeout http-keep-alive 75s
	timeout http-request 10s
	http-reuse always
frontend in
	bind %s backlog 4096
	use_backend %%[req.hdr(host),lower]
%s`

const haproxyFields = `	unique-id-format %{+X}o%rt%ts%pid%ci%cp
	unique-id-header X-Request-ID
	http-request set-header X-Real-IP %[src]
	http-request set-header X-Forwarded-For %[src]
	http-request set-header X-Forwarded-Host %[req.hdr(host)]
	http-request set-header X-Forwarded-Port %[dst_port]
	http-request set-header X-Forwarded-Proto http
	http-request set-header X-Forwarded-Scheme http
	http-request set-header X-Scheme http
`

const haproxyBackend = `backend %[3]s
	server s%[1]d %[2]s pool-max-conn 320
`

func (p *proxy) startHAProxy(s *settings) error {
	front := ""
	if s.fields {
		front = haproxyFields
	}
	text := fmt.Sprintf(haproxyConfig, p.addr, front+each(s.origin, haproxyBackend))
	conf := filepath.Join(s.dir, p.name+".conf")
	if err := os.WriteFile(conf, []byte(text), 0o644); err != nil {
		return err
	}
	s.version[p.name] = firstLine("haproxy", "-v")
	var err error
	p.child, err = start(s.place, "haproxy", "-db", "-f", conf)
	return err
}
