// Package report writes to the API server what Weir has to say about objects:
// the addresses of Ingresses in their status, and what is wrong with objects as
// Events.
//
// Every agent runs a Reporter; one at a time leads, by a Lease, and only that one
// writes. What is to be written is state, not a stream: Set replaces it, whatever
// could not be written yet is tried again, and what did not change is not
// written. Traffic never waits for any of it.
//
// docs/adr/0008-what-weir-writes.md says why it is so.
package report
