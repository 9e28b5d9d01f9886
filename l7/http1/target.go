package http1

import "bytes"

// parseRequestLine parses the line at p and returns the index after it. b is
// cut to the limit of the head.
func (r *Request) parseRequestLine(b []byte, p int, lim *Limits) (next int, ref refusal) {
	i := p
	for i < len(b) && classes[b[i]]&classToken != 0 {
		i++
	}
	switch {
	case i-p > methodBytes:
		return 0, refMethod
	case i == len(b):
		return 0, incomplete
	case b[i] != ' ' || i == p:
		return 0, lineRefusal(b[i], refMethod)
	}
	r.MethodText = b[p:i:i]
	r.Method = methodOf(r.MethodText)
	if r.Method == MethodConnect {
		return 0, refConnect
	}
	i++
	start := i
	query, plain := -1, true
	if i < len(b) && b[i] == '/' {
		i, query, plain = scanPath(b, i)
	}
	for i < len(b) && classes[b[i]]&classTarget != 0 {
		i++
	}
	switch {
	case i-p > lim.LineBytes:
		return 0, refTargetBytes
	case i == len(b):
		return 0, incomplete
	case b[i] == '\r':
		return 0, refHTTP09
	case b[i] == '#':
		return 0, refFragment
	case b[i] != ' ' || i == start:
		return 0, lineRefusal(b[i], refTarget)
	}
	r.Target = b[start:i:i]
	i++
	if i-p+len("HTTP/1.1") > lim.LineBytes {
		return 0, refTargetBytes
	}
	if r.Minor, ref = parseVersion(b[i:]); ref != ok {
		return 0, ref
	}
	return i + len("HTTP/1.1\r\n"), r.parseTarget(query-start, plain)
}

// lineRefusal is ref, unless the reason is a bare line feed.
func lineRefusal(c byte, ref refusal) refusal {
	if c == '\n' {
		return refBareLF
	}
	return ref
}

// scanPath scans the path at i. It returns where the path, or the target with
// it, ends; the index of the query's '?' or -1; and whether the path may be used
// as it is.
func scanPath(b []byte, i int) (end, query int, plain bool) {
	plain = true
	for ; i < len(b); i++ {
		c := b[i]
		if classes[c]&classPath != 0 {
			continue
		}
		if classes[c]&classEscape != 0 {
			plain = false
			continue
		}
		switch c {
		case '/':
			if i+1 < len(b) && (b[i+1] == '/' || b[i+1] == '.') {
				plain = false
			}
		case '%':
			plain = false
		case '?':
			return i, i, plain
		default:
			return i, -1, plain
		}
	}
	return i, -1, plain
}

// parseVersion parses the version at the front of b and the line end after it.
func parseVersion(b []byte) (minor int, ref refusal) {
	const form = "HTTP/1.1\r\n"
	if len(b) >= len(form) && string(b[:len(form)]) == form {
		return 1, ok
	}
	for i := range min(len(b), len(form)) {
		digit := i == 5 || i == 7
		switch c := b[i]; {
		case digit && '0' <= c && c <= '9', !digit && c == form[i]:
		case i == 9:
			return 0, refBareCR
		default:
			return 0, lineRefusal(c, refVersion)
		}
	}
	switch {
	case len(b) < len(form):
		return 0, incomplete
	case b[5] != '1' || b[7] > '1':
		return 0, refUnsupported
	}
	return int(b[7] - '0'), ok
}

// parseTarget takes the target apart (RFC 9112, 3.2). query is the index of its
// '?' if it is in origin form, negative if there is none.
func (r *Request) parseTarget(query int, plain bool) refusal {
	switch {
	case r.Target[0] == '/':
		return r.splitTarget(query, plain)
	case string(r.Target) == "*":
		if r.Method != MethodOptions {
			return refTarget
		}
		r.Path = slash
		return ok
	}
	return r.parseAbsolute()
}

var slash = []byte{'/'}

// splitTarget sets Path and Query from a target in origin form.
func (r *Request) splitTarget(query int, plain bool) refusal {
	r.Path = r.Target
	if query >= 0 {
		r.Path, r.Query = r.Target[:query:query], r.Target[query:]
	}
	if plain {
		return ok
	}
	start := len(r.scratch)
	out, dots, ref := normalize(r.scratch, r.Path)
	r.scratch = out
	r.Path, r.Rewritten = out[start:len(out):len(out)], dots
	return ref
}

// parseAbsolute turns a target in absolute form into one in origin form.
func (r *Request) parseAbsolute() refusal {
	t := r.Target
	colon := bytes.IndexByte(t, ':')
	if colon < 0 || len(t) < colon+3 || t[colon+1] != '/' || t[colon+2] != '/' {
		return refTarget
	}
	switch scheme := t[:colon]; {
	case equalFold(scheme, "http"):
		r.defaultPort = 80
	case equalFold(scheme, "https"):
		r.defaultPort = 443
	default:
		return refTarget
	}
	t = t[colon+3:]
	end := len(t)
	if i := bytes.IndexAny(t, "/?"); i >= 0 {
		end = i
	}
	if end == 0 {
		return refHost
	}
	r.Authority, t = t[:end:end], t[end:]
	switch {
	case len(t) == 0 && r.Method == MethodOptions:
		r.Target, r.Path = asterisk, slash // RFC 9112, 3.2.4
		return ok
	case len(t) == 0:
		r.Target, r.Path = slash, slash
		return ok
	case t[0] == '?':
		start := len(r.scratch)
		r.scratch = append(append(r.scratch, '/'), t...)
		t = r.scratch[start:len(r.scratch):len(r.scratch)]
	}
	r.Target = t
	return r.splitTarget(bytes.IndexByte(t, '?'), false)
}

var asterisk = []byte{'*'}
