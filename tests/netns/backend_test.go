package netns

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"time"
)

// The backend's settings.
const (
	backendAddr = "WEIR_BACKEND_ADDR"
	backendLog  = "WEIR_BACKEND_LOG"
)

// serveBackend answers every request after up to 5 ms. Before, it writes method
// and id of the request to its log: that is when the request was executed. It
// returns only if it can't serve.
func serveBackend() {
	log, err := os.OpenFile(os.Getenv(backendLog), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	handler := func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return // not executed: the request is incomplete
		}
		if _, err := fmt.Fprintf(log, "%s %s\n", r.Method, r.Header.Get("X-Id")); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		<-time.After(rand.N(5 * time.Millisecond))
		io.WriteString(w, "done")
	}
	err = http.ListenAndServe(os.Getenv(backendAddr), http.HandlerFunc(handler))
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
