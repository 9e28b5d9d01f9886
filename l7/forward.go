package l7

import (
	"bytes"
	"encoding/hex"
	"net/netip"

	"golang.org/x/sys/unix"

	"github.com/weirproxy/weir/l7/http1"
	"github.com/weirproxy/weir/l7/route"
	"github.com/weirproxy/weir/l7/upstream"
)

// appendHead writes the request's head, as the endpoint gets it, to the front of
// out: the client's fields in their order and spelling, without those that
// concern one connection only; then what ingress-nginx adds; then the framing. It
// fails if that is more than HeadBytesCap, or if the request goes round.
func (x *exchange) appendHead(r *http1.Request) *http1.Error {
	w := x.w
	size := 1024 + len(r.MethodText) + len(r.Target) + len(r.Path) + 2*len(r.Authority)
	for i := range r.Len() {
		size += 2 * (len(r.Name(i)) + len(r.Value(i)) + 4)
	}
	x.out.room(&w.buffers, min(size, bufferMax))
	b := x.out.buf[:0]
	b = append(b, r.MethodText...)
	b = append(b, ' ')
	if r.Rewritten {
		b = append(append(b, r.Path...), r.Query...)
	} else {
		b = append(b, r.Target...)
	}
	b = append(b, " HTTP/1.1\r\nHost: "...)
	host := r.Authority
	if len(host) == 0 {
		host = x.c.localAddress()
	}
	b = append(b, host...)
	b = append(b, crlf...)
	passed := 0
	for i := range r.Len() {
		switch {
		case isHops(r, i):
			passed = max(passed, hopsOf(r.Value(i)))
		case !x.replaces(r, i):
			b = http1.AppendField(b, r.Name(i), r.Value(i))
		}
	}
	if passed >= hopsMax {
		return errLoop
	}
	b = appendHops(x.appendForwarded(b, r, host), passed)
	switch r.Body {
	case http1.BodyLength:
		b = append(b, "Content-Length: "...)
		b = http1.AppendUint(b, uint64(r.Length))
		b = append(b, crlf...)
	case http1.BodyChunked:
		b = append(b, "Transfer-Encoding: chunked\r\n"...)
	}
	if r.TETrailers && r.Upgrade == nil {
		b = append(b, "Connection: TE\r\nTE: trailers\r\n"...)
	}
	if r.Upgrade != nil {
		x.upgrade = string(r.Upgrade)
		b = append(b, "Connection: Upgrade\r\nUpgrade: "...)
		b = append(b, r.Upgrade...)
		b = append(b, crlf...)
		if r.WebSocketKey != nil {
			http1.WebSocketAccept(x.accept[:0], r.WebSocketKey)
		}
	}
	b = append(b, crlf...)
	if len(b) > HeadBytesCap {
		return errHeadTooLong
	}
	if cap(b) != cap(x.out.buf) { // it outgrew the estimate
		x.out.reset(&w.buffers)
		if !x.out.append(&w.buffers, b) {
			return errOverflow
		}
		return nil
	}
	x.out.start, x.out.end = 0, len(b)
	return nil
}

// replaces reports whether field i is left out of the forwarded head: it concerns
// this connection only, or appendHead writes it itself.
func (x *exchange) replaces(r *http1.Request, i int) bool {
	if r.Drop(i) {
		return true
	}
	switch r.ID(i) {
	case http1.FieldHost, http1.FieldContentLength, http1.FieldXForwardedFor, http1.FieldXForwardedHost,
		http1.FieldXForwardedPort, http1.FieldXForwardedProto, http1.FieldXForwardedScheme, http1.FieldXScheme,
		http1.FieldXRealIP, http1.FieldXRequestID, http1.FieldXOriginalForwardedFor:
		return true
	case http1.FieldSecWebSocketKey, http1.FieldSecWebSocketVersion:
		return r.Upgrade == nil
	}
	return r.Underscore(i) && !x.w.server.config.Forwarded.Underscores
}

// appendForwarded adds the fields that tell the endpoint about the client, as
// ingress-nginx sends them. What an untrusted client says of itself is replaced.
func (x *exchange) appendForwarded(b []byte, r *http1.Request, host []byte) []byte {
	w, peer := x.w, x.c.addr.Addr()
	f := &w.server.config.Forwarded
	trusted := len(f.Trust) > 0 && contains(f.Trust, peer)
	sent := w.fieldLines(r, http1.FieldXForwardedFor)
	client := peer
	if trusted {
		client = realClient(sent, peer, f.Trust)
	}
	given := func(id http1.FieldID, or []byte) []byte {
		if v := r.Get(id); trusted && len(v) > 0 {
			return v
		}
		return or
	}
	b = x.appendRequestID(b, r)
	b = append(b, "X-Real-IP: "...)
	b = client.AppendTo(b)
	b = append(b, "\r\nX-Forwarded-For: "...)
	if f.AppendFull && len(sent) > 0 {
		b = append(b, sent...)
		b = append(b, ", "...)
		b = peer.AppendTo(b)
	} else {
		b = client.AppendTo(b)
	}
	var port [5]byte
	scheme := given(http1.FieldXForwardedProto, schemeHTTP)
	b = append(b, "\r\nX-Forwarded-Host: "...)
	b = append(b, given(http1.FieldXForwardedHost, host)...)
	b = append(b, "\r\nX-Forwarded-Port: "...)
	b = append(b, given(http1.FieldXForwardedPort, http1.AppendUint(port[:0], uint64(x.c.l.addr.Port())))...)
	b = append(b, "\r\nX-Forwarded-Proto: "...)
	b = append(b, scheme...)
	b = append(b, "\r\nX-Forwarded-Scheme: "...)
	b = append(b, scheme...)
	b = append(b, "\r\nX-Scheme: "...)
	b = append(b, scheme...)
	b = append(b, crlf...)
	if len(sent) > 0 {
		b = http1.AppendField(b, nameOriginalFor, sent)
	}
	return b
}

