package http1

import (
	"strings"
	"testing"
)

func FuzzRequestHead(f *testing.F) {
	for _, c := range goodRequests {
		f.Add([]byte(c.head))
	}
	for _, c := range badRequests {
		if len(c.head) < 4096 {
			f.Add([]byte(c.head))
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		checkRequest(t, b)
		checkBeginnings(t, string(b), func(s string) (int, *Error) {
			_, n, err := parseRequest(s, &limits)
			if n > 0 {
				if end, err := HeadEnd([]byte(s), 0); end != n || err != nil {
					t.Fatalf("%q: Parse = %d, HeadEnd = %d, %v", s, n, end, err)
				}
			}
			return n, err
		})
	})
}

func FuzzResponseHead(f *testing.F) {
	for _, c := range goodResponses {
		f.Add([]byte(c.head), c.method == MethodHead)
	}
	for _, c := range badResponses {
		if len(c.head) < 4096 {
			f.Add([]byte(c.head), false)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte, head bool) {
		method := MethodGet
		if head {
			method = MethodHead
		}
		checkResponse(t, b, method)
		checkBeginnings(t, string(b), func(s string) (int, *Error) {
			_, n, err := parseResponse(s, method, &limits)
			return n, err
		})
	})
}

func FuzzChunkedBody(f *testing.F) {
	for i, c := range bodies {
		if len(c.in) < 8192 {
			f.Add([]byte(c.in), uint16(i))
		}
	}
	f.Fuzz(func(t *testing.T, b []byte, cut uint16) {
		checkChunked(t, b, int(cut))
	})
}

func FuzzTarget(f *testing.F) {
	for _, c := range paths {
		f.Add(c.in)
	}
	f.Fuzz(func(t *testing.T, path string) {
		if strings.Trim(path, pathCharacters) != "" || !strings.HasPrefix(path, "/") || len(path) > 4096 {
			return
		}
		got := normalOf(path)
		want := slowNormal(path)
		if strings.HasPrefix(got, "400") && strings.HasPrefix(want, "400") {
			return // of two faults either may be named
		}
		if got != want {
			t.Fatalf("normal form of %q = %q, want %q", path, got, want)
		}
		normal := strings.TrimSuffix(got, " rewritten")
		if again := normalOf(normal); again != normal {
			t.Errorf("normal form of %q is %q, of that %q", path, normal, again)
		}
		for _, segment := range strings.Split(normal, "/") {
			if segment == "." || segment == ".." {
				t.Errorf("normal form of %q = %q has a dot segment", path, normal)
			}
		}
	})
}

// pathCharacters are all that a path may consist of.
const pathCharacters = "!\"$%&'()*+,-./0123456789:;<=>@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnopqrstuvwxyz{|}~"

func FuzzHost(f *testing.F) {
	for _, c := range hosts {
		f.Add(c.in)
	}
	for _, s := range addresses {
		f.Add("[" + s + "]")
	}
	f.Fuzz(func(t *testing.T, s string) {
		a, _, good := parseAuthority([]byte(s), nil)
		got := "bad"
		if good {
			got = string(a.host)
		}
		if want := slowHost(s); got != want {
			t.Fatalf("host of %q = %q, want %q", s, got, want)
		}
		if !good {
			return
		}
		b, _, good := parseAuthority(a.host, nil)
		if !good || string(a.host) != string(b.host) || b.port != -1 {
			t.Errorf("host of %q = %q, of that %q %d %v", s, a.host, b.host, b.port, good)
		}
	})
}
