package watch

import (
	"context"
)

// secretsAtOnce bounds how many Secrets are read at the same time.
const secretsAtOnce = 32

// namedFeed is a feed of one Secret that runs.
type namedFeed struct {
	*feed
	stop context.CancelFunc
	done chan struct{} // closed when it has ended
}

// followSecrets opens a feed for each Secret that Ingresses of ours name, and
// closes the others.
func (s *Source) followSecrets(ctx context.Context) {
	missing, surplus := s.store.secretsWanted(s.secrets)
	for _, k := range missing {
		f := s.newFeed(secretKind, scope{namespace: k.Namespace, name: k.Name})
		f.gate = s.gate
		s.store.open(f)
		own, stop := context.WithCancel(ctx)
		n := namedFeed{f, stop, make(chan struct{})}
		s.secrets[k] = n
		s.group.Go(func() {
			defer close(n.done)
			f.run(own)
		})
	}
	for _, k := range surplus {
		n := s.secrets[k]
		delete(s.secrets, k)
		n.stop()
		<-n.done // it only has to notice
		s.store.close(n.feed)
	}
}

// secretsWanted returns which Secrets count and have no feed in running, and which
// have one and don't count.
func (s *store) secretsWanted(running map[key]namedFeed) (missing, surplus []key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.recounted {
		return nil, nil
	}
	s.recounted = false
	for k := range s.secrets {
		if _, ok := running[k]; !ok {
			missing = append(missing, k)
		}
	}
	for k := range running {
		if s.secrets[k] == 0 {
			surplus = append(surplus, k)
		}
	}
	return missing, surplus
}
