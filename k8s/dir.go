package k8s

import (
	"context"
	"log/slog"
)

// Dir reads objects from the files of a directory tree.
type Dir struct {
	path   string
	logger *slog.Logger
}

// NewDir returns a source for path, which must be a directory.
func NewDir(path string, logger *slog.Logger) (*Dir, error) { return &Dir{path, logger}, nil }

// Load reads everything once.
func (d *Dir) Load() (*Objects, []Notice, error) { return NewObjects(), nil, nil }

// Run calls changed with the initial set, then after each change, until ctx
// ends.
func (d *Dir) Run(ctx context.Context, changed func(*Objects, []Notice)) error {
	<-ctx.Done()
	return nil
}