// appendRequestID passes the client's request id on if it is plain, or makes one.
func (x *exchange) appendRequestID(b []byte, r *http1.Request) []byte {
	w := x.w
	id := r.Get(http1.FieldXRequestID)
	if plainID(id) {
		w.log.noteID(x, id)
		return http1.AppendField(b, nameRequestID, id)
	}
	if w.server.config.Forwarded.NoRequestID {
		return b
	}
	b = append(b, "X-Request-ID: "...)
	b = w.appendID(b)
	w.log.noteID(x, b[len(b)-32:])
	return append(b, crlf...)
}

// fieldLines returns the value of a list field; several lines of it are one list
// (RFC 9110, 5.3). Valid until the next call.
func (w *Worker) fieldLines(r *http1.Request, id http1.FieldID) []byte {
	value := r.Get(id)
	if value == nil {
		return nil
	}
	lines := 0
	for i := range r.Len() {
		if r.ID(i) != id {
			continue
		}
		if lines++; lines == 1 {
			w.joined = append(w.joined[:0], r.Value(i)...)
			continue
		}
		w.joined = append(append(w.joined, ", "...), r.Value(i)...)
	}
	if lines == 1 {
		return value
	}
	return w.joined
}

// requestIDMax bounds the X-Request-ID that a client may choose.
const requestIDMax = 128

// plainID reports whether a client's request id can be passed on and logged as it
// is: one word without quotes.
func plainID(id []byte) bool {
	for _, c := range id {
		if c <= ' ' || c >= 0x7f || c == '"' || c == '\\' {
			return false
		}
	}
	return len(id) > 0 && len(id) <= requestIDMax
}

var (
	nameRequestID   = []byte("X-Request-ID")
	nameOriginalFor = []byte("X-Original-Forwarded-For")
	schemeHTTP      = []byte("http")
)

// appendID appends 32 random hex digits.
func (w *Worker) appendID(b []byte) []byte {
	var id [16]byte
	for i := range 2 {
		v := w.random.Uint64()
		for j := range 8 {
			id[8*i+j] = byte(v >> (8 * j))
		}
	}
	return hex.AppendEncode(b, id[:])
}

// realClient returns the last address in an X-Forwarded-For value that no trusted
// proxy has, or the first one if all are trusted; peer if there is none.
func realClient(value []byte, peer netip.Addr, trust []netip.Prefix) netip.Addr {
	client := peer
	for more := true; more; {
		var item []byte
		if i := bytes.LastIndexByte(value, ','); i >= 0 {
			value, item = value[:i], value[i+1:]
		} else {
			item, more = value, false
		}
		if item = bytes.Trim(item, " \t"); len(item) == 0 {
			continue // RFC 9110, 5.6.1.2
		}
		addr, ok := parseHop(item)
		if !ok {
			return client
		}
		if client = addr.WithZone("").Unmap(); !contains(trust, client) {
			return client
		}
	}
	return client
}

// parseHop reads an item of X-Forwarded-For: an address, perhaps with a port.
func parseHop(item []byte) (netip.Addr, bool) {
	if addr, err := netip.ParseAddr(text(item)); err == nil {
		return addr, true
	}
	addr, err := netip.ParseAddrPort(text(item))
	return addr.Addr(), err == nil
}

func contains(prefixes []netip.Prefix, a netip.Addr) bool {
	for _, p := range prefixes {
		if p.Contains(a) {
			return true
		}
	}
	return false
}

// localAddress returns the address that the client connected to.
func (c *client) localAddress() []byte {
	addr := c.l.addr
	if sa, err := unix.Getsockname(int(c.fd)); err == nil {
		switch sa := sa.(type) {
		case *unix.SockaddrInet4:
			addr = netip.AddrPortFrom(netip.AddrFrom4(sa.Addr), uint16(sa.Port))
		case *unix.SockaddrInet6:
			addr = netip.AddrPortFrom(netip.AddrFrom16(sa.Addr).Unmap(), uint16(sa.Port))
		}
	}
	return addr.AppendTo(nil)
}

// hashKey hashes what the policy names of the request.
func (x *exchange) hashKey(r *http1.Request) uint64 {
	h := upstream.HashSeed
	for _, p := range x.policy.HashBy {
		switch p.Source {
		case route.HashText:
			h = upstream.HashKey(h, []byte(p.Name))
		case route.HashRemoteAddr:
			a := x.c.addr.Addr().As16()
			h = upstream.HashKey(h, a[:])
		case route.HashHost:
			h = upstream.HashKey(h, r.Host)
		case route.HashURI:
			h = upstream.HashKey(h, r.Target)
		case route.HashPath:
			h = upstream.HashKey(h, r.Target[:len(r.Target)-len(r.Query)])
		case route.HashHeader:
			for i := range r.Len() {
				if equalFold(r.Name(i), p.Name) {
					h = upstream.HashKey(h, r.Value(i))
					break
				}
			}
		case route.HashCookie:
			h = upstream.HashKey(h, cookie(r.Get(http1.FieldCookie), p.Name))
		case route.HashQuery:
			h = upstream.HashKey(h, argument(r.Query, p.Name))
		}
	}
	return h
}
