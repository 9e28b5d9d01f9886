// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
//
// accept: chooses the worker whose listening socket gets a new connection.
// Hook: sk_reuseport on the sockets of one listener; it runs for each SYN and,
// with SYN cookies, for the ACK. Linux 5.10. As sk_reuseport/migrate (Linux 5.14)
// it also finds a new worker for what waits on a socket that is closed.
// In doubt it chooses nothing: the kernel then chooses by a hash of the addresses.

#include <stdbool.h>
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#define MAX_WORKERS   256
#define MAX_LISTENERS 64

/* An awake worker turns its loop every few milliseconds. One whose last turn is
 * older is stuck: no connection goes to it. */
#define STALE_NS 100000000ULL

/* How long a connection that was given to a worker may take to be accepted, and
 * counts as the worker's until then: a round trip and some. */
#define RESERVED_NS 1000000000ULL

/* With POLICY_CPU: how much more load than the least loaded a worker may have, beside
 * a quarter. Fewer would move connections off their CPU for nothing. */
#define GUARD_MIN 16

#define SYN_BYTE 13 /* of the TCP header; RFC 9293, 3.1 */
#define SYN_BITS 0x02

enum policy {
	POLICY_HASH,
	POLICY_CPU,
	POLICY_LEAST_LOADED,
};

/* What becomes of a connection; one is counted each time. */
enum reason {
	REASON_CPU,	     /* to the worker of the CPU that handles the SYN */
	REASON_IMBALANCE,    /* that one had too much: to the least loaded */
	REASON_UNFIT,	     /* that one is stuck, full or missing: to the least loaded */
	REASON_LOCAL,	     /* to the least loaded, which is the CPU's too */
	REASON_LEAST_LOADED, /* to the least loaded, on another CPU */
	REASON_MIGRATED,     /* its socket was closed: to the least loaded */
	REASON_HASH,	     /* passed: the policy is the kernel's hash */
	REASON_NO_WORKER,    /* passed: every worker is stuck or full */
	REASON_NO_SOCKET,    /* passed: neither of two chosen workers has a socket */
	REASON_NO_LISTENER,  /* passed: the listener has no sockets yet */
	REASONS,
};

/* Flags. */
enum state {
	STATE_IDLE = 1, /* it sleeps until something comes: its tick means nothing */
	STATE_FULL = 2, /* it takes no connection now */
};

/* 64 bytes, host order. The first five fields are the worker's. */
struct weir_worker {
	__u64 tick;	   /* CLOCK_MONOTONIC of the last turn, ns */
	__u64 accepted;	   /* connections so far */
	__u32 connections; /* open */
	__u32 active;	   /* exchanges that run */
	enum state state;
	/* Connections given since reserved_since, when accepted was reserved_accepted. */
	__u32 reserved;
	__u64 reserved_since;
	__u64 reserved_accepted;
	/* Its own key, by the agent: a loop over keys would leave the verifier with as many
	 * cases as there are pairs of workers. */
	__u32 number;
	__u32 padding[3];
};

/* worker -> its load. Workers write their part into mapped memory, weir_accept the
 * reservations. Entries stay as long as the agent runs. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, MAX_WORKERS);
	__type(key, __u32);
	__type(value, struct weir_worker);
} weir_workers SEC(".maps");

/* CPU -> worker, or MAX_WORKERS for none. The agent writes it at its start and sets
 * max_entries to the CPUs that the machine can have. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} weir_cpus SEC(".maps");

struct weir_sockets {
	__uint(type, BPF_MAP_TYPE_REUSEPORT_SOCKARRAY);
	__uint(max_entries, MAX_WORKERS);
	__type(key, __u32);
	__type(value, __u64);
};

/* listener -> worker -> listening socket. The agent writes; a socket leaves when it
 * is closed. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, MAX_LISTENERS);
	__type(key, __u32);
	__array(values, struct weir_sockets);
} weir_listeners SEC(".maps");

/* 20 bytes. */
struct weir_address {
	__u8 address[16]; /* network order; IPv4 in the first four */
	__be16 port;
	__u16 family; /* 4 or 6 */
};

/* listener -> its address, for people. The agent writes. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_LISTENERS);
	__type(key, __u32);
	__type(value, struct weir_address);
} weir_addresses SEC(".maps");

/* 0 -> enum policy. The agent writes, at any time. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, enum policy);
} weir_policy SEC(".maps");

/* enum reason -> how often. weir_accept writes. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, REASONS);
	__type(key, enum reason);
	__type(value, __u64);
} weir_reasons SEC(".maps");

const volatile __u32 listener; /* that this copy of the program serves */
const volatile __u32 workers;  /* in use, at most MAX_WORKERS */
const volatile bool migrate;   /* the kernel has sk_reuseport/migrate */

static int out(__u32 reason)
{
	__u64 *count = bpf_map_lookup_elem(&weir_reasons, &reason);

	if (count)
		*count += 1;
	return SK_PASS;
}

