package http1

// Field is one field of a Head: where it lies in the parsed buffer.
type Field struct {
	name, value, valueLen uint32
	nameLen               uint16
	id                    FieldID
	flags                 uint8
}

// nameBytes is the length of the longest name that a Field can describe.
const nameBytes = 1<<16 - 1

// The flags of a Field.
const (
	fieldDrop       = 1               // not to be forwarded
	fieldUnderscore = classUnderscore // the name contains '_'
)

// Head is the field section of a message. It is large (about 4 KiB) and meant
// to be used for one parse after the other.
type Head struct {
	buf         []byte // what was parsed; not owned
	n           int
	seen        uint64          // the set of known fields
	twice       uint64          // those that came more than once
	underscores bool            // some name contains '_'
	first       [fieldIDs]uint8 // index of the first of a kind, valid if seen
	fields      [MaxFields]Field
}

// Len returns the number of fields.
func (h *Head) Len() int { return h.n }

// Name returns the name of field i as it was spelled. It aliases the buffer.
func (h *Head) Name(i int) []byte {
	f := &h.fields[i]
	return h.buf[f.name : f.name+uint32(f.nameLen)]
}

// Value returns the value of field i without white space around it. It aliases
// the buffer.
func (h *Head) Value(i int) []byte {
	f := &h.fields[i]
	return h.buf[f.value : f.value+f.valueLen]
}

// ID returns which field i is.
func (h *Head) ID(i int) FieldID { return h.fields[i].id }

// Get returns the value of the first field of a known kind, nil if there is
// none; an empty value is not nil.
func (h *Head) Get(id FieldID) []byte {
	if h.seen&(1<<id) == 0 {
		return nil
	}
	return h.Value(int(h.first[id]))
}

// Drop reports whether field i must not be forwarded.
//
// These are the fields of one hop (RFC 9110, 7.6.1): Connection, Keep-Alive,
// Proxy-Connection, TE, Trailer, Transfer-Encoding, Upgrade, HTTP2-Settings;
// Proxy; and what Connection lists, as long as the field has no FieldID, so
// that a client can't remove what the proxy or the endpoint relies on.
// Proxy-Authenticate and Proxy-Authorization are forwarded: Weir is a gateway,
// which is an origin server to its clients, and takes no part in them. The
// Content-Length of a 1xx or 204 answer is dropped too (RFC 9110, 8.6).
func (h *Head) Drop(i int) bool { return h.fields[i].flags&fieldDrop != 0 }

// Underscore reports whether the name of field i contains '_'; CGI-like
// interfaces can't tell such a name from one with '-'.
func (h *Head) Underscore(i int) bool { return h.fields[i].flags&fieldUnderscore != 0 }

// note counts f, the field after the last one, in.
func (h *Head) note(f *Field) {
	if f.id != FieldNone {
		bit := uint64(1) << f.id
		if bit&ofOneHop != 0 {
			f.flags |= fieldDrop
		}
		if h.seen&bit == 0 {
			h.first[f.id] = uint8(h.n)
		}
		h.twice |= h.seen & bit
		h.seen |= bit
	} else if f.flags&fieldUnderscore != 0 {
		h.underscores = true
	}
	h.n++
}

// single returns the value of the only field of a kind, nil if there is none or
// more than one.
func (h *Head) single(id FieldID) []byte {
	if h.twice&(1<<id) != 0 {
		return nil
	}
	return h.Get(id)
}
