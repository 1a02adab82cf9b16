// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package jobpods

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// HasStatusOf reports whether a manager has written an owner's status.
func HasStatusOf(owner metav1.Object, manager string) bool {
	return slices.ContainsFunc(owner.GetManagedFields(), func(f metav1.ManagedFieldsEntry) bool {
		return f.Subresource == "status" && f.Manager == manager
	})
}

// ForeignManager returns the field manager of another client that has written the status of an owner; "" if there is
// none. own is this controller's field manager.
func ForeignManager(owner metav1.Object, own string) string {
	fields := owner.GetManagedFields()
	i := slices.IndexFunc(fields, func(f metav1.ManagedFieldsEntry) bool {
		return f.Subresource == "status" && f.Manager != own
	})
	if i < 0 {
		return ""
	}
	return fields[i].Manager
}
