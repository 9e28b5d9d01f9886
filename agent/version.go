package agent

import (
	"runtime"
	"runtime/debug"
)

// Build says what a binary was made from.
type Build struct {
	Version  string `json:"version"` // "devel" if it was not stamped
	Commit   string `json:"commit"`  // "unknown" if it was not stamped; "+dirty" behind it: local changes
	Go       string `json:"go"`
	Platform string `json:"platform"` // "linux/amd64"
}

// Version returns what the binary was made from. version and commit are what the
// linker stamped into it; "" means: see the build information, which lacks the
// commit if the binary was built with -buildvcs=false.
func Version(version, commit string) Build {
	b := Build{Version: version, Commit: commit, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if info, ok := debug.ReadBuildInfo(); ok {
		b.fill(info)
	}
	if b.Version == "" {
		b.Version = "devel"
	}
	if b.Commit == "" {
		b.Commit = "unknown"
	}
	return b
}

// fill takes from info what was not stamped.
func (b *Build) fill(info *debug.BuildInfo) {
	if b.Version == "" && info.Main.Version != "(devel)" {
		b.Version = info.Main.Version
	}
	if b.Commit != "" {
		return
	}
	dirty := false
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.modified":
			dirty = s.Value == "true"
		}
	}
	if b.Commit != "" && dirty {
		b.Commit += "+dirty"
	}
}
