package http1

import "bytes"

// options is a set of connection options (RFC 9110, 7.6.1).
type options uint8

const (
	optionClose options = 1 << iota
	optionKeepAlive
	optionUpgrade
	optionFields // names of fields
)

// optionsMax is the number of field names that Connection may list. Each costs
// a search through all fields.
const optionsMax = 64

// connection reads the Connection fields and marks what they list.
func (h *Head) connection() (set options, ref refusal) {
	if h.seen&(1<<FieldConnection) == 0 {
		return 0, ok
	}
	listed := 0
	for i := int(h.first[FieldConnection]); i < h.n; i++ {
		if h.fields[i].id != FieldConnection {
			continue
		}
		for rest := h.Value(i); len(rest) > 0; {
			var item []byte
			item, rest = nextItem(rest)
			o := optionOf(item)
			set |= o
			if o != optionFields {
				continue
			}
			if listed++; listed > optionsMax {
				return 0, refOptions
			}
			h.dropListed(item)
		}
	}
	return set, ok
}

func optionOf(item []byte) options {
	switch {
	case len(item) == 0:
		return 0
	case string(item) == "keep-alive":
		return optionKeepAlive
	case equalFold(item, "keep-alive"):
		return optionKeepAlive
	case equalFold(item, "close"):
		return optionClose
	case equalFold(item, "upgrade"):
		return optionUpgrade
	}
	return optionFields
}

// dropListed marks the fields called name, unless they are known.
func (h *Head) dropListed(name []byte) {
	for i := range h.fields[:h.n] {
		f := &h.fields[i]
		if f.id == FieldNone && int(f.nameLen) == len(name) && bytes.EqualFold(h.Name(i), name) {
			f.flags |= fieldDrop
		}
	}
}

// nextItem cuts the first item off a list, which is not empty. The item may be
// empty, is trimmed, and is taken at the comma: quoted strings aren't expected.
func nextItem(list []byte) (item, rest []byte) {
	if i := bytes.IndexByte(list, ','); i >= 0 {
		return trimSpace(list[:i]), list[i+1:]
	}
	return trimSpace(list), nil
}
