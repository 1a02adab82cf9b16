// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package jobpods

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-k8s/lockstep/controller/engine/plan"
)

// Deletion deletes an object and what it owns, in the background.
func Deletion(kind string, object metav1.Object) plan.Action {
	return plan.Action{
		Verb: plan.Delete, Kind: kind, Name: object.GetName(), UID: object.GetUID(),
		Propagation: metav1.DeletePropagationBackground,
	}
}

// DeletionAsSeen deletes an object unless the object has changed since the controller saw it.
func DeletionAsSeen(kind string, object metav1.Object) plan.Action {
	deletion := Deletion(kind, object)
	deletion.Version = object.GetResourceVersion()
	return deletion
}

// Annotate returns a patch that sets an annotation. If the object had no annotations when it was read, and has some
// now, the patch fails, so that it can't overwrite the annotations of another client.
func Annotate(object metav1.Object, key, value string) []plan.Operation {
	if object.GetAnnotations() == nil {
		return []plan.Operation{
			{Op: "test", Path: "/metadata/annotations", Value: nil},
			{Op: "add", Path: "/metadata/annotations", Value: map[string]string{key: value}},
		}
	}
	escaped := strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
	return []plan.Operation{{Op: "add", Path: "/metadata/annotations/" + escaped, Value: value}}
}
