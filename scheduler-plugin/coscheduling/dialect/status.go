// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Status is what the object of another dialect says of its gang, in the words of that.
type Status struct {
	Phase                      string
	Running, Succeeded, Failed int32
	OccupiedBy                 string
}

// Patch is a merge patch that has the group with this UID say this. Counts of 0 are left out of
// objects by those who read them, and are written all the same: they may have been others.
func (s *Status) Patch(uid string) ([]byte, error) {
	status := map[string]any{"phase": s.Phase, "running": s.Running, "succeeded": s.Succeeded, "failed": s.Failed}
	if s.OccupiedBy != "" {
		status["occupiedBy"] = s.OccupiedBy
	}
	return json.Marshal(map[string]any{"metadata": map[string]any{"uid": uid}, "status": status})
}

// phaseBy is the field manager that has written the phase of an object last, empty if nobody
// has or that can't be read.
func phaseBy(object *unstructured.Unstructured) string {
	for _, entry := range object.GetManagedFields() {
		if writesPhase(&entry) {
			return entry.Manager
		}
	}
	return ""
}

// writesPhase says whether an entry of managed fields has the phase.
func writesPhase(entry *metav1.ManagedFieldsEntry) bool {
	var fields struct {
		Status struct {
			Phase *struct{} `json:"f:phase"`
		} `json:"f:status"`
	}
	return entry.FieldsV1 != nil && json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields) == nil && fields.Status.Phase != nil
}

// Reduce has an object keep of its managed fields just who has written its phase, which saves
// memory. It changes the object.
func Reduce(object *unstructured.Unstructured) {
	var kept []metav1.ManagedFieldsEntry
	for _, entry := range object.GetManagedFields() {
		if writesPhase(&entry) {
			kept = append(kept, entry)
		}
	}
	object.SetManagedFields(kept)
}
