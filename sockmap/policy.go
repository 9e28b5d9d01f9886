package sockmap

import "fmt"

// Policy says which worker gets a new connection.
type Policy string

const (
	Hash        Policy = "hash"         // the kernel's choice, by a hash of the addresses
	CPU         Policy = "cpu"          // that of the CPU that handles the SYN, unless it has too much
	LeastLoaded Policy = "least-loaded" // the one with the smallest load
)

func (p Policy) number() (acceptPolicy, error) {
	switch p {
	case Hash:
		return acceptPolicyPOLICY_HASH, nil
	case CPU:
		return acceptPolicyPOLICY_CPU, nil
	case LeastLoaded:
		return acceptPolicyPOLICY_LEAST_LOADED, nil
	}
	return 0, fmt.Errorf("policy %q: want hash, cpu or least-loaded", string(p))
}

func policyOf(n acceptPolicy) Policy {
	for _, p := range []Policy{Hash, CPU, LeastLoaded} {
		if m, err := p.number(); err == nil && m == n {
			return p
		}
	}
	return Policy(fmt.Sprintf("unknown (%d)", n))
}
