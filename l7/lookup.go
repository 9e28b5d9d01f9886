package l7

import "bytes"

// equalFold reports whether name is lower, a lower-case ASCII string, in any case.
func equalFold(name []byte, lower string) bool {
	if len(name) != len(lower) {
		return false
	}
	for i, c := range name {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}

// cookie returns the value of the cookie name in a Cookie field, or nil.
func cookie(field []byte, name string) []byte {
	for len(field) > 0 {
		var pair []byte
		pair, field, _ = bytes.Cut(field, []byte{';'})
		key, value, ok := bytes.Cut(bytes.TrimLeft(pair, " \t"), []byte{'='})
		if ok && string(key) == name {
			return value
		}
	}
	return nil
}

// argument returns the raw value of the query parameter name, or nil. query may
// start with '?'.
func argument(query []byte, name string) []byte {
	query = bytes.TrimPrefix(query, []byte{'?'})
	for len(query) > 0 {
		var pair []byte
		pair, query, _ = bytes.Cut(query, []byte{'&'})
		key, value, _ := bytes.Cut(pair, []byte{'='})
		if string(key) == name {
			return value
		}
	}
	return nil
}
