package sockmap

// spread returns the worker of each of n CPUs. Worker i runs on cpus[i%len(cpus)];
// where several share a CPU, the first gets what comes there. A CPU without a worker
// may handle packets too: such CPUs are dealt out in turn.
func spread(n, workers int, cpus []int) []uint32 {
	out := make([]uint32, n)
	for i := range out {
		out[i] = WorkersMax
	}
	for w := workers - 1; w >= 0 && len(cpus) > 0; w-- {
		if cpu := cpus[w%len(cpus)]; cpu < n {
			out[cpu] = uint32(w)
		}
	}
	next := 0
	for i := range out {
		if out[i] == WorkersMax {
			out[i] = uint32(next % workers)
			next++
		}
	}
	return out
}
