// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package podend

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DeletionPatience is how long the deletion of an object may take, in addition to the grace period of its Pod, before
// the user is warned.
const DeletionPatience = time.Minute

// FirstOverdue returns a message about the first object, by name, that takes too long to be deleted; "" if there is
// none. `since` returns when the deletion of an object was first seen; false if the object is not being deleted. `next`
// is the earliest time at which a further deletion becomes overdue; zero if no object is being deleted.
func FirstOverdue[O metav1.Object](kind string, objects map[string]O, since func(O) (time.Time, bool), now time.Time) (message string, next time.Time) {
	name := ""
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
	if name == "" {
		return "", next
	}
	seen, _ := since(objects[name])
	return overdue(kind, objects[name], seen), next
}

func overdue(kind string, object metav1.Object, since time.Time) string {
	node, why := "", "a finalizer holds it"
	if pod, ok := object.(*corev1.Pod); ok && pod.Spec.NodeName != "" {
		node, why = " on node "+pod.Spec.NodeName, "a finalizer holds it, or its node does not answer"
	}
	return fmt.Sprintf("%s %s%s has been in deletion since %s and is still there: %s",
		kind, object.GetName(), node, since.UTC().Format(time.RFC3339), why)
}
