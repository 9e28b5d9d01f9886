package agent

import (
	"fmt"

	"github.com/weirproxy/weir/k8s"
	"github.com/weirproxy/weir/k8s/report"
	"github.com/weirproxy/weir/k8s/watch"
)

// Kube says which API server has the objects, and which of them an agent may see.
type Kube struct {
	Kubeconfig        string // file; "" = as a pod does
	IngressSelector   string // of labels; "" = all
	NamespaceSelector string // of labels of their namespaces; "" = all
	Reporting         Reporting
}

// InCluster reports whether the process runs in a pod, so that Kube needs no
// Kubeconfig.
func InCluster() bool { return watch.InCluster() }

// CheckSelector says what is wrong with a selector of labels, nil if nothing is.
func CheckSelector(s string) error { return watch.CheckSelector(s) }

// openSource makes what the objects come from. An API server is not spoken to yet.
func (a *agent) openSource() error {
	c := &a.config
	if c.Kube == nil {
		dir, err := k8s.NewDir(c.Manifests, c.Logger)
		a.source, a.sourceName = dir, c.Manifests
		return err
	}
	api, err := watch.Connect(c.Kube.Kubeconfig)
	if err != nil {
		return fmt.Errorf("API server: %w", err)
	}
	if err := c.reserve(&c.Objects, api.Host); err != nil {
		c.Logger.Warn("not all addresses are known that endpoints must not have", "err", err)
	}
	r, err := c.report()
	if err != nil {
		return err
	}
	r.API = api
	if a.reporter, err = report.New(r); err != nil {
		return err
	}
	s, err := watch.New(watch.Config{
		API: api, Agent: "weir/" + c.Build.Version, Logger: c.Logger, Objects: c.Objects,
		IngressSelector: c.Kube.IngressSelector, NamespaceSelector: c.Kube.NamespaceSelector, NodeName: c.Objects.NodeName,
		StatusChanged: a.reporter.StatusChanged,
	})
	if err != nil {
		return err
	}
	a.source, a.sourceName, a.view = s, api.Host, s
	a.state.watch, a.state.report = s.Stats, a.reporter.Stats
	return nil
}
