// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package informing holds what the informers of both programs have in common.
package informing

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// WantCurrent makes a first list as new as everything that was written before it. Informers that
// can't get it as a stream content themselves with any state that the API server has at hand.
// Whoever begins, knowing nothing, with a state from before its predecessor's last writes would
// do again what was done.
func WantCurrent(options *metav1.ListOptions) {
	if options.ResourceVersion == "0" {
		options.ResourceVersion = ""
	}
}

// DropManagedFields is a transform of an informer that saves the memory of a field which nobody
// reads.
func DropManagedFields(object any) (any, error) {
	if accessor, err := meta.Accessor(object); err == nil {
		accessor.SetManagedFields(nil)
	}
	return object, nil
}
