package http1

import "bytes"

// upgrade returns the protocol of the one Upgrade field if it names just one,
// with or without version, that can be tunnelled; else nil. HTTP and TLS would
// change what the connection itself speaks (RFC 9110, 7.8).
func (h *Head) upgrade() []byte {
	v := h.single(FieldUpgrade)
	name, version, versioned := bytes.Cut(v, []byte{'/'})
	if !isToken(name) || versioned && !isToken(version) {
		return nil
	}
	if equalFold(name, "http") || equalFold(name, "tls") || equalFold(name, "h2c") || equalFold(name, "h2") {
		return nil
	}
	return v
}

// interpretUpgrade takes up an offer to upgrade, or ignores it. With a body it
// is refused: where the tunnel starts would be a matter of opinion.
func (r *Request) interpretUpgrade() refusal {
	protocol := r.upgrade()
	webSocket := equalFold(protocol, "websocket")
	if protocol == nil || r.Method != MethodGet && !webSocket {
		return ok
	}
	if r.Body == BodyChunked || r.Length > 0 {
		return refUpgradeBody
	}
	if webSocket {
		key := r.single(FieldSecWebSocketKey)
		if r.Method != MethodGet || !isWebSocketKey(key) || string(r.single(FieldSecWebSocketVersion)) != "13" {
			return ok
		}
		r.WebSocketKey = key
	}
	r.Upgrade = protocol
	return ok
}

// isWebSocketKey reports whether v is 16 bytes in base64 (RFC 6455, 4.1).
func isWebSocketKey(v []byte) bool {
	if len(v) != 24 || string(v[22:]) != "==" {
		return false
	}
	for _, c := range v[:22] {
		if classes[c]&classBase64 == 0 {
			return false
		}
	}
	return true
}
