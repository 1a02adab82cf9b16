// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package volcanojobs

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
	configv1alpha1 "github.com/lockstep-k8s/lockstep/apis/config/v1alpha1"
	"github.com/lockstep-k8s/lockstep/client/clientset/versioned"
	"github.com/lockstep-k8s/lockstep/client/informers/externalversions"
	"github.com/lockstep-k8s/lockstep/controller/engine"
	"github.com/lockstep-k8s/lockstep/controller/engine/plan"
	"github.com/lockstep-k8s/lockstep/controller/pacing"
	"github.com/lockstep-k8s/lockstep/controller/volcano"
	"github.com/lockstep-k8s/lockstep/internal/testing/apiserver"
)

// TestAPanicCostsOneJobAWhile, and after that it goes on if the fault is gone.
func TestAPanicCostsOneJobAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := apiserver.New(t)
		faulty := true
		run(t, server, func(snapshot volcano.Snapshot, now time.Time) (plan.Plan[batchv1alpha1.JobStatus], volcano.Memory) {
			if faulty && snapshot.Job.Name == "faulty" {
				panic("a fault")
			}
			return volcano.Decide(snapshot, now)
		})
		pods := func(name string) bool { return apiserver.Find[corev1.Pod](server, "ns", name+"-a-0") != nil }
		for _, name := range []string{"faulty", "calm"} {
			apiserver.Add(server, &batchv1alpha1.Job{
				ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name},
				Spec: batchv1alpha1.JobSpec{Tasks: []batchv1alpha1.TaskSpec{{Name: "a", Replicas: 1, Template: runtime.RawExtension{
					Raw: []byte(`{"spec":{"containers":[{"name":"main","image":"busybox"}]}}`)}}}},
			})
		}
		time.Sleep(time.Second)
		if pods("faulty") || !pods("calm") {
			t.Errorf("of the Job that has a fault there are Pods: %t, of the other: %t", pods("faulty"), pods("calm"))
		}
		faulty = false
		time.Sleep(pacing.MaxBackoff + time.Second)
		if !pods("faulty") {
			t.Errorf("the Job has no Pods %v after the fault is gone", pacing.MaxBackoff)
		}
		told := false
		for _, event := range apiserver.All[corev1.Event](server, "ns") {
			told = told || event.InvolvedObject.Name == "faulty" && event.Reason == "Panicked"
		}
		if !told {
			t.Error("the user was not told of the fault")
		}
	})
}

// run runs Jobs with a core that decides otherwise, until the test ends.
func run(t *testing.T, server *apiserver.Server, decide func(volcano.Snapshot, time.Time) (plan.Plan[batchv1alpha1.JobStatus], volcano.Memory)) {
	t.Helper()
	config := server.Config()
	var clients Clients
	var errs [4]error
	clients.Kube, errs[0] = kubernetes.NewForConfig(config)
	clients.Lockstep, errs[1] = versioned.NewForConfig(config)
	clients.Metadata, errs[2] = metadata.NewForConfig(config)
	clients.Dynamic, errs[3] = dynamic.NewForConfig(config)
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
	settings := &configv1alpha1.ControllerConfiguration{}
	configv1alpha1.SetDefaults(settings)
	factory := externalversions.NewSharedInformerFactory(clients.Lockstep, 0)
	podGroups := factory.Scheduling().V1alpha1().PodGroups().Informer()
	if err := podGroups.AddIndexers(engine.OwnerIndex("")); err != nil {
		t.Fatal(err)
	}
	core, err := New(clients, podGroups, settings)
	if err != nil {
		t.Fatal(err)
	}
	core.decide = decide
	e, err := engine.New(engine.Options{
		Kube: clients.Kube, Metadata: clients.Metadata, Workers: 2, BatchSize: 2, Registerer: prometheus.NewRegistry(),
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := core.AddTo(e); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	core.Start(ctx)
	factory.StartWithContext(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		e.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
		factory.Shutdown()
	})
}
