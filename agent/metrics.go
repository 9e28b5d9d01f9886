package agent

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/weirproxy/weir/l7"
	"github.com/weirproxy/weir/l7/route"
)

// All metrics of Weir: here those of the agent, the workers and the table, below
// those of each route and each cluster.
//
// Labels have few values: host and ingress are those of the rule (host "" = any
// host), never those of a request; status is "1xx" (tunnels) to "5xx", or "none"
// for exchanges that ended without a status; cluster is "namespace/service:port";
// protocol is what its endpoints are spoken to; worker is a number from 0.
var (
	mUnmatched = define("weir_route_unmatched_requests_total",
		"Answers to requests that no rule matches, or that were refused before a rule was looked for.", "status")

	mConnections = define("weir_worker_connections",
		"Open client connections.", "worker")
	mActive = define("weir_worker_active_exchanges",
		"Exchanges that run.", "worker")
	mAccepted = define("weir_worker_accepted_connections_total",
		"Client connections accepted.", "worker")
	mRequests = define("weir_worker_requests_total",
		"Requests whose head was read.", "worker")
	mBytesIn = define("weir_worker_received_bytes_total",
		"Bytes read from clients.", "worker")
	mBytesOut = define("weir_worker_sent_bytes_total",
		"Bytes written to clients.", "worker")
	mTurns = define("weir_worker_turns_total",
		"Turns of the event loop.", "worker")
	mEvents = define("weir_worker_events_total",
		"Socket events handled.", "worker")
	mUpstreamOpen = define("weir_worker_upstream_connections",
		"Open connections to endpoints, idle ones included.", "worker")
	mUpstreamIdle = define("weir_worker_upstream_idle_connections",
		"Idle connections to endpoints.", "worker")
	mBuffers = define("weir_worker_buffer_bytes",
		"Memory that the buffers hold.", "worker")
	mAcceptPaused = define("weir_worker_accept_pauses_total",
		"Times that accepting stopped because descriptors ran short.", "worker")
	mEvicted = define("weir_worker_upstream_evictions_total",
		"Idle connections to endpoints that made way because descriptors ran short.", "worker")
	mLastTurn = define("weir_worker_last_turn_timestamp_seconds",
		"Unix time of the last turn; a loop without events does not turn.", "worker")

	mAcceptPolicy = define("weir_accept_policy",
		"Always 1: the policy in force, the wanted one, and why they differ: off, denied, workers or broken; else none.", "policy", "wanted", "cause")
	mAcceptDecisions = define("weir_accept_decisions_total",
		"What the kernel program made of new connections; with SYN cookies each counts twice.", "reason")

	mRefused = define("weir_http_refusals_total",
		"Requests and answers refused, by reason.", "reason")
	mLogDropped = define("weir_access_log_dropped_lines_total",
		"Lines lost because the log could not be written, or not fast enough.")

	mTableVersion = define("weir_table_version",
		"Version of the table in force; 0 before the first.")
	mTableSwaps = define("weir_table_swaps_total",
		"Tables put in force.")
	mTableBuild = define("weir_table_build_seconds",
		"Time that building the table in force took, from complete objects to the swap.")
	mTableRoutes = define("weir_table_routes",
		"Routes in force, default backends included.")
	mTableHosts = define("weir_table_hosts",
		"Hosts in force; any host counts as one.")
	mTableClusters = define("weir_table_clusters",
		"Clusters in force.")
	mTableIngresses = define("weir_table_ingresses",
		"Ingresses served, in part at least.")

	mNotices = define("weir_source_notices",
		"What is wrong with objects and files now, by severity.", "severity")
	mUpdates = define("weir_source_updates_total",
		"Sets of objects applied.")
	mSourceErrors = define("weir_source_errors_total",
		"Times that the source of objects broke and was read anew.")

	mInForce = define("weir_change_in_force_seconds",
		"Time from the first event of a change to its being in force for every request that follows: endpoints, or a table of objects.", "change")
	mTakeOver = define("weir_change_takeover_seconds",
		"Time from the first event of a change of endpoints until a worker, woken for it, has acted on it, counted by each worker: its next pick is from the new ones.")
	mWatchObjects = define("weir_watch_objects",
		"Objects kept of a kind.", "kind")
	mWatchEvents = define("weir_watch_events_total",
		"Objects that watches told of.", "kind")
	mWatchSyncs = define("weir_watch_syncs_total",
		"Times that all objects were read: at the start, and when the API server no longer knew what was missed.", "kind")
	mWatchErrors = define("weir_watch_errors_total",
		"Failed or broken lists and watches.", "kind")
	mWatchSynced = define("weir_watch_synced",
		"1 once all objects of a kind were read.", "kind")
	mWatchAge = define("weir_watch_in_step_age_seconds",
		"Time since a kind was known to be in step; an API server tells about once a minute.", "kind")

	mNetworkWatching = define("weir_network_watching",
		"1 while links, routes and neighbours of the node are followed; else pods are used until their slices say otherwise.")
	mNetworkPods = define("weir_network_pods",
		"Addresses known to be pods of this node.")
	mNetworkLost = define("weir_network_pods_lost",
		"Of these, the ones whose link or route is gone.")
	mNetworkLosses = define("weir_network_losses_total",
		"Times that a pod of this node was cut off.")
	mNetworkEvents = define("weir_network_events_total",
		"Changes of the network that the kernel told of.")
	mNetworkOverflows = define("weir_network_overflows_total",
		"Times that the kernel had more to tell than there was room for, and all was read anew.")

	mReportLeading = define("weir_report_leading",
		"1 while this agent writes statuses and Events.")
	mReportAddresses = define("weir_report_addresses",
		"Addresses that statuses are to have; 0 where another agent leads.")
	mStatusWrites = define("weir_report_status_writes_total",
		"Statuses of Ingresses written.")
	mStatusRemovals = define("weir_report_status_removals_total",
		"Statuses emptied: their Ingress is no longer served, or the last agent ended.")
	mStatusConflicts = define("weir_report_status_conflicts_total",
		"Writes tried again because the Ingress had changed.")
	mStatusErrors = define("weir_report_status_errors_total",
		"Writes that were refused or not answered; they are tried again.")
	mEventsWanted = define("weir_report_events",
		"Notices in force that have an Event or are to get one; 0 where another agent leads.")
	mEventsSent = define("weir_report_events_sent_total",
		"Events created or observed again.")
	mEventsDelayed = define("weir_report_events_delayed_total",
		"Times that an Event was put off because its object had had many.")
	mEventErrors = define("weir_report_event_errors_total",
		"Events that were refused or not answered; they are tried again.")

	mReady = define("weir_agent_ready",
		"1 while /readyz answers 200.")
	mDraining = define("weir_agent_draining",
		"1 from the beginning of the drain.")
	mBuild = define("weir_build_info",
		"Always 1; what the binary was made from.", "version", "commit", "go_version")
)

