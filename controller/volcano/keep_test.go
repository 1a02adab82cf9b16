// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package volcano

import (
	"encoding/json"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
	busv1alpha1 "github.com/lockstep-k8s/lockstep/apis/bus/v1alpha1"
)

// TestLittleIsKeptOfWhatAnybodyMayWrite has a megabyte in each field that has room for it.
func TestLittleIsKeptOfWhatAnybodyMayWrite(t *testing.T) {
	large := strings.Repeat("x", 1<<20)
	metadata := metav1.ObjectMeta{
		Name: "n", Namespace: "ns", UID: "u", ResourceVersion: "7", Finalizers: []string{large},
		Labels:          map[string]string{large: "", batchv1alpha1.KeyJobName: "j"},
		Annotations:     map[string]string{"a": large, KeyClaim: "3", batchv1alpha1.KeyJobName: "j"},
		OwnerReferences: []metav1.OwnerReference{{Name: large}, {Kind: "Job", Name: "j", UID: "o", Controller: new(bool)}},
		ManagedFields:   []metav1.ManagedFieldsEntry{{Manager: large}},
	}
	*metadata.OwnerReferences[1].Controller = true
	target := metav1.NewControllerRef(&metav1.ObjectMeta{Name: "j", UID: "o"}, batchv1alpha1.JobGroupVersionKind)
	configMap := KeepOfConfigMap(&corev1.ConfigMap{ObjectMeta: metadata, Data: map[string]string{"k": large}, BinaryData: map[string][]byte{"b": []byte(large)}})
	command := KeepOfCommand(&busv1alpha1.Command{ObjectMeta: metadata, Action: busv1alpha1.Action(large), Reason: large, Message: large, Target: target})
	nobodys := *target
	nobodys.Name = large
	for name, kept := range map[string]metav1.Object{
		"a ConfigMap": configMap, "a Command": command,
		"a Command for nobody": KeepOfCommand(&busv1alpha1.Command{ObjectMeta: metadata, Target: &nobodys}),
	} {
		data, err := json.Marshal(kept)
		if err != nil || len(data) > 4096 {
			t.Errorf("of %s %d bytes are kept (%v)", name, len(data), err)
		}
		if owner := metav1.GetControllerOf(kept); owner == nil || owner.UID != "o" || kept.GetResourceVersion() != "7" {
			t.Errorf("of %s too little is kept: %.1000s", name, data)
		}
	}
	if command.Annotations[KeyClaim] != "3" || TargetOf(command) != "j" {
		t.Errorf("of the Command too little is kept: %+v", command)
	}
	if configMap.Labels[batchv1alpha1.KeyJobName] != "j" || configMap.Annotations[batchv1alpha1.KeyJobName] != "j" {
		t.Errorf("of the ConfigMap too little is kept: %+v", configMap)
	}
}

func TestDataOfConfigMapsAreToldApart(t *testing.T) {
	if digestOf(nil) != digestOf(map[string]string{}) || digestOf(map[string]string{"a": "b", "c": "d"}) != digestOf(map[string]string{"c": "d", "a": "b"}) {
		t.Error("the same data have different digests")
	}
	seen := map[string]bool{}
	for _, data := range []map[string]string{nil, {"": ""}, {"a": ""}, {"": "a"}, {"a": "b"}, {"ab": ""}, {"a": "b", "c": "d"}, {"a": "bc", "d": ""}} {
		if digest := digestOf(data); seen[digest] {
			t.Errorf("%v has the digest of other data", data)
		} else {
			seen[digest] = true
		}
	}
}
