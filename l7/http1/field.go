package http1

// FieldID names a field that some part of the proxy gives a meaning; all others
// are FieldNone.
type FieldID uint8

const (
	FieldNone FieldID = iota

	// of one hop
	FieldConnection
	FieldHTTP2Settings
	FieldKeepAlive
	FieldProxy // no field at all, but CGI makes HTTP_PROXY of it
	FieldProxyConnection
	FieldTE
	FieldTrailer
	FieldTransferEncoding
	FieldUpgrade

	// of the message and its body
	FieldContentEncoding
	FieldContentLength
	FieldContentType
	FieldDate
	FieldExpect
	FieldHost
	FieldVia

	// of whoever forwarded it
	FieldForwarded
	FieldXForwardedFor
	FieldXForwardedHost
	FieldXForwardedPort
	FieldXForwardedProto
	FieldXForwardedScheme
	FieldXForwardedServer
	FieldXOriginalForwardedFor
	FieldXRealIP
	FieldXRequestID
	FieldXScheme

	// of WebSocket (RFC 6455)
	FieldSecWebSocketAccept
	FieldSecWebSocketKey
	FieldSecWebSocketVersion

	// of requests
	FieldAccept
	FieldAcceptEncoding
	FieldAcceptLanguage
	FieldAuthorization
	FieldCookie
	FieldOrigin
	FieldRange
	FieldReferer
	FieldUserAgent

	// of responses
	FieldAge
	FieldCacheControl
	FieldETag
	FieldExpires
	FieldLastModified
	FieldLocation
	FieldRetryAfter
	FieldServer
	FieldSetCookie
	FieldVary

	fieldIDs // their number
)

// Head keeps a set of them in a word: this doesn't compile if it is too small.
const _ = uint(64 - fieldIDs)

var fieldNames = [fieldIDs]string{
	FieldConnection:            "Connection",
	FieldHTTP2Settings:         "HTTP2-Settings",
	FieldKeepAlive:             "Keep-Alive",
	FieldProxy:                 "Proxy",
	FieldProxyConnection:       "Proxy-Connection",
	FieldTE:                    "TE",
	FieldTrailer:               "Trailer",
	FieldTransferEncoding:      "Transfer-Encoding",
	FieldUpgrade:               "Upgrade",
	FieldContentEncoding:       "Content-Encoding",
	FieldContentLength:         "Content-Length",
	FieldContentType:           "Content-Type",
	FieldDate:                  "Date",
	FieldExpect:                "Expect",
	FieldHost:                  "Host",
	FieldVia:                   "Via",
	FieldForwarded:             "Forwarded",
	FieldXForwardedFor:         "X-Forwarded-For",
	FieldXForwardedHost:        "X-Forwarded-Host",
	FieldXForwardedPort:        "X-Forwarded-Port",
	FieldXForwardedProto:       "X-Forwarded-Proto",
	FieldXForwardedScheme:      "X-Forwarded-Scheme",
	FieldXForwardedServer:      "X-Forwarded-Server",
	FieldXOriginalForwardedFor: "X-Original-Forwarded-For",
	FieldXRealIP:               "X-Real-IP",
	FieldXRequestID:            "X-Request-ID",
	FieldXScheme:               "X-Scheme",
	FieldSecWebSocketAccept:    "Sec-WebSocket-Accept",
	FieldSecWebSocketKey:       "Sec-WebSocket-Key",
	FieldSecWebSocketVersion:   "Sec-WebSocket-Version",
	FieldAccept:                "Accept",
	FieldAcceptEncoding:        "Accept-Encoding",
	FieldAcceptLanguage:        "Accept-Language",
	FieldAuthorization:         "Authorization",
	FieldCookie:                "Cookie",
	FieldOrigin:                "Origin",
	FieldRange:                 "Range",
	FieldReferer:               "Referer",
	FieldUserAgent:             "User-Agent",
	FieldAge:                   "Age",
	FieldCacheControl:          "Cache-Control",
	FieldETag:                  "ETag",
	FieldExpires:               "Expires",
	FieldLastModified:          "Last-Modified",
	FieldLocation:              "Location",
	FieldRetryAfter:            "Retry-After",
	FieldServer:                "Server",
	FieldSetCookie:             "Set-Cookie",
	FieldVary:                  "Vary",
}

// String returns the usual spelling, "" for FieldNone.
func (id FieldID) String() string { return fieldNames[id] }
