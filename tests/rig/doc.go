// Package rig runs the weir binary as a process and stands at both of its
// sides: it writes manifests, plays backends that record every byte, and sends
// requests byte by byte.
//
// Everything here is for tests. What can go wrong in a set-up ends the test;
// what is under test is returned. All waiting has a deadline.
package rig

import "time"

// Deadline bounds every wait of this package that has no bound of its own.
const Deadline = 10 * time.Second
