package rig

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Dir is a directory of manifests, one file for each object.
type Dir struct{ Path string }

// file returns the name of o's file; it sorts by kind, namespace and name.
func (d Dir) file(o Object) string {
	meta := o["metadata"].(map[string]any)
	ns, _ := meta["namespace"].(string)
	name := fmt.Sprintf("%s.%s.%s.json", o["kind"], ns, meta["name"])
	return filepath.Join(d.Path, strings.ToLower(name))
}

// Put writes objects, each in one step: a reader sees the old or the new one.
func (d Dir) Put(objects ...Object) error {
	for _, o := range objects {
		b, err := json.MarshalIndent(o, "", " ")
		if err != nil {
			return fmt.Errorf("encode %s: %w", d.file(o), err)
		}
		temp := filepath.Join(d.Path, ".new")
		if err := os.WriteFile(temp, append(b, '\n'), 0o644); err != nil {
			return err
		}
		if err := os.Rename(temp, d.file(o)); err != nil {
			return err
		}
	}
	return nil
}

// Delete removes objects.
func (d Dir) Delete(objects ...Object) error {
	for _, o := range objects {
		if err := os.Remove(d.file(o)); err != nil {
			return err
		}
	}
	return nil
}
