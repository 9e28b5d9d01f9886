// Package k8s turns Kubernetes objects into a routing table.
//
// A source (Dir here: files of a directory tree) yields Objects: one consistent
// set of them. A Translator makes a route.Table of a set, and from then on
// changes as little as the next set asks for: endpoints of a cluster in place, a
// new table only if routing changed. Each value that can't be used yields a
// Notice on its object and leaves every other object alone.
//
// No Kubernetes type leaves the package but inside Objects.
package k8s
