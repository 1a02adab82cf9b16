// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/controller/engine/plan"
	"github.com/lockstep-k8s/lockstep/internal/testing/statustest"
)

// BenchmarkDecide measures a round in which nothing has changed, the most
// frequent one.
func BenchmarkDecide(b *testing.B) {
	for _, tasks := range []int{100, 1000, 10_000} {
		b.Run(fmt.Sprintf("%d tasks", tasks), func(b *testing.B) {
			snapshot := runningSnapshot(b, tasks)
			b.ReportAllocs()
			for b.Loop() {
				if plan := Decide(snapshot, snapshot.Status.StartTime.Time, noEntropy{}); plan.Persist != PersistNone || len(plan.Actions) > 0 {
					b.Fatalf("something has changed: %s", plan)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(tasks), "ns/task")
		})
	}
}

// runningSnapshot is a gang whose tasks all run, as it is persisted and cached.
func runningSnapshot(b *testing.B, tasks int) Snapshot {
	b.Helper()
	status := statustest.Running(tasks)
	uid := types.UID("configmap")
	status.AttemptStatus.ConfigMapUID = &uid
	status.AttemptStatus.InstanceUID = instanceUID(0, uid)
	framework := &frameworkv1.Framework{
		ObjectMeta: metav1.ObjectMeta{Name: "large", Namespace: "ns", UID: "framework"},
		Spec: frameworkv1.FrameworkSpec{
			ExecutionType: frameworkv1.ExecutionStart,
			TaskRoles:     []frameworkv1.TaskRoleSpec{{Name: "worker", TaskNumber: int32(tasks)}},
		},
	}
	pods := map[string]*corev1.Pod{}
	for _, task := range status.AttemptStatus.TaskRoleStatuses[0].TaskStatuses {
		attempt := task.AttemptStatus
		pods[attempt.PodName] = &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: attempt.PodName, UID: *attempt.PodUID},
			Spec:       corev1.PodSpec{NodeName: *attempt.PodNodeName},
			Status:     corev1.PodStatus{Phase: corev1.PodRunning, PodIP: *attempt.PodIP, HostIP: *attempt.PodHostIP},
		}
	}
	snapshot := Snapshot{
		Framework: framework, Known: plan.Known[frameworkv1.FrameworkStatus]{Persisted: status, Status: status}, Pods: pods,
		ConfigMap: &metav1.ObjectMeta{Name: "large-attempt", UID: uid},
		Options:   Options{CreationTimeout: time.Minute, PodFailures: ptr.To(PodFailureRules{})},
	}
	for range 2 { // What is decided but once, and the conditions.
		snapshot.Status = Decide(snapshot, status.StartTime.Time, noEntropy{}).Status
		snapshot.Persisted = snapshot.Status
	}
	return snapshot
}

type noEntropy struct{}

func (noEntropy) NewUID() types.UID        { panic("nothing is new") }
func (noEntropy) Between(a, _ int64) int64 { return a }
