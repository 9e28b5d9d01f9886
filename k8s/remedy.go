package k8s

import "cmp"

// advised returns n with a remedy, if it needs one and has none.
func (n Notice) advised() Notice {
	if n.Severity != Info {
		n.Remedy = cmp.Or(n.Remedy, remedies[n.Reason])
	}
	return n
}

// remedies say what to do about a notice that has no better advice of its own, by
// its reason. No Warning and no Error goes without (TestEveryComplaintHasARemedy).
var remedies = map[string]string{
	"ClassOverruled":     "remove the annotation",
	"InvalidAddress":     "have the slice list IP addresses of its addressType",
	"InvalidAddressType": "use EndpointSlices of addressType IPv4 or IPv6",
	"InvalidBackend":     "name a Service and one of its ports, by number or name",
	"InvalidPath":        "correct the path",
	"InvalidPort":        "give the port a number from 1 to 65535",
	"NoBackend":          "name a Service of this namespace, not of type ExternalName, and a TCP port that it has",
	"NoConfigMap":        "create the ConfigMap, or leave --configmap out",
	"NotServed":          "remove what it names, or serve this Ingress elsewhere until Weir supports it",
	"NotSupported":       "remove it if nobody relies on it",
	"Refused":            "remove it; its message names what to use instead, if there is anything",
	"RefusedAddress":     "have the slice list addresses of pods",
	"Unknown":            "correct its name, or remove it",
}
