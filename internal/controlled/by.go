// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package controlled says what controls an object. It is pure.
package controlled

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// By says whether the object of a UID is the controller of another object. Its name does
// not count: a successor of the same name may not have what its predecessor controls.
func By(uid types.UID, object metav1.Object) bool {
	controller := metav1.GetControllerOfNoCopy(object)
	return controller != nil && controller.UID == uid
}
