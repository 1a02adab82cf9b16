// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	configv1alpha1 "github.com/lockstep-k8s/lockstep/apis/config/v1alpha1"
	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
)

// BenchmarkEncode shows what masking adds to the encoding of a Pod, and of a
// Framework of 10,000 tasks.
func BenchmarkEncode(b *testing.B) {
	var env []corev1.EnvVar
	for i := range 25 {
		env = append(env, corev1.EnvVar{Name: fmt.Sprintf("FC_VARIABLE_%d", i), Value: "a value of some length"})
	}
	pod := func(more ...corev1.EnvVar) any {
		return Pod(&corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "fw-worker-0", Namespace: "ns", Annotations: map[string]string{"note": "of some length, too"}},
			Spec: corev1.PodSpec{
				InitContainers: []corev1.Container{{Name: "barrier", Image: "example.com/barrier:1", Env: env}},
				Containers:     []corev1.Container{{Name: "main", Image: "example.com/training:1", Env: append(more, env...)}},
			},
		})
	}
	fw := &frameworkv1.Framework{Spec: frameworkv1.FrameworkSpec{TaskRoles: []frameworkv1.TaskRoleSpec{{
		Name: "worker",
		Task: frameworkv1.TaskSpec{Pod: runtime.RawExtension{Raw: []byte(`{"spec":{"containers":[{"name":"main","env":[{"name":"TOKEN","value":"x"}]}]}}`)}},
	}}}}
	role := &frameworkv1.TaskRoleStatus{Name: "worker"}
	for i := range int32(10_000) {
		role.TaskStatuses = append(role.TaskStatuses, &frameworkv1.TaskStatus{Index: i, State: frameworkv1.TaskCompleted,
			AttemptStatus: frameworkv1.TaskAttemptStatus{PodName: fmt.Sprintf("fw-worker-%d", i)}})
	}
	status := &frameworkv1.FrameworkStatus{AttemptStatus: frameworkv1.FrameworkAttemptStatus{TaskRoleStatuses: []*frameworkv1.TaskRoleStatus{role}}}

	for name, object := range map[string]any{
		"Pod without a secret":         pod(),
		"Pod with a secret":            pod(corev1.EnvVar{Name: "TOKEN", Value: "x"}),
		"Framework of 10,000 tasks":    Framework(fw, status),
		"Framework without any status": Framework(fw, nil),
	} {
		for what, masks := range map[string]func(string) bool{"plain": nil, "masked": configv1alpha1.MaskEnv{NameFragments: configv1alpha1.DefaultMaskedNameFragments()}.Masks} {
			b.Run(name+"/"+what, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					data, err := Encode(object, masks)
					if err != nil {
						b.Fatal(err)
					}
					b.SetBytes(int64(len(data)))
				}
			})
		}
	}
}
