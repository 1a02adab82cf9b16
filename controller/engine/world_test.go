// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"

	configv1alpha1 "github.com/lockstep-k8s/lockstep/apis/config/v1alpha1"
	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/client/clientset/versioned"
	"github.com/lockstep-k8s/lockstep/client/informers/externalversions"
	"github.com/lockstep-k8s/lockstep/controller/engine"
	"github.com/lockstep-k8s/lockstep/controller/frameworks"
	"github.com/lockstep-k8s/lockstep/controller/pacing"
	"github.com/lockstep-k8s/lockstep/internal/testing/apiserver"
)

const (
	namespace   = "ns"
	podTemplate = `{"spec":{"restartPolicy":"Never","containers":[{"name":"main","image":"busybox"}]}}`
)

var key = cache.NewObjectName(namespace, "fw")

// framework makes a Framework with one role w.
func framework(tasks int32) *frameworkv1.Framework {
	return &frameworkv1.Framework{
		ObjectMeta: metav1.ObjectMeta{Name: "fw", Namespace: namespace, Generation: 1},
		Spec: frameworkv1.FrameworkSpec{
			ExecutionType: frameworkv1.ExecutionStart,
			TaskRoles: []frameworkv1.TaskRoleSpec{{
				Name: "w", TaskNumber: tasks,
				Task: frameworkv1.TaskSpec{Pod: runtime.RawExtension{Raw: []byte(podTemplate)}},
			}},
		},
	}
}

// world is an API server with one Framework, and an engine that syncs it when the test
// says so, for tests of what a single sync does.
type world struct {
	t          *testing.T
	server     *apiserver.Server
	process    *apiserver.Process
	engine     *engine.Engine
	frameworks *frameworks.Owners
	// took is how long the last sync took.
	took time.Duration
}

// inWorld runs a test in a world, in a bubble of testing/synctest.
func inWorld(t *testing.T, f *frameworkv1.Framework, test func(t *testing.T, w *world)) {
	synctest.Test(t, func(t *testing.T) {
		server := apiserver.New(t)
		w := &world{t: t, server: server, process: server.Process("controller")}
		apiserver.Add(server, f)
		var running sync.WaitGroup
		t.Cleanup(running.Wait)
		w.start(&running)
		test(t, w)
	})
}

// start makes an engine with default settings that does nothing by itself, and fills its
// caches.
func (w *world) start(running *sync.WaitGroup) {
	w.t.Helper()
	check := func(err error) {
		w.t.Helper()
		if err != nil {
			w.t.Fatal(err)
		}
	}
	config := &configv1alpha1.ControllerConfiguration{}
	configv1alpha1.SetDefaults(config)
	kube, err := kubernetes.NewForConfig(w.process.Config())
	check(err)
	lockstep, err := versioned.NewForConfig(w.process.Config())
	check(err)
	metadata, err := metadata.NewForConfig(w.process.Config())
	check(err)
	w.engine, err = engine.New(engine.Options{
		Kube: kube, Metadata: metadata, Workers: int(*config.WorkerNumber), BatchSize: int(*config.PodBatchSize),
		Window: config.StatusCoalesceWindow.Duration, Registerer: prometheus.NewRegistry(),
	})
	check(err)
	w.t.Cleanup(w.engine.Discard)
	factory := externalversions.NewSharedInformerFactory(lockstep, 0)
	core, err := frameworks.New(kube, lockstep, factory.Scheduling().V1alpha1().PodGroups().Informer(), config, nil)
	check(err)
	w.frameworks, err = core.AddTo(w.engine)
	check(err)
	running.Go(func() { w.frameworks.Informer().RunWithContext(w.t.Context()) })
	core.Start(w.t.Context())
	factory.StartWithContext(w.t.Context())
}

// sync has the controller sync the Framework once. It sees all that has happened
// before, and nothing that happens meanwhile: what waits in the queue after it, the
// sync itself has put there.
func (w *world) sync() {
	w.t.Helper()
	watched := []string{"frameworks", "configmaps", "pods", "podgroups"}
	for _, resource := range watched {
		w.process.ReleaseAll(resource)
	}
	time.Sleep(pacing.EventDelay)
	synctest.Wait()
	for _, resource := range watched {
		w.process.Hold(resource)
	}
	w.engine.EmptyQueue()
	begun := time.Now()
	if err := w.frameworks.Sync(w.t.Context(), key); err != nil {
		w.t.Fatal(err)
	}
	w.took = time.Since(begun)
}

// status is what the controller knows of the Framework's status.
func (w *world) status() *frameworkv1.FrameworkStatus { return w.frameworks.Status(key) }

// slowCreations has the API server create one Pod after another, and take so long for
// each.
func (w *world) slowCreations(each time.Duration) {
	var free time.Time
	w.server.SetHook(func(r *apiserver.Request) apiserver.Fault {
		if r.Verb != apiserver.Create || r.Resource != "pods" {
			return apiserver.Fault{}
		}
		now := time.Now()
		if free.Before(now) {
			free = now
		}
		free = free.Add(each)
		return apiserver.Fault{Before: free.Sub(now)}
	})
}

// created is how many Pods there are.
func (w *world) created() int { return len(apiserver.All[corev1.Pod](w.server, namespace)) }
