// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package controlled says what controls an object. It is pure.
package controlled

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// By reports whether the object with a UID is the controller of another object. Names do not count: a job's successor
// may have the same name, and does not control the job's objects.
func By(uid types.UID, object metav1.Object) bool {
	controller := metav1.GetControllerOfNoCopy(object)
	return controller != nil && controller.UID == uid
}
