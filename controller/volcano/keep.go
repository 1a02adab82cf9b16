// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package volcano

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
	busv1alpha1 "github.com/lockstep-k8s/lockstep/apis/bus/v1alpha1"
	"github.com/lockstep-k8s/lockstep/controller/engine/plan"
	"github.com/lockstep-k8s/lockstep/controller/jobpods"
)

// KeepOfPod returns a Pod reduced to the fields that decisions read, for the cache. It keeps the annotations that say
// what the Pod is for, and the annotations that request an action.
func KeepOfPod(pod *corev1.Pod) *corev1.Pod {
	return jobpods.Keep(pod,
		batchv1alpha1.KeyJobName, batchv1alpha1.KeyJobVersion, batchv1alpha1.KeyJobRetryCount, KeyMark, KeyEvictedAt)
}

// ConfigMap holds the fields of a ConfigMap that decisions read. Whole ConfigMaps are not cached: a user could create
// thousands of a megabyte each.
type ConfigMap struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	// Digest is that of the data.
	Digest string
}

// DeepCopyObject makes a KeptPod an object for informers.
func (m *ConfigMap) DeepCopyObject() runtime.Object {
	return &ConfigMap{TypeMeta: m.TypeMeta, ObjectMeta: *m.ObjectMeta.DeepCopy(), Digest: m.Digest}
}

// KeepOfConfigMap returns what decisions read of a ConfigMap, and nothing else.
func KeepOfConfigMap(configMap *corev1.ConfigMap) *ConfigMap {
	return &ConfigMap{ObjectMeta: jobpods.KeepMetadata(configMap, batchv1alpha1.KeyJobName), Digest: digestOf(configMap.Data)}
}

// digestOf distinguishes data of ConfigMaps.
func digestOf(data map[string]string) string {
	hash := sha256.New()
	for _, key := range jobpods.SortedKeys(data) {
		fmt.Fprintf(hash, "%d %d %s%s", len(key), len(data[key]), key, data[key])
	}
	return hex.EncodeToString(hash.Sum(nil))
}

// maxTarget bounds the target of a Command, in bytes. A name has at most 253.
const maxTarget = 1024

// KeepOfCommand returns a Command reduced to the fields that decisions read. If the Command's target is too long for a
// name, the Command belongs to no Job.
func KeepOfCommand(command *busv1alpha1.Command) *busv1alpha1.Command {
	kept := &busv1alpha1.Command{
		TypeMeta: command.TypeMeta, ObjectMeta: jobpods.KeepMetadata(command, KeyClaim),
		Action: busv1alpha1.Action(cutReason(string(command.Action))),
		Reason: cutReason(command.Reason), Message: plan.CutMessage(command.Message),
	}
	if t := command.Target; t != nil && len(t.APIVersion)+len(t.Kind)+len(t.Name)+len(t.UID) <= maxTarget {
		kept.Target = t
	}
	return kept
}
