package http1

// Request is the head of a request. Its slices alias the parsed buffer or the
// request's own scratch and are valid until the next Parse or until the buffer
// changes.
type Request struct {
	Head
	Method     Method
	MethodText []byte
	Target     []byte // origin form as sent; "*"; of an absolute form its path and query
	Path       []byte // normalised for matching: rooted, without query; "/" for "*"
	Query      []byte // raw, with its '?', or empty
	Rewritten  bool   // dot segments were removed: forward Path and Query, not Target
	Host       []byte // lower case, without port and trailing dot; IPv6 in brackets; empty: none
	Authority  []byte // host as sent, with port; from the target if that is absolute
	Minor      int    // of the version: 0 or 1
	Body       BodyKind
	Length     int64 // of the body in bytes, for BodyLength
	Close      bool  // the connection ends with this exchange
	Expect100  bool  // the client waits for a 100 before it sends the body
	TETrailers bool  // the client can take trailers

	// Upgrade is the one protocol that may become a tunnel, nil if none was
	// offered or the offer is ignored (RFC 9110, 7.8).
	Upgrade      []byte
	WebSocketKey []byte // for the upgrade to websocket: 24 bytes of base64

	defaultPort int    // of the scheme of an absolute target; 0 for other targets
	scratch     []byte // what is not in the buffer: a normalised path, a host in lower case
}

// Parse parses the head at the front of b.
//
// n > 0: it is complete and n bytes long. n == 0 without error: it is not; call
// again from its start when there are more bytes. Limits and grammar hold for
// incomplete heads too, so that nobody waits for the end of what is refused
// anyway. One empty line before the head is skipped (RFC 9112, 2.2).
func (r *Request) Parse(b []byte, lim *Limits) (n int, err *Error) {
	n, ref := r.parse(b[:min(len(b), lim.HeadBytes)], lim)
	switch ref {
	case ok:
		return n, nil
	case incomplete:
		return 0, nil
	}
	return 0, &requestErrors[ref]
}

func (r *Request) parse(b []byte, lim *Limits) (n int, ref refusal) {
	r.Target, r.Path, r.Query, r.Host, r.Authority = nil, nil, nil, nil, nil
	r.Upgrade, r.WebSocketKey = nil, nil
	r.Rewritten, r.Expect100, r.TETrailers = false, false, false
	r.defaultPort, r.scratch = 0, r.scratch[:0]

	p, ref := skipEmptyLine(b)
	if ref == ok {
		p, ref = r.parseRequestLine(b, p, lim)
	}
	if ref != ok {
		if ref == incomplete && len(b) >= lim.HeadBytes {
			ref = refTargetBytes
		}
		return 0, ref
	}
	if n, ref = r.parseFields(b, p, lim); ref != ok {
		return 0, ref
	}
	return n, r.interpret()
}

// skipEmptyLine returns the index after the CRLF at the front of b, if any.
func skipEmptyLine(b []byte) (next int, ref refusal) {
	switch {
	case len(b) == 0 || b[0] != '\r':
		return 0, ok
	case len(b) == 1:
		return 0, incomplete
	case b[1] != '\n':
		return 0, refBareCR
	case len(b) > 2 && b[2] == '\r':
		return 0, refEmptyLines
	}
	return 2, ok
}

// interpret gives the fields their meaning.
func (r *Request) interpret() (ref refusal) {
	if r.Body, r.Length, ref = r.framing(r.Minor); ref != ok {
		return ref
	}
	r.Length = max(r.Length, 0)
	if ref = r.interpretHost(); ref != ok {
		return ref
	}
	if r.underscores && r.codingAlias() {
		return refCodingAlias
	}
	set, ref := r.connection()
	if ref != ok {
		return ref
	}
	r.Close = set&optionClose != 0 || r.Minor == 0 && set&optionKeepAlive == 0
	if r.seen&(1<<FieldTE) != 0 {
		r.TETrailers = r.offersTrailers()
	}
	if r.Minor == 0 {
		return ok // neither Expect nor Upgrade exist there
	}
	if v := r.Get(FieldExpect); v != nil {
		if r.twice&(1<<FieldExpect) != 0 || !equalFold(v, "100-continue") {
			return refExpect
		}
		r.Expect100 = true
	}
	if set&optionUpgrade != 0 {
		return r.interpretUpgrade()
	}
	return ok
}

// interpretHost checks the Host field and an absolute target against each other
// (RFC 9112, 3.2).
func (r *Request) interpretHost() refusal {
	v := r.Get(FieldHost)
	switch {
	case r.twice&(1<<FieldHost) != 0:
		return refTwoHosts
	case v == nil && r.Minor > 0:
		return refNoHost
	}
	field, scratch, good := parseAuthority(v, r.scratch)
	r.scratch = scratch
	if !good {
		return refHost
	}
	r.Host = field.host
	if r.defaultPort == 0 {
		r.Authority = v
		return ok
	}
	target, scratch, good := parseAuthority(r.Authority, r.scratch)
	r.scratch = scratch
	if !good {
		return refHost
	}
	r.Host = target.host
	if field.port < 0 {
		field.port = r.defaultPort
	}
	if target.port < 0 {
		target.port = r.defaultPort
	}
	if v != nil && (field.port != target.port || string(field.host) != string(target.host)) {
		return refHostMismatch
	}
	return ok
}

// offersTrailers reports whether a TE field lists trailers (RFC 9110, 10.1.4).
// That Connection lists TE too is not asked for: many clients leave it out.
func (r *Request) offersTrailers() bool {
	for i := range r.n {
		if r.fields[i].id != FieldTE {
			continue
		}
		for rest := r.Value(i); len(rest) > 0; {
			var item []byte
			if item, rest = nextItem(rest); equalFold(item, "trailers") {
				return true
			}
		}
	}
	return false
}
