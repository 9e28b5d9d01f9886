package http1

import "slices"

// Error is a refusal of what a peer sent. All are static values: two of one
// kind are the same pointer.
type Error struct {
	Status int    // to answer with; 502 for a fault in a response's head
	Reason string // one of Reasons: a fixed, snake_case label
	Text   string // for a person, one line without full stop
}

func (e *Error) Error() string { return e.Text }

// refusal is the index of an Error; 0 is no refusal.
type refusal uint8

const (
	ok         refusal = iota
	incomplete         // no refusal either: more bytes are needed

	refBareLF
	refBareCR
	refObsFold
	refControl
	refSpaceColon
	refNoColon
	refEmptyName
	refBadName
	refHeadBytes
	refLineBytes
	refFields
	refOptions
	refTwoLengths
	refBadLength
	refTwoCodings
	refBadCoding
	refUnknownCoding
	refLengthCoding
	refCoding10
	refCodingAlias

	refEmptyLines
	refMethod
	refConnect
	refTarget
	refTargetBytes
	refEscape
	refFragment
	refAboveRoot
	refHiddenDots
	refVersion
	refUnsupported
	refHTTP09
	refNoHost
	refTwoHosts
	refHost
	refHostMismatch
	refExpect
	refUpgradeBody

	refChunkSize
	refChunkExtension
	refChunkBytes
	refChunkEnd

	refStatusLine
	refNoBody

	refusals // their number
)

// sides is a set of what can be refused.
type sides uint8

const (
	request sides = 1 << iota
	response
	both = request | response
)

// catalogue describes each refusal. Faults of bodies are labelled alike on both
// sides, since a Body doesn't know which it is.
var catalogue = [refusals]struct {
	side   sides
	status int
	reason string
	text   string
}{
	refBareLF:         {both, 400, "bare_lf", "line feed without carriage return"},
	refBareCR:         {both, 400, "bare_cr", "carriage return without line feed"},
	refObsFold:        {both, 400, "obs_fold", "folded field line"},
	refControl:        {both, 400, "control_character", "control character in a field value"},
	refSpaceColon:     {both, 400, "space_before_colon", "white space before the colon of a field"},
	refNoColon:        {both, 400, "no_colon", "field line without colon"},
	refEmptyName:      {both, 400, "empty_field_name", "field without a name"},
	refBadName:        {both, 400, "bad_field_name", "character not allowed in a field name"},
	refHeadBytes:      {both, 431, "head_too_large", "header fields too large"},
	refLineBytes:      {both, 431, "line_too_long", "header field too large"},
	refFields:         {both, 431, "too_many_fields", "too many header fields"},
	refOptions:        {both, 400, "too_many_connection_options", "too many connection options"},
	refTwoLengths:     {both, 400, "two_content_lengths", "more than one content length"},
	refBadLength:      {both, 400, "bad_content_length", "content length is not a number in range"},
	refTwoCodings:     {both, 400, "two_transfer_encodings", "more than one transfer encoding"},
	refBadCoding:      {both, 400, "bad_transfer_encoding", "transfer encoding is not exactly chunked"},
	refUnknownCoding:  {both, 501, "unknown_transfer_coding", "transfer coding not implemented"},
	refLengthCoding:   {both, 400, "length_and_transfer_encoding", "both content length and transfer encoding"},
	refCoding10:       {both, 400, "transfer_encoding_in_http10", "transfer encoding in an HTTP/1.0 message"},
	refCodingAlias:    {both, 400, "transfer_encoding_alias", "transfer encoding spelled with an underscore"},
	refEmptyLines:     {request, 400, "empty_lines", "empty lines before the request"},
	refMethod:         {request, 400, "bad_method", "method is not a token of at most 32 bytes"},
	refConnect:        {request, 405, "connect", "method CONNECT not allowed"},
	refTarget:         {request, 400, "bad_target", "malformed request target"},
	refTargetBytes:    {request, 414, "target_too_long", "request target too long"},
	refEscape:         {request, 400, "bad_escape", "malformed or forbidden percent escape in the request target"},
	refFragment:       {request, 400, "fragment", "fragment in the request target"},
	refAboveRoot:      {request, 400, "path_above_root", "path leads above its root"},
	refHiddenDots:     {request, 400, "hidden_dot_segment", "parent segment beside an encoded separator or a backslash"},
	refVersion:        {request, 400, "bad_version", "malformed request line or HTTP version"},
	refUnsupported:    {request, 505, "unsupported_version", "HTTP version not supported"},
	refHTTP09:         {request, 400, "http09", "request line without HTTP version"},
	refNoHost:         {request, 400, "no_host", "no host"},
	refTwoHosts:       {request, 400, "two_hosts", "more than one host"},
	refHost:           {request, 400, "bad_host", "malformed host"},
	refHostMismatch:   {request, 400, "host_mismatch", "host differs from the request target"},
	refExpect:         {request, 417, "unknown_expectation", "expectation not supported"},
	refUpgradeBody:    {request, 400, "upgrade_with_body", "upgrade offered in a request with a body"},
	refChunkSize:      {request, 400, "bad_chunk_size", "malformed chunk size"},
	refChunkExtension: {request, 400, "bad_chunk_extension", "malformed chunk extension"},
	refChunkBytes:     {request, 400, "chunk_extensions_too_long", "chunk extensions too long"},
	refChunkEnd:       {request, 400, "bad_chunk_end", "chunk data not followed by a line end"},
	refStatusLine:     {response, 502, "bad_status_line", "malformed status line"},
	refNoBody:         {response, 502, "unexpected_transfer_encoding", "transfer encoding in an answer that can't have a body"},
}

// The errors by refusal. Those of responses all have status 502, and reasons of
// their own, so that the faults of clients and of endpoints are counted apart.
var (
	requestErrors  = makeErrors(request)
	responseErrors = makeErrors(response)
)

func makeErrors(side sides) (list [refusals]Error) {
	for i, c := range catalogue {
		if c.side&side == 0 {
			continue
		}
		list[i] = Error{c.status, c.reason, c.text}
		if side == response {
			list[i].Status, list[i].Reason = 502, "upstream_"+c.reason
		}
	}
	return list
}

// Reasons returns every label that an Error of this package can have, sorted.
func Reasons() []string {
	var list []string
	for i := range catalogue {
		for _, e := range []*Error{&requestErrors[i], &responseErrors[i]} {
			if e.Reason != "" {
				list = append(list, e.Reason)
			}
		}
	}
	slices.Sort(list)
	return list
}
