// Package plane runs a Kubernetes control plane of its own: etcd, kube-apiserver
// and kube-controller-manager as processes, on free loopback ports, with RBAC.
//
// What goes wrong while one starts is returned with the end of the log of the
// process concerned. Everything ends with Stop, or with the process that started
// it. There is neither scheduler nor kubelet: package node stands in for these.
package plane

import "time"

// deadline bounds every wait of this package.
const deadline = 60 * time.Second
