package rig

import (
	"fmt"
	"net/netip"
	"time"
)

// Session is a client that sends one request after the other on a connection,
// and on a new one where that was closed. It sends nothing twice.
type Session struct {
	Addr   netip.AddrPort
	Host   string
	Prefix string // of the ids

	conn *Client
	n    int
}

// Do sends a request with an id of its own in X-Id, which is also the body of a
// POST.
func (s *Session) Do(method string) Shot {
	shot := Shot{ID: fmt.Sprintf("%s-%d", s.Prefix, s.n), Method: method, Start: time.Now()}
	s.n++
	if s.conn == nil {
		if s.conn, shot.Err = connect(s.Addr); shot.Err != nil {
			return shot
		}
	}
	lines, body := []string{method + " / HTTP/1.1", "Host: " + s.Host, "X-Id: " + shot.ID}, ""
	if method == "POST" {
		body = shot.ID
		lines = append(lines, fmt.Sprintf("Content-Length: %d", len(body)))
	}
	var m *Message
	if shot.Err = s.conn.TrySend(Lines(lines...) + body); shot.Err == nil {
		m, shot.Err = s.conn.TryRead(method, Deadline)
	}
	if shot.Took = time.Since(shot.Start); shot.Err == nil {
		shot.Status, shot.Body = m.Status, string(m.Body)
	}
	if shot.Err != nil || m.Value("Connection") == "close" {
		s.Close()
	}
	return shot
}

// Close closes the connection.
func (s *Session) Close() {
	if s.conn != nil {
		s.conn.Close()
		s.conn = nil
	}
}
