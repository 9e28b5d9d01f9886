package main

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
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
	retries 3
	option redispatch
	retry-on conn-failure empty-response
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
%[2]s`

const haproxyEndpoint = `	server s%d %s pool-max-conn 320
`

// writeHAProxy writes the configuration for list and returns its file.
func (p *proxy) writeHAProxy(s *settings, list []service) (string, error) {
	front := ""
	if s.fields {
		front = haproxyFields
	}
	text := fmt.Sprintf(haproxyConfig, p.addr, front+each(list, haproxyBackend, haproxyEndpoint))
	conf := filepath.Join(s.dir, p.name+".conf")
	return conf, os.WriteFile(conf, []byte(text), 0o644)
}

func (p *proxy) startHAProxy(s *settings) error {
	conf, err := p.writeHAProxy(s, s.services)
	if err != nil {
		return err
	}
	s.version[p.name] = firstLine("haproxy", "-v")
	p.change = func(list []service) error {
		if _, err := p.writeHAProxy(s, list); err != nil {
			return err
		}
		return p.cmd.Process.Signal(syscall.SIGUSR2)
	}
	p.children = 1
	p.child, err = start(s.place, "haproxy", "-W", "-db", "-f", conf)
	return err
}
