package agent

import (
	"fmt"
	"strings"

	"github.com/weirproxy/weir/k8s"
)

// Question is a request that nobody sends, and the objects that would route it.
type Question struct {
	Manifests string
	Objects   k8s.Options
	Method    string
	URL       string   // "http://host[:port]/path?query"; the scheme may be missing
	Header    []string // "Name: value"; a Host replaces that of the URL
}

// Check reports what is wrong with the question itself.
func (q Question) Check() error {
	_, err := q.head()
	return err
}

// split returns the authority and the target of the URL. Unlike package net/url
// it changes and refuses nothing: that is the data path's part.
func (q Question) split() (authority, target string) {
	rest := q.URL
	if _, after, ok := strings.Cut(rest, "://"); ok {
		rest = after
	}
	authority, target = rest, "/"
	if i := strings.IndexAny(rest, "/?"); i >= 0 {
		authority, target = rest[:i], rest[i:]
		if target[0] == '?' {
			target = "/" + target
		}
	}
	return authority, target
}

func (q Question) target() string {
	_, target := q.split()
	return target
}

// head writes the request as a client would. A fragment is the client's own
// business and not sent (RFC 9110, 4.1).
func (q Question) head() ([]byte, error) {
	scheme, _, ok := strings.Cut(q.URL, "://")
	if ok && !strings.EqualFold(scheme, "http") {
		return nil, fmt.Errorf("URL %q: want http://, the only scheme that this version serves", q.URL)
	}
	if q.Method == "" || q.URL == "" {
		return nil, fmt.Errorf("method %q and URL %q: want both", q.Method, q.URL)
	}
	q.URL, _, _ = strings.Cut(q.URL, "#")
	authority, target := q.split()
	var fields strings.Builder
	host := "Host: " + authority + "\r\n"
	for _, h := range q.Header {
		name, _, ok := strings.Cut(h, ":")
		if !ok {
			return nil, fmt.Errorf("header %q: want Name: value", h)
		}
		if strings.EqualFold(name, "Host") {
			host = ""
		}
		fields.WriteString(h + "\r\n")
	}
	return []byte(q.Method + " " + target + " HTTP/1.1\r\n" + host + fields.String() + "\r\n"), nil
}
