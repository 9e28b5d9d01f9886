// Package watch follows the objects of a Kubernetes API server.
//
// A Source is what package k8s translates from: it lists and watches each kind by
// itself, trims what arrives, and tells changes: EndpointSlices at once, other
// objects once they have gone quiet for a moment. Nothing is ever removed because
// of an error: an object goes when the server says that it was deleted, or when it
// is missing in a list that is complete.
//
// Each list and watch is a feed. Feeds put objects into the store; the goroutine
// that runs Run takes changes from it and tells them. Nobody but these touches the
// store, and all of it is under one lock, which is held neither during a request
// nor during a call of the callee.
package watch
