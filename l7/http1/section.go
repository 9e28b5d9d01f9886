package http1

import "bytes"

// HeadEnd looks for the end of a head in b, of which the first from bytes were
// looked at before. It returns the length of the head with its empty line, 0 if
// that hasn't come. A line feed alone is an error; nothing else is checked.
func HeadEnd(b []byte, from int) (end int, err *Error) {
	end, ref := sectionEnd(b, from)
	if ref > incomplete {
		return 0, &requestErrors[ref]
	}
	return end, nil
}

// sectionEnd returns the index after the first empty line of b, but for one at
// its very front. If there is none yet, the section is incomplete.
func sectionEnd(b []byte, from int) (end int, ref refusal) {
	for i := min(from, len(b)); ; i++ {
		k := bytes.IndexByte(b[i:], '\n')
		if k < 0 {
			return 0, incomplete
		}
		i += k
		if i == 0 || b[i-1] != '\r' {
			return 0, refBareLF
		}
		if i >= 3 && b[i-2] == '\n' {
			return i + 1, ok
		}
	}
}

// parseFields parses field lines from b[p:] up to the empty line and returns
// the index after that. b is cut to lim.HeadBytes.
func (h *Head) parseFields(b []byte, p int, lim *Limits) (next int, ref refusal) {
	h.buf, h.n, h.seen, h.twice, h.underscores = b, 0, 0, 0, false
	fields := min(lim.Fields, MaxFields)
	for p < len(b) && b[p] != '\r' {
		if h.n == fields {
			return 0, refFields
		}
		f := &h.fields[h.n]
		next, ref := scanField(b, p, lim.LineBytes, f)
		if ref == incomplete {
			return 0, unfinished(b, p, lim)
		}
		if ref != ok {
			return 0, ref
		}
		f.id = lookup(b[p : p+int(f.nameLen)])
		h.note(f)
		p = next
	}
	if p+2 > len(b) {
		return 0, unfinished(b, p, lim)
	}
	if b[p+1] != '\n' {
		return 0, refBareCR
	}
	return p + 2, ok
}

// unfinished says what it means that b ends inside of the line that starts at p.
func unfinished(b []byte, p int, lim *Limits) refusal {
	switch {
	case len(b)-p > lim.LineBytes+1: // the last byte may be the CR
		return refLineBytes
	case len(b) >= lim.HeadBytes:
		return refHeadBytes
	}
	return incomplete
}