/* fit: whether a worker can take a connection now; gone is one that can't. */
static bool fit(const struct weir_worker *w, __u32 gone, __u64 now)
{
	__u32 state = w->state;
	__u64 tick = w->tick;

	if (state & STATE_FULL || w->number == gone)
		return false;
	return state & STATE_IDLE || tick + STALE_NS > now;
}

/* load: a connection counts one, an exchange that runs on it one more. Reservations
 * end when the worker has accepted as many, and in any case after RESERVED_NS, so
 * that a handshake that never completes holds none for longer. */
static __u64 load(const struct weir_worker *w, __u64 now)
{
	__u64 sum = (__u64)w->connections + w->active;
	__u64 taken = w->accepted - w->reserved_accepted;

	if (now - w->reserved_since < RESERVED_NS && w->reserved > taken)
		sum += w->reserved - taken;
	return sum;
}

/* reserve counts a connection until its worker has accepted it. Two CPUs that begin
 * a new period at once lose one. */
static void reserve(struct weir_worker *w, __u64 now)
{
	if (now - w->reserved_since >= RESERVED_NS) {
		w->reserved_accepted = w->accepted;
		w->reserved = 1;
		w->reserved_since = now;
		return;
	}
	__sync_fetch_and_add(&w->reserved, 1);
}

/* is_syn: not the ACK that brings a SYN cookie back, nor a stray segment. Their
 * connections are accepted at once or never. */
static bool is_syn(const struct sk_reuseport_md *md)
{
	const __u8 *tcp = md->data;

	if ((void *)(tcp + SYN_BYTE + 1) > md->data_end)
		return false;
	return tcp[SYN_BYTE] & SYN_BITS;
}

/* least returns the fit worker with the smallest load, best among equals, or
 * MAX_WORKERS; *smallest is its load. */
static __u32 least(__u32 best, __u32 gone, __u64 *smallest, __u64 now)
{
	struct weir_worker *w = bpf_map_lookup_elem(&weir_workers, &best);
	__u32 found = MAX_WORKERS;
	__u64 min = ~0ULL;

	if (w && best < workers && fit(w, gone, now)) {
		found = best;
		min = load(w, now);
	}
	for (__u32 i = 0; i < MAX_WORKERS && i < workers; i++) {
		__u32 key = i;
		__u64 l;

		w = bpf_map_lookup_elem(&weir_workers, &key);
		if (!w || !fit(w, gone, now))
			continue;
		l = load(w, now);
		if (l < min) {
			found = w->number;
			min = l;
		}
	}
	*smallest = min;
	return found;
}

/* choose returns a worker, or MAX_WORKERS, and why it is that one. */
static __u32 choose(__u32 policy, bool moved, __u32 gone, __u64 now, __u32 *reason)
{
	__u32 cpu = bpf_get_smp_processor_id();
	__u32 *local = bpf_map_lookup_elem(&weir_cpus, &cpu);
	__u32 own = local ? *local : MAX_WORKERS;
	struct weir_worker *w;
	__u64 smallest;
	__u32 found = least(own, gone, &smallest, now);

	if (found == MAX_WORKERS) {
		*reason = REASON_NO_WORKER;
		return found;
	}
	if (moved) {
		*reason = REASON_MIGRATED;
		return found;
	}
	if (policy == POLICY_LEAST_LOADED) {
		*reason = found == own ? REASON_LOCAL : REASON_LEAST_LOADED;
		return found;
	}
	w = bpf_map_lookup_elem(&weir_workers, &own);
	if (!w || own >= workers || !fit(w, gone, now)) {
		*reason = REASON_UNFIT;
		return found;
	}
	if (load(w, now) > smallest + smallest / 4 + GUARD_MIN) {
		*reason = REASON_IMBALANCE;
		return found;
	}
	*reason = REASON_CPU;
	return own;
}

SEC("sk_reuseport/migrate")
int weir_accept(struct sk_reuseport_md *md)
{
	__u32 zero = 0, worker, reason = REASON_NO_WORKER, at = listener;
	__u32 *policy = bpf_map_lookup_elem(&weir_policy, &zero);
	bool moved = migrate && md->migrating_sk;
	__u64 now = bpf_ktime_get_ns();
	struct weir_worker *w;
	void *sockets;

	if (!policy || *policy == POLICY_HASH)
		return out(REASON_HASH);
	sockets = bpf_map_lookup_elem(&weir_listeners, &at);
	if (!sockets)
		return out(REASON_NO_LISTENER);
	worker = choose(*policy, moved, MAX_WORKERS, now, &reason);
	if (worker == MAX_WORKERS)
		return out(reason);
	if (bpf_sk_select_reuseport(md, sockets, &worker, 0)) { /* it broke: once more without it */
		worker = choose(*policy, moved, worker, now, &reason);
		if (worker == MAX_WORKERS)
			return out(reason);
		if (bpf_sk_select_reuseport(md, sockets, &worker, 0))
			return out(REASON_NO_SOCKET);
	}
	w = bpf_map_lookup_elem(&weir_workers, &worker);
	if (w && !moved && is_syn(md))
		reserve(w, now);
	return out(reason);
}

char _license[] SEC("license") = "Dual BSD/GPL";
