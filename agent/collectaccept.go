package agent

func collectAccept(out sink, a *accepting) {
	v := a.see()
	cause := v.Cause
	if cause == causeNone {
		cause = "none"
	}
	out.gauge(mAcceptPolicy, 1, v.Policy, v.Wanted, cause)
	for _, r := range a.decisions() {
		out.counter(mAcceptDecisions, r.Count, r.Name)
	}
}
