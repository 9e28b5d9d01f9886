package agent

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"
)

// logFile is where the access log goes. Another file can take its place while it
// is written.
type logFile struct {
	path string                  // "" for standard output
	file atomic.Pointer[os.File] // owned unless path is ""
}

// standardLog writes to f, which stays open.
func standardLog(f *os.File) *logFile {
	l := new(logFile)
	l.file.Store(f)
	return l
}

// openLogFile appends to path, which it creates if need be.
func openLogFile(path string) (*logFile, error) {
	l := &logFile{path: path}
	f, err := l.open()
	if err != nil {
		return nil, err
	}
	l.file.Store(f)
	return l, nil
}

func (l *logFile) open() (*os.File, error) {
	f, err := os.OpenFile(l.path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o640)
	if err != nil {
		return nil, fmt.Errorf("open the access log: %w", err)
	}
	return f, nil
}

// Write writes whole lines. What is being written while reopen runs goes to the
// old or the new file, never to neither.
func (l *logFile) Write(b []byte) (int, error) {
	for {
		f := l.file.Load()
		n, err := f.Write(b)
		if n == 0 && errors.Is(err, os.ErrClosed) && l.file.Load() != f {
			continue
		}
		return n, err
	}
}

// reopen continues in a new file at path; the old one, renamed or removed by now,
// is closed. If that fails the old one stays in use. Standard output has no path
// and stays.
func (l *logFile) reopen() error {
	if l.path == "" {
		return nil
	}
	f, err := l.open()
	if err != nil {
		return err
	}
	return l.file.Swap(f).Close()
}

// close closes the file. Nothing may be written any more.
func (l *logFile) close() error {
	if l.path == "" {
		return nil
	}
	return l.file.Load().Close()
}
