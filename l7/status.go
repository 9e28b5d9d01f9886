package l7

import (
	"slices"

	"github.com/weirproxy/weir/l7/http1"
)

// Faults that the worker finds itself. What a parser refuses is an http1.Error of
// that package; together they are all the reasons for which Weir answers by
// itself, and each has its counter.
var (
	errHeadTimeout = &http1.Error{Status: 408, Reason: "head_timeout", Text: "the request's head did not arrive in time"}
	errBodyTimeout = &http1.Error{Status: 408, Reason: "body_timeout", Text: "the request's body did not arrive in time"}
	errBodyTooSlow = &http1.Error{Status: 408, Reason: "body_too_slow", Text: "the request's body arrives too slowly"}
	errHeadTooLong = &http1.Error{Status: 431, Reason: "head_bytes", Text: "the request's head is too long"}
	errBodyTooLong = &http1.Error{Status: 413, Reason: "body_bytes", Text: "the request's body is larger than this route takes"}

	errNoRoute    = &http1.Error{Status: 404, Reason: "no_route", Text: "no route for this host and path"}
	errNoTable    = &http1.Error{Status: 503, Reason: "no_table", Text: "no routes have been loaded yet"}
	errNoEndpoint = &http1.Error{Status: 503, Reason: "no_endpoint", Text: "no endpoint is ready to serve this"}

	errConnect        = &http1.Error{Status: 502, Reason: "upstream_connect", Text: "no connection to an endpoint"}
	errConnectTimeout = &http1.Error{Status: 504, Reason: "upstream_connect_timeout", Text: "no connection to an endpoint in time"}
	errReset          = &http1.Error{Status: 502, Reason: "upstream_reset", Text: "the endpoint closed before it answered"}
	errGone           = &http1.Error{Status: 502, Reason: "upstream_gone", Text: "the endpoint disappeared before it answered"}
	errUnacknowledged = &http1.Error{Status: 504, Reason: "upstream_unacknowledged", Text: "the endpoint does not acknowledge the request"}
	errSendTimeout    = &http1.Error{Status: 504, Reason: "upstream_send_timeout", Text: "the endpoint does not take the request"}
	errReadTimeout    = &http1.Error{Status: 504, Reason: "upstream_read_timeout", Text: "the endpoint does not answer in time"}
	errUpgrade        = &http1.Error{Status: 502, Reason: "upstream_upgrade", Text: "the endpoint switched protocols wrongly"}
	errInformational  = &http1.Error{Status: 502, Reason: "upstream_informational", Text: "the endpoint sends informational answers without end"}
	errDescriptors    = &http1.Error{Status: 503, Reason: "no_descriptor", Text: "no descriptor is left for a connection to an endpoint"}
	errLoop           = &http1.Error{Status: 508, Reason: "loop", Text: "the request has passed through Weir too often: an endpoint leads back to it"}
	errOverflow       = &http1.Error{Status: 500, Reason: "overflow", Text: "the request does not fit its buffer"}
	errAnswerBody     = &http1.Error{Status: 502, Reason: "upstream_body", Text: "the endpoint's answer has a malformed body"}

	// errStatus stands for an answer whose status is to be tried elsewhere.
	errStatus = &http1.Error{Status: 502, Reason: "upstream_status", Text: "the endpoint answered with an error"}
)

var ownFaults = []*http1.Error{
	errHeadTimeout, errBodyTimeout, errBodyTooSlow, errHeadTooLong, errBodyTooLong, errNoRoute, errNoTable, errNoEndpoint,
	errConnect, errConnectTimeout, errReset, errGone, errUnacknowledged, errSendTimeout, errReadTimeout, errUpgrade,
	errInformational, errDescriptors, errLoop, errOverflow, errAnswerBody,
}

// refusalNames are the labels of all faults, sorted.
var refusalNames = makeRefusalNames()

func makeRefusalNames() []string {
	names := slices.Clone(http1.Reasons())
	for _, e := range ownFaults {
		names = append(names, e.Reason)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// count notes that fault err was met.
func (w *Worker) count(err *http1.Error) {
	if i, ok := slices.BinarySearch(refusalNames, err.Reason); ok {
		w.local.refused[i]++
		w.refusedSince = true
	}
}