// Metrics of each route and each cluster of the table in force. Series that are
// still zero are left out, but for the endpoints.
var (
	routeRequests = family{"weir_route_requests_total",
		"Finished exchanges by host and Ingress of the rule and by class of the status.", "counter"}
	routeLatency = family{"weir_route_latency_seconds",
		"Time from the first byte of a request to the last of its answer.", "histogram"}

	upstreamCounters = []struct {
		family
		of func(*route.ClusterShard) *route.Counter
	}{
		{family{"weir_upstream_connections_opened_total",
			"Connections established to endpoints.", "counter"},
			func(s *route.ClusterShard) *route.Counter { return &s.Opened }},
		{family{"weir_upstream_connections_reused_total",
			"Requests sent on a connection that had served another before.", "counter"},
			func(s *route.ClusterShard) *route.Counter { return &s.Reused }},
		{family{"weir_upstream_connect_errors_total",
			"Connects that were refused, unreachable or timed out.", "counter"},
			func(s *route.ClusterShard) *route.Counter { return &s.ConnectErrors }},
		{family{"weir_upstream_retries_total",
			"Further tries of a request, whatever the reason.", "counter"},
			func(s *route.ClusterShard) *route.Counter { return &s.Retries }},
		{family{"weir_upstream_retry_budget_exhausted_total",
			"Further tries not made because too many were made lately.", "counter"},
			func(s *route.ClusterShard) *route.Counter { return &s.BudgetEmpty }},
		{family{"weir_upstream_cancellations_total",
			"Exchanges whose client went away before the answer was complete.", "counter"},
			func(s *route.ClusterShard) *route.Counter { return &s.Cancelled }},
		{family{"weir_upstream_ejections_total",
			"Endpoints taken out of rotation after errors, counted by each worker.", "counter"},
			func(s *route.ClusterShard) *route.Counter { return &s.Ejections }},
		{family{"weir_upstream_abandoned_total",
			"Tries given up because their endpoint was removed.", "counter"},
			func(s *route.ClusterShard) *route.Counter { return &s.Abandoned }},
		{family{"weir_upstream_no_endpoint_total",
			"Requests answered 503 because the cluster had no endpoint to send them to.", "counter"},
			func(s *route.ClusterShard) *route.Counter { return &s.NoEndpoint }},
	}
	upstreamHistograms = []struct {
		family
		of func(*route.ClusterShard) *route.Histogram
	}{
		{family{"weir_upstream_connection_wait_seconds",
			"Time that a try waited for a connection; 0 if one was idle.", "histogram"},
			func(s *route.ClusterShard) *route.Histogram { return &s.Wait }},
		{family{"weir_upstream_first_byte_seconds",
			"Time from the last written byte of a request to the first byte of its answer.", "histogram"},
			func(s *route.ClusterShard) *route.Histogram { return &s.FirstByte }},
	}
	upstreamEndpoints = family{"weir_upstream_endpoints",
		"Endpoints that take new requests (active), only finish what runs (draining), or are known to be cut off (lost).", "gauge"}
)

// define returns the description of a metric.
func define(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

// newRegistry returns a registry of its own with what /metrics shows beside routes
// and clusters.
func newRegistry(s *state, stats func() l7.Stats, build Build) *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		&collector{state: s, stats: stats, build: build},
	)
	return r
}
