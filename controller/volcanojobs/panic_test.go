// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package volcanojobs

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
	"github.com/lockstep-k8s/lockstep/controller/adapter"
	"github.com/lockstep-k8s/lockstep/controller/engine/plan"
	"github.com/lockstep-k8s/lockstep/controller/volcano"
	"github.com/lockstep-k8s/lockstep/internal/testing/apiserver"
	"github.com/lockstep-k8s/lockstep/internal/testing/coretest"
)

// TestAPanicCostsOneJobAWhile, and after that it goes on if the fault is gone.
func TestAPanicCostsOneJobAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := apiserver.New(t)
		faulty := true
		run(t, server, func(snapshot volcano.Snapshot, now time.Time) (plan.Plan[batchv1alpha1.JobStatus], volcano.Memory) {
			if faulty && snapshot.Job.Name == coretest.Faulty {
				panic("a fault")
			}
			return volcano.Decide(snapshot, now)
		})
		pods := func(name string) bool { return apiserver.Find[corev1.Pod](server, "ns", name+"-a-0") != nil }
		create := func(name string) {
			apiserver.Add(server, &batchv1alpha1.Job{
				ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name},
				Spec: batchv1alpha1.JobSpec{Tasks: []batchv1alpha1.TaskSpec{{Name: "a", Replicas: 1, Template: runtime.RawExtension{
					Raw: []byte(`{"spec":{"containers":[{"name":"main","image":"busybox"}]}}`)}}}},
			})
		}
		coretest.CostsOneAWhile(t, server, &faulty, create, pods)
	})
}

// run runs Jobs with a core that decides otherwise, until the test ends.
func run(t *testing.T, server *apiserver.Server, decide func(volcano.Snapshot, time.Time) (plan.Plan[batchv1alpha1.JobStatus], volcano.Memory)) {
	t.Helper()
	coretest.Run(t, server, func(s coretest.Setup) (func(context.Context), error) {
		s.Config.VolcanoJobs.SchedulerNames = []string{""}
		core, err := New(adapter.Clients{Kube: s.Kube, Lockstep: s.Lockstep, Metadata: s.Metadata, Dynamic: s.Dynamic}, s.PodGroups, s.Config)
		if err != nil {
			return nil, err
		}
		core.decide = decide
		_, err = core.AddTo(s.Engine)
		return core.Start, err
	})
}
