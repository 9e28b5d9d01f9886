package l7

// WorkerStats is what one worker has done so far. All are counters but
// Connections, Active, UpstreamIdle and UpstreamOpen.
type WorkerStats struct {
	CPU           int // pinned to, or -1
	Connections   uint64
	Active        uint64 // exchanges that run
	UpstreamOpen  uint64
	UpstreamIdle  uint64
	Accepted      uint64
	Requests      uint64
	Turns         uint64 // of the event loop
	Events        uint64
	BytesIn       uint64    // from clients
	BytesOut      uint64    // to clients
	LogDropped    uint64    // access log lines lost because the writer lagged
	AcceptPaused  uint64    // times that accepting stopped because descriptors ran short
	Evicted       uint64    // idle connections to endpoints that made way because descriptors ran short
	BufferBytes   uint64    // held by the worker's buffers now
	LastTurnMilli int64     // Unix time of the last turn, ms
	TakeOver      Durations // from Measure's seen until the worker had taken the change over
}

// Stats is what a Server has done so far.
type Stats struct {
	TableVersion uint64
	TableSwaps   uint64
	Draining     bool
	LogLost      uint64 // access log lines that could not be written
	Workers      []WorkerStats
	Refused      map[string]uint64 // by reason, a fixed set; every reason is present
	Unmatched    [6]uint64         // answers without a route, by status class
}
