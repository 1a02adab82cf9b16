// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
)

// TestOwnersAreOfTheirNamespace: an object of another namespace may name any UID.
func TestOwnersAreOfTheirNamespace(t *testing.T) {
	pod := func(namespace string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: "a",
			Annotations:     map[string]string{"uid": "framework"},
			OwnerReferences: []metav1.OwnerReference{{UID: "configmap", Controller: ptr.To(true)}},
		}}
	}
	indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, OwnerIndex("uid"))
	for _, namespace := range []string{"ns", "other"} {
		if err := indexer.Add(pod(namespace)); err != nil {
			t.Fatal(err)
		}
	}
	for _, owner := range []types.UID{"framework", "configmap"} {
		found, err := indexer.ByIndex(ByOwner, OwnerKey("ns", owner))
		if err != nil {
			t.Fatal(err)
		}
		if len(found) != 1 || found[0].(*corev1.Pod).Namespace != "ns" {
			t.Errorf("%d Pods are of %s in the namespace, want its own", len(found), owner)
		}
	}
}
