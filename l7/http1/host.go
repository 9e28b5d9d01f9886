package http1

import "bytes"

// authority is a host with an optional port, taken apart.
type authority struct {
	host []byte // lower case, without trailing dot; IPv6 in brackets; may be empty
	port int    // -1: none
}

// parseAuthority parses the value of a Host field (RFC 9110, 7.2). It is
// stricter than the RFC: no percent escapes, no zone, no IPvFuture, no port
// without host or digits. dst is where a host with capitals is appended in
// lower case.
func parseAuthority(v, dst []byte) (a authority, scratch []byte, good bool) {
	a.port = -1
	end, capitals := scanHost(v)
	if end < 0 {
		return a, dst, false
	}
	a.host = v[:end]
	if end < len(v) {
		if a.port = parsePort(v[end:]); a.port < 0 || end == 0 {
			return a, dst, false
		}
	}
	if n := len(a.host); n > 0 && a.host[n-1] == '.' {
		a.host = a.host[:n-1]
		if n == 1 || a.host[n-2] == '.' {
			return a, dst, false
		}
	}
	if capitals {
		start := len(dst)
		for _, c := range a.host {
			if 'A' <= c && c <= 'Z' {
				c |= 0x20
			}
			dst = append(dst, c)
		}
		a.host = dst[start:len(dst):len(dst)]
	}
	return a, dst, true
}

// scanHost returns where the host at the front of v ends, -1 if it is not one:
// at a ':' or at the end.
func scanHost(v []byte) (end int, capitals bool) {
	if len(v) > 0 && v[0] == '[' {
		end = bytes.IndexByte(v, ']') + 1
		if end == 0 || !isIPv6(v[1:end-1]) {
			return -1, false
		}
		for _, c := range v[:end] {
			capitals = capitals || 'A' <= c && c <= 'F'
		}
		return end, capitals
	}
	for i, c := range v {
		switch {
		case classes[c]&classHost != 0:
		case 'A' <= c && c <= 'Z':
			capitals = true
		case c == ':':
			return i, capitals
		default:
			return -1, false
		}
	}
	return len(v), capitals
}

// parsePort parses ':' and one to five digits, -1 if it is something else.
func parsePort(v []byte) int {
	if len(v) < 2 || len(v) > 6 || v[0] != ':' {
		return -1
	}
	port := 0
	for _, c := range v[1:] {
		if c < '0' || c > '9' {
			return -1
		}
		port = port*10 + int(c-'0')
	}
	if port > 65535 {
		return -1
	}
	return port
}

// isIPv6 reports whether v is an IPv6 address without zone (RFC 3986, 3.2.2).
func isIPv6(v []byte) bool {
	groups, gap := 0, false
	for len(v) > 0 {
		if v[0] == ':' {
			// Only the gap starts with a colon here: single ones are skipped below.
			if gap || len(v) < 2 || v[1] != ':' {
				return false
			}
			gap, v = true, v[2:]
			continue
		}
		n := 0
		for n < len(v) && n < 5 && hexValue(v[n]) >= 0 {
			n++
		}
		if n < len(v) && v[n] == '.' {
			groups += 2
			return isIPv4(v) && (!gap && groups == 8 || gap && groups < 8)
		}
		if n == 0 || n > 4 {
			return false
		}
		groups++
		v = v[n:]
		if len(v) == 0 {
			break
		}
		if v[0] != ':' || len(v) == 1 {
			return false
		}
		if v[1] != ':' {
			v = v[1:]
		}
	}
	return !gap && groups == 8 || gap && groups < 8
}

// isIPv4 reports whether v is an IPv4 address in dotted decimal.
func isIPv4(v []byte) bool {
	for part := range 4 {
		n, value := 0, 0
		for n < len(v) && '0' <= v[n] && v[n] <= '9' && n < 3 {
			value = value*10 + int(v[n]-'0')
			n++
		}
		if n == 0 || value > 255 || n > 1 && v[0] == '0' {
			return false
		}
		v = v[n:]
		if part < 3 {
			if len(v) == 0 || v[0] != '.' {
				return false
			}
			v = v[1:]
		}
	}
	return len(v) == 0
}
