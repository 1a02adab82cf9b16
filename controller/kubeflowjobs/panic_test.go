// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeflowjobs

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	kubeflowv1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v1"
	"github.com/lockstep-k8s/lockstep/controller/adapter"
	"github.com/lockstep-k8s/lockstep/controller/engine/plan"
	"github.com/lockstep-k8s/lockstep/controller/kubeflow"
	"github.com/lockstep-k8s/lockstep/internal/testing/apiserver"
	"github.com/lockstep-k8s/lockstep/internal/testing/coretest"
)

// TestAPanicCostsOneJobAWhile, and after that it goes on if the fault is gone.
func TestAPanicCostsOneJobAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := apiserver.New(t)
		faulty := true
		coretest.Run(t, server, func(s coretest.Setup) (func(context.Context), error) {
			cores, err := New(adapter.Clients{Kube: s.Kube, Lockstep: s.Lockstep, Metadata: s.Metadata}, s.PodGroups, s.Config)
			if err != nil {
				return nil, err
			}
			for _, core := range cores.cores {
				core.decide = func(snapshot kubeflow.Snapshot, now time.Time, entropy plan.Entropy) (plan.Plan[kubeflowv1.JobStatus], kubeflow.Memory) {
					if faulty && snapshot.Job.Name == coretest.Faulty {
						panic("a fault")
					}
					return kubeflow.Decide(snapshot, now, entropy)
				}
			}
			_, err = cores.AddTo(s.Engine)
			return cores.Start, err
		})
		pods := func(name string) bool { return apiserver.Find[corev1.Pod](server, "ns", name+"-worker-0") != nil }
		create := func(name string) {
			apiserver.Add(server, &kubeflowv1.TFJob{
				ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name},
				Spec: kubeflowv1.TFJobSpec{
					RunPolicy: kubeflowv1.RunPolicy{ManagedBy: ptr.To(kubeflowv1.ManagedByLockstep)},
					TFReplicaSpecs: map[string]kubeflowv1.ReplicaSpec{kubeflowv1.ReplicaWorker: {Template: runtime.RawExtension{
						Raw: []byte(`{"spec":{"containers":[{"name":"tensorflow","image":"busybox"}]}}`)}}},
				},
			})
		}
		coretest.CostsOneAWhile(t, server, &faulty, create, pods)
	})
}
