package http1

// notInTrailers is the set of known fields that have no place in a trailer
// section: they frame, route, authenticate, or control what was done long
// before it came (RFC 9110, 6.5.1). All other known ones may follow a body.
const notInTrailers = ofOneHop | 1<<FieldContentEncoding | 1<<FieldContentLength | 1<<FieldContentType |
	1<<FieldDate | 1<<FieldExpect | 1<<FieldHost | 1<<FieldVia |
	1<<FieldForwarded | 1<<FieldXForwardedFor | 1<<FieldXForwardedHost | 1<<FieldXForwardedPort |
	1<<FieldXForwardedProto | 1<<FieldXForwardedScheme | 1<<FieldXForwardedServer |
	1<<FieldXOriginalForwardedFor | 1<<FieldXRealIP | 1<<FieldXRequestID | 1<<FieldXScheme |
	1<<FieldSecWebSocketAccept | 1<<FieldSecWebSocketKey | 1<<FieldSecWebSocketVersion |
	1<<FieldAccept | 1<<FieldAcceptEncoding | 1<<FieldAcceptLanguage | 1<<FieldAuthorization | 1<<FieldCookie |
	1<<FieldOrigin | 1<<FieldRange | 1<<FieldReferer | 1<<FieldUserAgent |
	1<<FieldAge | 1<<FieldCacheControl | 1<<FieldExpires | 1<<FieldLastModified | 1<<FieldLocation |
	1<<FieldRetryAfter | 1<<FieldServer | 1<<FieldSetCookie | 1<<FieldVary

// decodeTrailers decodes the trailer section at the front of b and ends the
// body. The lines to forward are moved together. Names with '_' are not forwarded:
// what they are taken for with '-' may be forbidden.
func (d *Body) decodeTrailers(b []byte, lim *Limits) (n int, ref refusal) {
	section := b[:min(len(b), lim.HeadBytes)]
	if len(section) >= 2 && string(section[:2]) == "\r\n" {
		d.done = true
		return 2, ok
	}
	end, ref := sectionEnd(section, int(d.scanned))
	if ref != ok {
		if ref == incomplete && len(section) >= lim.HeadBytes {
			return 0, refHeadBytes
		}
		d.scanned = int32(len(section))
		return 0, ref
	}
	section = section[:end]
	kept, fields := 0, 0
	for p := 0; p < end; {
		if section[p] == '\r' {
			if p+2 != end {
				return 0, refBareCR
			}
			break
		}
		if fields++; fields > min(lim.Fields, MaxFields) {
			return 0, refFields
		}
		var f Field
		next, ref := scanField(section, p, lim.LineBytes, &f)
		if ref != ok {
			return 0, ref
		}
		if f.flags&fieldUnderscore == 0 && mayTrail(section[p:p+int(f.nameLen)]) {
			kept += copy(section[kept:], section[p:next])
		}
		p = next
	}
	d.trailers, d.done = section[:kept:kept], true
	return end, ok
}

// mayTrail reports whether a trailer field of this name is forwarded.
func mayTrail(name []byte) bool {
	if notInTrailers>>lookup(name)&1 != 0 {
		return false
	}
	for _, prefix := range [...]string{"content-", "if-", "proxy-", "access-control-", "sec-"} {
		if len(name) > len(prefix) && equalFold(name[:len(prefix)], prefix) {
			return false
		}
	}
	for _, other := range [...]string{"allow", "max-forwards", "pragma", "set-cookie2", "warning", "www-authenticate"} {
		if equalFold(name, other) {
			return false
		}
	}
	return true
}
