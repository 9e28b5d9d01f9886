package upstream

// A retry budget keeps retries from multiplying the load when a whole cluster
// fails: each request earns a fifth of a retry, and ten a second come for free so
// that a quiet cluster can lose an endpoint.
const (
	earnPerRequest = 0.2
	earnPerMilli   = 0.01
	budgetMax      = 100.0
)

type budget struct {
	tokens float64
	at     int64 // ms
}

func (b *budget) init(now int64) { b.tokens, b.at = budgetMax, now }

// Earn counts a request.
func (k *Cluster) Earn() {
	k.budget.tokens = min(k.budget.tokens+earnPerRequest, budgetMax)
}

// Spend takes one retry out of the budget and reports whether it was there.
func (k *Cluster) Spend(now int64) bool {
	b := &k.budget
	if now > b.at {
		b.tokens = min(b.tokens+float64(now-b.at)*earnPerMilli, budgetMax)
		b.at = now
	}
	if b.tokens < 1 {
		k.Stats.BudgetEmpty.Inc()
		return false
	}
	b.tokens--
	return true
}
