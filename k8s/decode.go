package k8s

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	serializer "k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"
)

// object is one decoded object.
type object struct {
	ref    ref
	line   int               // of its document
	digest [sha256.Size]byte // of its JSON
	value  metav1.Object
	// undated objects came without creationTimestamp.
	undated bool
}

// fault says what is wrong with a document or with one item of a list in it.
type fault struct {
	ref  ref // kind and name "" if they can't be told
	line int
	err  error
	mild bool // only a kind that does not concern Weir
}

// decoder reads documents strictly: unknown and repeated fields are errors.
type decoder struct{ strict *serializer.Serializer }

func newDecoder() (*decoder, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, discoveryv1.AddToScheme, networkingv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("register Kubernetes types: %w", err)
		}
	}
	options := serializer.SerializerOptions{Strict: true}
	return &decoder{serializer.NewSerializerWithOptions(serializer.DefaultMetaFactory, scheme, scheme, options)}, nil
}

// header is what every object and list starts with.
type header struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        struct {
		Name      string `json:"name"`
		Namespace string `json:"namespace"`
	} `json:"metadata"`
	Items []json.RawMessage `json:"items"`
}

// kinds are those that Weir reads, with their API version.
var kinds = map[string]string{
	"Ingress": "networking.k8s.io/v1", "IngressClass": "networking.k8s.io/v1",
	"Service": "v1", "ConfigMap": "v1", "Secret": "v1", "EndpointSlice": "discovery.k8s.io/v1",
}

// decode returns the objects of a document and what is wrong in it.
func (d *decoder) decode(doc document) (objects []object, faults []fault) {
	if doc.json {
		return d.decodeJSON(doc.text, &place{doc: doc}, nil)
	}
	if err := checkYAML(doc.text); err != nil {
		return nil, []fault{{line: doc.line, err: err}}
	}
	data, err := yaml.YAMLToJSONStrict(doc.text)
	if err != nil {
		line, text := yamlFault(doc, err)
		return nil, []fault{{line: line, err: errors.New(text)}}
	}
	return d.decodeJSON(data, &place{doc: doc}, nil)
}

// decodeJSON decodes one object, or a list if it isn't itself an item of one.
func (d *decoder) decodeJSON(data []byte, at *place, list *header) (objects []object, faults []fault) {
	var h header
	if err := json.Unmarshal(data, &h); err != nil {
		return nil, []fault{{line: at.doc.line, err: fmt.Errorf("not an object: %w", err)}}
	}
	if h.Kind == "" && list != nil { // the items of an IngressList need not say what they are
		h.Kind, h.APIVersion = strings.TrimSuffix(list.Kind, "List"), list.APIVersion
	}
	if item, ok := strings.CutSuffix(h.Kind, "List"); ok && list == nil && (item == "" || kinds[item] != "") {
		for _, raw := range h.Items {
			o, f := d.decodeJSON(raw, at, &h)
			objects, faults = append(objects, o...), append(faults, f...)
		}
		return objects, faults
	}
	r := ref{h.Kind, types.NamespacedName{Namespace: h.Metadata.Namespace, Name: h.Metadata.Name}}
	if h.Kind == "IngressClass" {
		r.Namespace = ""
	} else if r.Namespace == "" {
		r.Namespace = "default"
	}
	o, err := d.one(data, h, &r)
	if err != nil {
		mild := kinds[h.Kind] == "" && h.Kind != "" && h.APIVersion != ""
		return nil, []fault{{r, at.line(err), err, mild}}
	}
	o.line = at.doc.line
	return []object{o}, nil
}

// one decodes the object that h heads.
func (d *decoder) one(data []byte, h header, r *ref) (object, error) {
	switch want := kinds[h.Kind]; {
	case h.Kind == "" || h.APIVersion == "":
		return object{}, errors.New("kind or apiVersion is missing")
	case want == "":
		return object{}, fmt.Errorf("kind %s of %s does not concern this version of Weir", clip(h.Kind), clip(h.APIVersion))
	case h.APIVersion != want:
		return object{}, fmt.Errorf("%s of %s is not served; use %s", h.Kind, clip(h.APIVersion), want)
	}
	gvk := h.GroupVersionKind()
	value, _, err := d.strict.Decode(data, &gvk, nil)
	if err != nil {
		return object{}, err
	}
	m, ok := value.(metav1.Object)
	if !ok {
		return object{}, fmt.Errorf("%s has no metadata", h.Kind)
	}
	if reasons := validation.IsDNS1123Subdomain(r.Name); len(reasons) != 0 {
		return object{}, fmt.Errorf("metadata.name %q: %s", clip(r.Name), strings.Join(reasons, "; "))
	}
	if reasons := validation.IsDNS1123Label(r.Namespace); r.Namespace != "" && len(reasons) != 0 {
		return object{}, fmt.Errorf("metadata.namespace %q: %s", clip(r.Namespace), strings.Join(reasons, "; "))
	}
	m.SetNamespace(r.Namespace)
	created := m.GetCreationTimestamp()
	return object{ref: *r, digest: sha256.Sum256(data), value: m, undated: created.IsZero()}, nil
}

var (
	lineInError  = regexp.MustCompile(`\bline \d+`)
	fieldInError = regexp.MustCompile(`(?:unknown|duplicate) field "([^"]*?)([^".\[\]]+)"`)
)

// yamlFault returns the line of the file that err is about, and its text in one
// line and with the file's line numbers instead of the document's.
func yamlFault(doc document, err error) (line int, text string) {
	line = doc.line
	last := bytes.Count(doc.text, []byte("\n"))
	text = lineInError.ReplaceAllStringFunc(err.Error(), func(m string) string {
		n, convErr := strconv.Atoi(strings.TrimPrefix(m, "line "))
		if convErr != nil {
			return m
		}
		line = doc.line + min(max(n-1, 0), last)
		return fmt.Sprintf("line %d", line)
	})
	return line, strings.Join(strings.Fields(text), " ")
}

// place finds lines in one document.
type place struct {
	doc    document
	fields map[string]int // line of each field, 0 if there are several; nil until needed
}

// line returns the line of the field that err names, if the document has only
// one of that name, else the document's first line.
func (p *place) line(err error) int {
	m := fieldInError.FindStringSubmatch(err.Error())
	if m == nil {
		return p.doc.line
	}
	if p.fields == nil {
		p.index()
	}
	if found := p.fields[m[2]]; found != 0 {
		return found
	}
	return p.doc.line
}

func (p *place) index() {
	p.fields = make(map[string]int)
	n := p.doc.line
	for line := range bytes.Lines(p.doc.text) {
		field, _, ok := bytes.Cut(bytes.TrimLeft(line, " \t-{\"'"), []byte(":"))
		if field = bytes.TrimRight(field, "\"' "); ok {
			if _, twice := p.fields[string(field)]; twice {
				p.fields[string(field)] = 0
			} else {
				p.fields[string(field)] = n
			}
		}
		n++
	}
}
