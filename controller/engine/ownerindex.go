// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// ByOwner is the index that Owned looks into. The index has OwnerKeys.
const ByOwner = "owner"

// OwnerKey returns a key of ByOwner. Objects own none in other namespaces.
func OwnerKey(namespace string, owner types.UID) string {
	return namespace + "/" + string(owner)
}

// OwnerIndex indexes objects by the UID of their controller, and also by the UID in an annotation if that is not
// empty. So an object is still found after its controller reference was changed.
func OwnerIndex(annotation string) cache.Indexers {
	return cache.Indexers{ByOwner: func(object any) ([]string, error) {
		accessor, err := meta.Accessor(object)
		if err != nil {
			return nil, err
		}
		var keys []string
		if owner := accessor.GetAnnotations()[annotation]; owner != "" {
			keys = append(keys, OwnerKey(accessor.GetNamespace(), types.UID(owner)))
		}
		if owner := metav1.GetControllerOfNoCopy(accessor); owner != nil {
			keys = append(keys, OwnerKey(accessor.GetNamespace(), owner.UID))
		}
		return keys, nil
	}}
}
