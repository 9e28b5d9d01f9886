package main

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// workerRequests returns what each worker of a weir has served, nothing for other
// proxies.
func (p *proxy) workerRequests() ([]float64, error) {
	if !p.admin.IsValid() {
		return nil, nil
	}
	a, err := http.Get("http://" + p.admin.String() + "/debug/workers")
	if err != nil {
		return nil, fmt.Errorf("ask %s about its workers: %w", p.name, err)
	}
	defer a.Body.Close()
	var s struct{ Workers []struct{ Requests float64 } }
	if err := json.NewDecoder(a.Body).Decode(&s); err != nil {
		return nil, fmt.Errorf("read the workers of %s: %w", p.name, err)
	}
	var out []float64
	for _, w := range s.Workers {
		out = append(out, w.Requests)
	}
	return out, nil
}

// uneven returns the greatest growth among workers to the mean one, 0 for less than
// two workers.
func uneven(before, after []float64) float64 {
	if len(after) < 2 {
		return 0
	}
	most, sum := 0.0, 0.0
	for i := range after {
		grown := after[i] - before[i]
		most, sum = max(most, grown), sum+grown
	}
	if sum == 0 {
		return 0
	}
	return most * float64(len(after)) / sum
}
