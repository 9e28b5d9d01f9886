package l7

import (
	"strconv"
	"time"
	"unicode/utf8"
)

func (x *exchange) logStatus() int {
	if x.log.status != 0 {
		return x.log.status
	}
	return x.status
}

// clock returns the wall clock at the start of the turn. It is read once a second
// only, since it may be set at any time.
func (w *Worker) clock() time.Time {
	since := time.Duration(w.micro) * time.Microsecond
	if w.wall.IsZero() || w.now-w.wallAt >= 1000 {
		w.wallAt = w.now
		w.wall = time.Now().Round(0).Add(-since)
	}
	return w.wall.Add(since)
}

// appendNginx writes ingress-nginx's default log-format-upstream.
func (x *exchange) appendNginx(b []byte) []byte {
	l := &x.log
	quoted := func(p []byte) {
		b = append(b, '"')
		if len(p) == 0 {
			b = append(b, '-')
		}
		b = appendHexEscaped(b, p)
		b = append(b, '"')
	}
	b = x.c.addr.Addr().AppendTo(b)
	b = append(b, " - - ["...)
	b = x.w.clock().AppendFormat(b, "02/Jan/2006:15:04:05 -0700")
	b = append(b, `] "`...)
	b = appendHexEscaped(b, l.field(0))
	b = append(b, ' ')
	b = appendHexEscaped(b, l.field(1))
	b = append(b, " HTTP/1."...)
	b = strconv.AppendInt(b, int64(x.minor), 10)
	b = append(b, `" `...)
	b = strconv.AppendInt(b, int64(x.logStatus()), 10)
	b = append(b, ' ')
	b = strconv.AppendInt(b, x.bodyOut, 10)
	b = append(b, ' ')
	quoted(l.field(3))
	b = append(b, ' ')
	quoted(l.field(4))
	b = append(b, ' ')
	b = strconv.AppendInt(b, int64(l.length)+x.bodyIn, 10)
	b = append(b, ' ')
	b = appendSeconds(b, x.w.micro-x.started)
	b = append(b, " ["...)
	if x.route != nil {
		for _, c := range []byte(x.route.Cluster.Name) {
			if c == '/' || c == ':' {
				c = '-'
			}
			b = append(b, c)
		}
	}
	b = append(b, "] [] "...)
	if x.peers == 0 {
		b = append(b, "- - - - "...)
	} else {
		b = x.tried[x.peers-1].Endpoint.Addr.AppendTo(b)
		b = append(b, ' ')
		b = strconv.AppendInt(b, x.bodyOut, 10)
		b = append(b, ' ')
		b = appendSeconds(b, x.w.micro-x.started)
		b = append(b, ' ')
		b = strconv.AppendInt(b, int64(x.status), 10)
		b = append(b, ' ')
	}
	b = appendHexEscaped(b, x.logID())
	return append(b, '\n')
}

// appendJSON writes one object a line. Times are seconds, sizes bytes.
func (x *exchange) appendJSON(b []byte) []byte {
	l := &x.log
	str := func(name string, p []byte) {
		b = append(b, ',', '"')
		b = append(b, name...)
		b = append(b, `":"`...)
		b = appendEscaped(b, p)
		b = append(b, '"')
	}
	num := func(name string, v int64) {
		b = append(b, ',', '"')
		b = append(b, name...)
		b = append(b, `":`...)
		b = strconv.AppendInt(b, v, 10)
	}
	var room [64]byte
	b = append(b, `{"time":"`...)
	b = x.w.clock().UTC().AppendFormat(b, "2006-01-02T15:04:05.000Z")
	b = append(b, '"')
	str("remote_addr", x.c.addr.Addr().AppendTo(room[:0]))
	str("method", l.field(0))
	str("host", l.field(2))
	str("uri", l.field(1))
	num("http_minor", int64(x.minor))
	num("status", int64(x.logStatus()))
	num("request_length", int64(l.length)+x.bodyIn)
	num("bytes_sent", x.bodyOut)
	b = append(b, `,"duration":`...)
	b = appendSeconds(b, x.w.micro-x.started)
	if x.route != nil {
		str("ingress", []byte(x.route.Source))
		str("cluster", []byte(x.route.Cluster.Name))
	}
	if x.peers > 0 {
		str("endpoint", x.tried[x.peers-1].Endpoint.Addr.AppendTo(room[:0]))
		num("tries", int64(x.tries))
	}
	if x.first >= 0 {
		b = append(b, `,"first_byte":`...)
		b = appendSeconds(b, x.first)
	}
	if l.err != nil {
		str("reason", []byte(l.err.Reason))
	} else if l.broken {
		str("reason", []byte("answer_cut_off"))
	}
	str("request_id", x.logID())
	str("referer", l.field(3))
	str("user_agent", l.field(4))
	return append(b, '}', '\n')
}

// appendSeconds writes us microseconds as seconds with three decimals.
func appendSeconds(b []byte, us int64) []byte {
	ms := max(us, 0) / 1000
	b = strconv.AppendInt(b, ms/1000, 10)
	return append(b, '.', byte('0'+ms/100%10), byte('0'+ms/10%10), byte('0'+ms%10))
}

// logID is the request's id; what never reached an endpoint gets one here.
func (x *exchange) logID() []byte {
	if id := x.log.field(5); len(id) > 0 {
		return id
	}
	return x.w.appendID(nil)
}

// appendHexEscaped writes p as nginx does in its log: control bytes, quotes,
// backslashes and what is not ASCII become \xXX.
func appendHexEscaped(b, p []byte) []byte {
	const digits = "0123456789ABCDEF"
	for _, c := range p {
		if c >= 0x20 && c < 0x7f && c != '"' && c != '\\' {
			b = append(b, c)
		} else {
			b = append(b, '\\', 'x', digits[c>>4], digits[c&15])
		}
	}
	return b
}

// appendEscaped writes p so that it can stand between quotes in JSON: control
// bytes, quotes, backslashes and what is not UTF-8 become \u00XX.
func appendEscaped(b, p []byte) []byte {
	const digits = "0123456789abcdef"
	for i := 0; i < len(p); {
		c := p[i]
		if c >= 0x20 && c < 0x7f && c != '"' && c != '\\' {
			b = append(b, c)
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			if r, n := utf8.DecodeRune(p[i:]); r != utf8.RuneError {
				b = append(b, p[i:i+n]...)
				i += n
				continue
			}
		}
		b = append(b, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
		i++
	}
	return b
}
