package report

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// fieldManager is the name under which the API server notes what this installation
// wrote. Two installations have different ones.
func fieldManager(c *Config) string { return "weir/" + c.Namespace + "/" + c.Lease }

// wrote reports whether the list of addresses in the status of an Ingress is what
// manager wrote last, by the API server's own record of who wrote what.
func wrote(manager string, fields []metav1.ManagedFieldsEntry) bool {
	for _, f := range fields {
		if f.Manager != manager || f.Subresource != "status" || f.FieldsV1 == nil {
			continue
		}
		var set struct {
			Status struct {
				LoadBalancer struct {
					Ingress *struct{} `json:"f:ingress"`
				} `json:"f:loadBalancer"`
			} `json:"f:status"`
		}
		if json.Unmarshal(f.FieldsV1.GetRawBytes(), &set) == nil && set.Status.LoadBalancer.Ingress != nil {
			return true
		}
	}
	return false
}
