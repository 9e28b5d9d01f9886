package agent

import (
	"errors"
	"io"
	"net/http"
	"strings"
)

// policyBytes bounds the body of PUT /accept-policy.
const policyBytes = 64

// acceptPolicy shows the accept policy, or with PUT changes it to the word in the
// body. PUT, because a web page that somebody on the node looks at can't send it
// here unasked.
func (a *admin) acceptPolicy(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPut {
		a.json(w, a.state.accept.see())
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, policyBytes))
	if err != nil {
		text(w, http.StatusBadRequest, "want one word: hash, cpu or least-loaded\n")
		return
	}
	switch err := a.state.accept.set(strings.TrimSpace(string(body))); {
	case err == nil:
		a.json(w, a.state.accept.see())
	case errors.Is(err, errFixed):
		text(w, http.StatusConflict, err.Error()+"\n")
	default:
		text(w, http.StatusBadRequest, err.Error()+"\n")
	}
}
