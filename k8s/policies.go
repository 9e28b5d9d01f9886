package k8s

import "github.com/weirproxy/weir/l7/route"

// policies holds one policy for all Ingresses with the same overrides, by these as
// text.
type policies map[string]*sharedPolicy

type sharedPolicy struct {
	*route.Policy
	overrides []override
	users     int // Ingresses
}

// take returns the policy of i, which release gives back.
func (p policies) take(i *ingress, d defaults) *sharedPolicy {
	s := p[i.settings]
	if s == nil {
		s = &sharedPolicy{Policy: d.with(i.overrides), overrides: i.overrides}
		p[i.settings] = s
	}
	s.users++
	return s
}

func (p policies) release(i *ingress) {
	s := p[i.settings]
	if s.users--; s.users == 0 {
		delete(p, i.settings)
	}
}

// reset makes every policy anew, from other defaults.
func (p policies) reset(d defaults) {
	for _, s := range p {
		s.Policy = d.with(s.overrides)
	}
}
