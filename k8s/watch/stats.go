package watch

import (
	"time"
)

// Stats is what a Source did so far, for each kind that it watches.
type Stats struct{ Kinds []KindStats }

// KindStats is about all feeds of one kind.
type KindStats struct {
	Kind    string // such as "EndpointSlice"
	Objects int    // kept now
	Events  uint64 // of watches, without those that a sync begins with
	Syncs   uint64 // times that all there is was read: once for each feed, then after each loss of the thread
	Errors  uint64
	// LastEvent is when the last object came, zero if none did.
	LastEvent time.Time
	// InStep is when the feed that is furthest behind was known to be in step last:
	// a sync, an event or a bookmark, which comes about once a minute. Zero before
	// the first sync.
	InStep  time.Time
	Synced  bool   // all there is was read by every feed
	Failure string // of a feed that does not work, "" if all do
}

// counters are those of one kind.
type counters struct {
	events, syncs, errors uint64
	lastEvent             time.Time
}

// Stats returns the present counters. Any goroutine may call it.
func (s *Source) Stats() Stats { return s.store.statistics() }

func (s *store) statistics() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	byKind := make(map[*kind]*KindStats)
	for f, state := range s.feeds {
		k := byKind[f.kind]
		if k == nil {
			c := s.stats[f.kind]
			k = &KindStats{
				Kind: f.kind.name, Objects: len(s.tables[f.kind]), Events: c.events, Syncs: c.syncs, Errors: c.errors,
				LastEvent: c.lastEvent, InStep: state.heard, Synced: true,
			}
			byKind[f.kind] = k
		}
		if state.heard.Before(k.InStep) {
			k.InStep = state.heard
		}
		k.Synced = k.Synced && state.synced
		if state.failure != nil {
			k.Failure = f.what() + ": " + state.failure.Error()
		}
	}
	var out Stats
	for _, k := range kinds {
		if of := byKind[k]; of != nil {
			out.Kinds = append(out.Kinds, *of)
		}
	}
	return out
}
