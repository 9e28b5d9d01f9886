package netwatch

import (
	"context"
	"net/netip"
	"sync"
	"time"
)

// Watcher follows the network of the namespace that Run is called in. Any goroutine
// may ask it.
type Watcher struct {
	changed func([]netip.Addr)

	mu    sync.RWMutex
	table *table // without anything while it is not followed
	stats Stats
}

// Stats is how the watch goes.
type Stats struct {
	Watching  bool   // what is told is true now
	Links     int    // of the node
	Pods      int    // addresses known to be on this node
	Lost      int    // of them, cut off now
	Losses    uint64 // so far
	Events    uint64 // messages of the kernel
	Overflows uint64 // times that it had too much to tell, and all was read anew
}

// New returns a watcher that knows nothing until it runs. changed is called from
// Run's goroutine with the addresses that are lost, or no longer so, since.
func New(changed func([]netip.Addr)) *Watcher {
	return &Watcher{changed: changed, table: newTable()}
}

// Run follows the network until ctx ends, and returns nil then. It fails if the
// kernel can't be asked; nothing is lost or local then, and it may be run again.
func (w *Watcher) Run(ctx context.Context) error {
	defer w.end()
	for {
		err := w.follow(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != errOverflow:
			return err
		}
		w.mu.Lock()
		w.stats.Overflows++
		w.mu.Unlock()
	}
}

// follow reads what there is, and then what changes, until something breaks. After
// an overflow the kernel drops messages without a word until all that waits on the
// socket was read, so it takes a new socket to go on.
func (w *Watcher) follow(ctx context.Context) error {
	s, err := openSocket()
	if err != nil {
		return err
	}
	defer s.Close()
	defer context.AfterFunc(ctx, s.Close)()
	if err := w.reread(); err != nil {
		return err
	}
	for {
		w.mu.RLock()
		until := w.table.next()
		w.mu.RUnlock()
		list, err := s.receive(until)
		if err == nil {
			err = w.take(list)
		}
		if err != nil {
			return err
		}
	}
}

// reread takes over what there is now.
func (w *Watcher) reread() error {
	t, err := read()
	if err != nil {
		return err
	}
	w.mu.Lock()
	t.adopt(w.table)
	w.table = t
	w.stats.Watching = true
	changed := t.settle(time.Now())
	w.mu.Unlock()
	w.tell(changed)
	return nil
}

// take takes over what the kernel told. If that is nothing, it is time that tells:
// while messages wait, a route whose time is over may be set again by one of them.
func (w *Watcher) take(list []message) error {
	w.mu.Lock()
	w.stats.Events += uint64(len(list))
	var err error
	for _, m := range list {
		if err = w.table.take(m); err != nil {
			break
		}
	}
	now := time.Now()
	changed := w.table.settle(now)
	if len(list) == 0 {
		changed = append(changed, w.table.expire(now)...)
	}
	w.mu.Unlock()
	w.tell(changed)
	return err
}

// end forgets everything: it is not followed any more.
func (w *Watcher) end() {
	w.mu.Lock()
	var changed []netip.Addr
	for a, p := range w.table.pods {
		if p.lost != 0 {
			changed = append(changed, a)
		}
	}
	losses := w.table.losses
	w.table = newTable()
	w.table.losses = losses
	w.stats.Watching = false
	w.mu.Unlock()
	w.tell(changed)
}

func (w *Watcher) tell(changed []netip.Addr) {
	if len(changed) != 0 {
		w.changed(changed)
	}
}

// Lost returns the number of the loss of a pod that was on this node and is cut
// off: larger for a later loss. It is 0 for every other address.
func (w *Watcher) Lost(a netip.Addr) uint64 {
	w.mu.RLock()
	defer w.mu.RUnlock()
	if p := w.table.pods[a]; p != nil {
		return p.lost
	}
	return 0
}

// Local reports whether a is an address of this node or of a pod on it, as far as
// the network tells, and the name of the link that leads to it: the pod's own if it
// is known, else that of all pods.
func (w *Watcher) Local(a netip.Addr) (link string, local bool) {
	w.mu.RLock()
	defer w.mu.RUnlock()
	index := w.table.locate(a)
	return w.table.links[index].name, index != 0
}

// Stats returns how it goes.
func (w *Watcher) Stats() Stats {
	w.mu.RLock()
	defer w.mu.RUnlock()
	s := w.stats
	s.Links, s.Pods, s.Losses = len(w.table.links), len(w.table.pods), w.table.losses
	for p := range w.table.waiting {
		if p.lost != 0 {
			s.Lost++
		}
	}
	return s
}
