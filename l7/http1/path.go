package http1

// normalize appends the normal form of path, which starts with '/', to dst.
//
// Escapes of unreserved characters are decoded, other escapes get capital
// digits, and what should have been escaped is; empty segments are merged; "." and ".." are removed (RFC 3986, 5.2.4
// and 6.2.2). dots reports that there were such. Encoded slashes, encoded
// backslashes and backslashes are parts of a segment; but where they hide a
// ".." from a reader that takes them for separators, the path is refused. The
// time it takes is linear.
func normalize(dst, path []byte) (out []byte, dots bool, ref refusal) {
	base := len(dst)
	out = dst
	directory := false // the path so far ends in a removed segment
	for i := 0; i < len(path); {
		for i < len(path) && path[i] == '/' {
			i++
		}
		start := len(out)
		out = append(out, '/')
		separators := false
		if out, i, separators, ref = appendSegment(out, path, i); ref != ok {
			return out, false, ref
		}
		segment := out[start+1:]
		directory = string(segment) == "." || string(segment) == ".."
		switch {
		case !directory:
			if separators && hidesParent(segment) {
				return out, false, refHiddenDots
			}
			continue
		case len(segment) == 2:
			if start == base {
				return out, false, refAboveRoot
			}
			for start--; out[start] != '/'; start-- {
			}
		}
		out, dots = out[:start], true
	}
	if directory {
		out = append(out, '/')
	}
	return out, dots, ok
}

// appendSegment appends path[i:] up to the next '/' with its escapes in normal
// form. separators reports that it contains something which others may read as
// a separator.
func appendSegment(out, path []byte, i int) (_ []byte, next int, separators bool, ref refusal) {
	for i < len(path) && path[i] != '/' {
		c := path[i]
		i++
		if classes[c]&classEscape != 0 {
			separators = separators || c == '\\'
			out = append(out, '%', upperDigits[c>>4], upperDigits[c&15])
			continue
		}
		if c != '%' {
			out = append(out, c)
			continue
		}
		if len(path) < i+2 || hexValue(path[i]) < 0 || hexValue(path[i+1]) < 0 {
			return out, i, false, refEscape
		}
		c = byte(hexValue(path[i])<<4 | hexValue(path[i+1]))
		i += 2
		switch {
		case c == 0:
			return out, i, false, refEscape
		case classes[c]&classUnreserved != 0:
			out = append(out, c)
			continue
		case c == '/' || c == '\\':
			separators = true
		}
		out = append(out, '%', upperDigits[c>>4], upperDigits[c&15])
	}
	return out, i, separators, ok
}

const upperDigits = "0123456789ABCDEF"

// hidesParent reports whether a normalised segment has a ".." between what may
// be taken for separators.
func hidesParent(segment []byte) bool {
	start := 0
	for i := 0; i <= len(segment); i++ {
		width := 0
		switch {
		case i == len(segment):
			width = 1
		case segment[i] == '%' && (string(segment[i:i+3]) == "%2F" || string(segment[i:i+3]) == "%5C"):
			width = 3
		}
		if width == 0 {
			continue
		}
		if string(segment[start:i]) == ".." {
			return true
		}
		start = i + width
		i = start - 1
	}
	return false
}

// hexValue returns the value of a hex digit, -1 for other characters.
func hexValue(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c|0x20 && c|0x20 <= 'f':
		return int(c|0x20-'a') + 10
	}
	return -1
}
