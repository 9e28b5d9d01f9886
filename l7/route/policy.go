package route

import "time"

// Balance names how an endpoint is picked.
type Balance uint8

const (
	// RoundRobin takes the active endpoints in turn, per worker.
	RoundRobin Balance = iota
	// EWMA takes the better of two random endpoints by outstanding requests
	// times the moving average of their latency.
	EWMA
	// Hash takes the endpoint that a ketama ring gives for Policy.HashBy.
	Hash
)

func (b Balance) String() string {
	return [...]string{"round_robin", "ewma", "hash"}[b]
}

// HashSource is one part of the key of a consistent hash.
type HashSource uint8

const (
	HashText       HashSource = iota // Name, literally
	HashRemoteAddr                   // the client's address, without port
	HashHost                         // the request's host
	HashURI                          // path and query as the client sent them
	HashPath                         // the path as the client sent it
	HashHeader                       // the first value of header Name
	HashCookie                       // the value of cookie Name
	HashQuery                        // the value of query parameter Name
)

// HashPart is one piece of a hash key; the pieces are concatenated.
type HashPart struct {
	Source HashSource
	Name   string // canonical lower case for HashHeader
}

// RetryOn is a set of conditions under which another endpoint is tried.
type RetryOn uint16

const (
	RetryError         RetryOn = 1 << iota // connect, send or receive broke
	RetryTimeout                           // no connection or no answer in time
	RetryInvalidHead                       // the answer's head was not HTTP
	Retry500                               // the answer's status
	Retry502                               // "
	Retry503                               // "
	Retry504                               // "
	Retry403                               // "
	Retry404                               // "
	Retry429                               // "
	RetryNonIdempotent                     // POST, PATCH, LOCK and unknown methods too
)

// OnStatus returns the condition for an answer with status, or 0.
func OnStatus(status int) RetryOn {
	switch status {
	case 500:
		return Retry500
	case 502:
		return Retry502
	case 503:
		return Retry503
	case 504:
		return Retry504
	case 403:
		return Retry403
	case 404:
		return Retry404
	case 429:
		return Retry429
	}
	return 0
}

// Policy holds what may differ from route to route. It is immutable.
type Policy struct {
	ConnectTimeout time.Duration // > 0: for all of one connect attempt
	SendTimeout    time.Duration // > 0: between two writes to the endpoint
	ReadTimeout    time.Duration // > 0: between two reads from the endpoint
	BodyBytesMax   int64         // of a request body; 0 = no limit
	Tries          int           // endpoints tried for one request, the first included; 0 = no limit
	TriesTimeout   time.Duration // no new try later than this after the first; 0 = no limit
	RetryOn        RetryOn
	Balance        Balance
	HashBy         []HashPart // for Hash
}

// DefaultPolicy has the values that ingress-nginx uses without annotations.
func DefaultPolicy() Policy {
	return Policy{
		ConnectTimeout: 5 * time.Second,
		SendTimeout:    60 * time.Second,
		ReadTimeout:    60 * time.Second,
		BodyBytesMax:   1 << 20,
		Tries:          3,
		RetryOn:        RetryError | RetryTimeout,
	}
}
