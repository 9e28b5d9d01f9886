package report

import "sync/atomic"

// Stats is what a Reporter counted, and its state now.
type Stats struct {
	Leading   bool
	Addresses int // to be published, as far as this agent knows: the leader does

	StatusWrites    uint64 // statuses written
	StatusRemovals  uint64 // statuses emptied
	StatusConflicts uint64 // tried again with the object as it was then
	StatusErrors    uint64 // refused or not answered, tried again

	EventsWanted  int    // notices in force that have an Event or are to get one; of the leader
	EventsSent    uint64 // Events created or observed again
	EventsDelayed uint64 // times that one was put off because its object had had many
	EventErrors   uint64 // refused or not answered, tried again
}

// counters are Stats while they are counted.
type counters struct {
	addresses, eventsWanted                                     atomic.Int64
	statusWrites, statusRemovals, statusConflicts, statusErrors atomic.Uint64
	eventsSent, eventsDelayed, eventErrors                      atomic.Uint64
}

// Stats returns a view of now. Any goroutine may call it.
func (r *Reporter) Stats() Stats {
	c := &r.stats
	return Stats{
		Leading: r.election.leading.Load(), Addresses: int(c.addresses.Load()),
		StatusWrites: c.statusWrites.Load(), StatusRemovals: c.statusRemovals.Load(),
		StatusConflicts: c.statusConflicts.Load(), StatusErrors: c.statusErrors.Load(),
		EventsWanted: int(c.eventsWanted.Load()), EventsSent: c.eventsSent.Load(),
		EventsDelayed: c.eventsDelayed.Load(), EventErrors: c.eventErrors.Load(),
	}
}
