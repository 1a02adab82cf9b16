// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package podend

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DeletionPatience is how long the deletion of an object may take, beside the grace period that
// its Pod has to end, before the user is told.
const DeletionPatience = time.Minute

// FirstOverdue is, of objects by name, the first whose deletion does not end. Since gives since
// when the deletion of an object is known, and false for one that nobody deletes. Name is empty if
// none is overdue; next is when another may be, and zero if none is being deleted.
func FirstOverdue[O metav1.Object](objects map[string]O, since func(O) (time.Time, bool), now time.Time) (name string, next time.Time) {
	for candidate, object := range objects {
		seen, deleted := since(object)
		if !deleted {
			continue
		}
		grace := int64(0)
		if seconds := object.GetDeletionGracePeriodSeconds(); seconds != nil {
			grace = min(max(0, *seconds), 1<<31-1)
		}
		switch due := seen.Add(time.Duration(grace)*time.Second + DeletionPatience); {
		case now.Before(due):
			if next.IsZero() || due.Before(next) {
				next = due
			}
		case name == "" || candidate < name:
			name = candidate
		}
	}
	return name, next
}

// Overdue says of an object that its deletion does not end. Since is when the deletion was first
// seen.
func Overdue(kind string, object metav1.Object, since time.Time) string {
	node, why := "", "a finalizer holds it"
	if pod, ok := object.(*corev1.Pod); ok && pod.Spec.NodeName != "" {
		node, why = " on node "+pod.Spec.NodeName, "a finalizer holds it, or its node does not answer"
	}
	return fmt.Sprintf("%s %s%s has been in deletion since %s and is still there: %s",
		kind, object.GetName(), node, since.UTC().Format(time.RFC3339), why)
}
