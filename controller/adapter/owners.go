// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package adapter

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// DecodeStatus reads a stored status.
func DecodeStatus[S any](stored []byte) (*S, error) {
	status := new(S)
	if err := utiljson.Unmarshal(stored, status); err != nil {
		return nil, fmt.Errorf("status does not decode: %w", err)
	}
	return status, nil
}

// StatusWriters returns the managers of an owner's status, without the fields that they have written.
func StatusWriters(managers []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
	var kept []metav1.ManagedFieldsEntry
	for _, manager := range managers {
		if manager.Subresource == "status" {
			manager.FieldsV1 = nil
			kept = append(kept, manager)
		}
	}
	return kept
}
