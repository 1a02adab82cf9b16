// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package informing_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/lockstep-k8s/lockstep/internal/informing"
)

func TestAListIsCurrentUnlessAVersionIsAskedFor(t *testing.T) {
	for asked, want := range map[string]string{"0": "", "": "", "7": "7"} {
		options := metav1.ListOptions{ResourceVersion: asked}
		informing.WantCurrent(&options)
		if options.ResourceVersion != want {
			t.Errorf("of version %q: got %q, want %q", asked, options.ResourceVersion, want)
		}
	}
}

func TestManagedFieldsAreDroppedOfObjects(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}}}}
	got, err := informing.DropManagedFields(pod)
	if kept, ok := got.(*corev1.Pod); err != nil || !ok || kept.Name != "a" || kept.ManagedFields != nil {
		t.Errorf("got %v (%v), want the Pod without managed fields", got, err)
	}
	gone := cache.DeletedFinalStateUnknown{Key: "ns/a"}
	if got, err := informing.DropManagedFields(gone); err != nil || got != any(gone) {
		t.Errorf("got %v (%v), want what is no object as it is", got, err)
	}
}

func TestWhatIsKeptOfAnObjectIsTheSameOnEveryWay(t *testing.T) {
	transform, reduce := informing.Keep(func(pod *corev1.Pod) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: pod.Name}}
	})
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"k": "v"}}}
	got, err := transform(pod)
	if kept, ok := got.(*corev1.Pod); err != nil || !ok || kept.Name != "a" || kept.Labels != nil {
		t.Errorf("the informer keeps %v (%v)", got, err)
	}
	if kept := reduce(pod); kept.GetName() != "a" || kept.GetLabels() != nil {
		t.Errorf("of an object from elsewhere %v is kept", kept)
	}
	other := &corev1.ConfigMap{}
	if got, err := transform(other); err != nil || got != any(other) || reduce(other) != metav1.Object(other) {
		t.Errorf("an object of another kind became %v (%v)", got, err)
	}
}
