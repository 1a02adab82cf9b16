// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"encoding/json"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// DropFromStatus makes the server drop fields of the status at each write of a custom resource, as it would if the CRD
// lacked these fields. paths are for instance "phase", or "replicaStatuses.*.restarts", where * stands for every key.
// Each call replaces the paths of the last.
func (s *Server) DropFromStatus(resource string, paths ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.table(resource)
	t.dropped = nil
	for _, path := range paths {
		t.dropped = append(t.dropped, strings.Split(path, "."))
	}
}

// prune drops from an object what the resource has no place for.
func (t *table) prune(object runtime.Object) error {
	custom, ok := object.(*customObject)
	if !ok || len(t.dropped) == 0 || len(custom.fields["status"]) == 0 {
		return nil
	}
	var status any
	if err := utiljson.Unmarshal(custom.fields["status"], &status); err != nil {
		return err
	}
	for _, path := range t.dropped {
		dropField(status, path)
	}
	var err error
	custom.fields["status"], err = json.Marshal(status)
	return err
}

// dropField drops a field from a value, wherever the path leads.
func dropField(value any, path []string) {
	fields, ok := value.(map[string]any)
	switch {
	case !ok:
	case len(path) == 1:
		delete(fields, path[0])
	case path[0] == "*":
		for _, inner := range fields {
			dropField(inner, path[1:])
		}
	default:
		dropField(fields[path[0]], path[1:])
	}
}
