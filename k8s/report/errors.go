package report

import "errors"

// What is not an answer of the API server.
var (
	errRenewAgain = errors.New("the Lease was written by somebody else")
	errNoNode     = errors.New("the name of the node is not known: set NODE_NAME, --publish-address or --publish-service")
	errNoService  = errors.New("the Service of --publish-service does not exist")
	errWatchEnded = errors.New("the watch of the Service ended")
)
