package l7

import (
	"bytes"
	"time"

	"github.com/weirproxy/weir/l7/http1"
)

// statusClientGone is logged, never sent: the client closed before its answer
// (nginx's 499).
const statusClientGone = 499

const (
	logBufferSize = 64 << 10
	logBacklog    = 64 // full buffers that wait for the writer
	// logWait is how long the end of the server waits for the writer.
	logWait = 2 * time.Second
)

// logEntry is what an exchange remembers for its log line. Strings are spans of
// buf, copied when the request came.
type logEntry struct {
	buf    []byte
	ends   [6]int // method, target, host, referer, agent, request id
	length int    // bytes of the request's head
	status int    // logged instead of the exchange's
	err    *http1.Error
	broken bool // the answer was cut off
}

func (l *logEntry) field(i int) []byte {
	start := 0
	if i > 0 {
		start = l.ends[i-1]
	}
	return l.buf[start:l.ends[i]]
}

// logBuffer collects the lines of one worker.
type logBuffer struct {
	on    bool
	buf   []byte
	lines uint64
}

// note copies what the log line will need of the request.
func (l *logBuffer) note(x *exchange, r *http1.Request) {
	if !l.on {
		return
	}
	e := &x.log
	for i, p := range [...][]byte{r.MethodText, r.Target, r.Host, r.Get(http1.FieldReferer), r.Get(http1.FieldUserAgent), nil} {
		e.buf = append(e.buf, p...)
		e.ends[i] = len(e.buf)
	}
}

// noteID remembers the request's id.
func (l *logBuffer) noteID(x *exchange, id []byte) {
	if l.on {
		x.log.buf = append(x.log.buf, id...)
		x.log.ends[5] = len(x.log.buf)
	}
}

// write appends the line of a finished exchange.
func (l *logBuffer) write(x *exchange) {
	if !l.on {
		return
	}
	if x.w.server.config.LogFormat == LogJSON {
		l.buf = x.appendJSON(l.buf)
	} else {
		l.buf = x.appendNginx(l.buf)
	}
	l.lines++
	l.flushIfFull(x.w)
}

// refused appends the line of something that was no request.
func (l *logBuffer) refused(c *client, err *http1.Error) {
	if !l.on {
		return
	}
	x := exchange{w: c.w, c: c, started: c.w.micro, status: err.Status, first: -1, minor: 1, bodyOut: int64(len(err.Text) + 1)}
	x.log.err = err
	l.write(&x)
}

func (l *logBuffer) flushIfFull(w *Worker) {
	if len(l.buf) >= logBufferSize-4096 {
		l.flush(w)
	}
}

// flush hands the lines to the writer. If that one lags they are dropped and
// counted: a slow disk must not slow a request.
func (l *logBuffer) flush(w *Worker) {
	if len(l.buf) == 0 {
		return
	}
	select {
	case w.server.logLines <- l.buf:
		select {
		case l.buf = <-w.server.logSpare:
			l.buf = l.buf[:0]
		default:
			l.buf = make([]byte, 0, logBufferSize)
		}
	default:
		w.local.logDropped += l.lines
		l.buf = l.buf[:0]
	}
	l.lines = 0
}

// awaitLog waits for the last lines of the access log, but not for ever: whoever
// reads it may have stopped.
func (s *Server) awaitLog(logged <-chan struct{}) {
	limit := time.NewTimer(logWait)
	defer limit.Stop()
	look := time.NewTicker(logWait / 100)
	defer look.Stop()
	for !s.killed.Load() {
		select {
		case <-logged:
			return
		case <-limit.C:
			s.config.Logger.Error("access log is not written: its end is lost", "waited", logWait)
			return
		case <-look.C:
		}
	}
}

// writeLog is the one goroutine that writes the access log; it ends when
// logLines is closed.
func (s *Server) writeLog() {
	failed := false
	for b := range s.logLines {
		n, err := s.config.LogTo.Write(b)
		if err != nil {
			s.logLost.Add(uint64(bytes.Count(b[n:], []byte{'\n'})))
			if !failed {
				s.config.Logger.Error("access log is not written", "err", err)
			}
		}
		failed = err != nil
		select {
		case s.logSpare <- b:
		default:
		}
	}
}
