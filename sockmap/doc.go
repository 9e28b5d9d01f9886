// Package sockmap is the only user of BPF: it loads the programs of folder bpf,
// attaches them, fills their maps and reads them.
//
// No type of cilium/ebpf leaves it. Everything in it may be missing at run time,
// for want of a kernel, of rights or of memory: then an error says so, and Weir
// works without.
//
// # State on bpffs
//
// Maps are pinned so that "weir maps" and bpftool find them; programs are not
// pinned: weir_accept lives as long as the sockets that it is attached to. An agent
// that starts puts its own maps in the place of those that it finds, in one step
// each, and takes over nothing: what an agent that was killed left behind affects
// nothing and is gone then. An agent that ends removes the pins that are still its
// own.
//
//	/sys/fs/bpf/weir/weir_workers    worker -> its load and reservations
//	/sys/fs/bpf/weir/weir_cpus       CPU -> worker
//	/sys/fs/bpf/weir/weir_listeners  listener -> worker -> listening socket
//	/sys/fs/bpf/weir/weir_addresses  listener -> address
//	/sys/fs/bpf/weir/weir_policy     the accept policy
//	/sys/fs/bpf/weir/weir_reasons    what became of connections, counted by CPU
//
// All six live from the start of an agent to its end, or to the next agent's start
// if it was killed.
package sockmap
