// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kueue

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
	"k8s.io/utils/ptr"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/controller/pacing"
	"github.com/lockstep-k8s/lockstep/internal/testing/apiserver"
)

// TestAnAPIServerThatHangsHoldsUpNoFrameworkForEver: it is tried again.
func TestAnAPIServerThatHangsHoldsUpNoFrameworkForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := controllerOf(t, apiserver.Silent{})
		defer c.loop.ShutDown()
		waiting := makeFramework(frameworkv1.FrameworkAttemptCreationPending, 2, false)
		if err := c.frameworks.GetStore().Add(waiting); err != nil {
			t.Fatal(err)
		}
		// An hour is for ever.
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		begun := time.Now()
		err := c.sync(ctx, keyOf(waiting.Namespace, waiting.Name).ObjectName)
		if took := time.Since(begun); !errors.Is(err, context.DeadlineExceeded) || took > pacing.RequestTime {
			t.Errorf("the sync took %v and ended with %v, want an error after %v", took, err, pacing.RequestTime)
		}
	})
}

// server is an API server that answers requests as a test says, and keeps those that it has answered.
type server struct {
	answer func(r *http.Request) (code int, body string)

	mu       sync.Mutex
	requests []string
}

func (s *server) RoundTrip(r *http.Request) (*http.Response, error) {
	said := r.Method + " " + r.URL.Path
	if r.Body != nil {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		said += " " + string(body)
	}
	code, body := s.answer(r)
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, said)
	return &http.Response{StatusCode: code, Body: io.NopCloser(strings.NewReader(body)), Header: http.Header{"Content-Type": {"application/json"}}, Request: r}, nil
}

// count counts the requests that contain all of some texts.
func (s *server) count(texts ...string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, said := range s.requests {
		all := true
		for _, text := range texts {
			all = all && strings.Contains(said, text)
		}
		if all {
			n++
		}
	}
	return n
}

// given is a flavor with a label, or a Framework.
func given(r *http.Request, label string) (code int, body string) {
	if strings.Contains(r.URL.Path, "/resourceflavors/") {
		return http.StatusOK, fmt.Sprintf(`{"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ResourceFlavor", "spec": {"nodeLabels": {"of": %q}}}`, label)
	}
	return http.StatusOK, `{"apiVersion": "frameworkcontroller.microsoft.com/v1", "kind": "Framework"}`
}

// during is a wait of a request, as long as that goes on.
func during(r *http.Request, wait time.Duration) {
	select {
	case <-time.After(wait):
	case <-r.Context().Done():
	}
}

// controllerOf makes a controller that asks a server.
func controllerOf(t *testing.T, s http.RoundTripper, namespaces ...string) *Controller {
	t.Helper()
	config := &rest.Config{Host: "http://server", Transport: s, QPS: 1000, Burst: 1000}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	c, err := New(client, namespaces, prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// know has the caches of the controller hold a Framework, and its Workload if there is one.
func (c *Controller) know(t *testing.T, framework *frameworkv1.Framework, workload *workload) {
	t.Helper()
	if err := c.frameworks.GetStore().Add(framework); err != nil {
		t.Fatal(err)
	}
	if workload != nil {
		if err := c.workloads.GetStore().Add(workload); err != nil {
			t.Fatal(err)
		}
	}
}

// admittedBy is the Workload of a Framework that Kueue has admitted with some flavors, whose tasks wait to start.
func admittedBy(t *testing.T, flavors map[string]string) *workload {
	t.Helper()
	w := makeWorkload(t, conditionQuotaReserved, conditionAdmitted)
	w.Status.Admission = &assignments{[]assignment{{Name: "worker", Flavors: flavors}}}
	w.Status.Conditions = append(w.Status.Conditions, notReady)
	return w
}

// stored is a Workload as the API server has it.
func stored(t *testing.T, w *workload) *unstructured.Unstructured {
	t.Helper()
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(w)
	if err != nil {
		t.Fatal(err)
	}
	return &unstructured.Unstructured{Object: object}
}

// TestSlowRequestsAdmitAFrameworkAllTheSame: all of them together take longer than one may.
func TestSlowRequestsAdmitAFrameworkAllTheSame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{answer: func(r *http.Request) (int, string) {
			during(r, pacing.RequestTime/2)
			return given(r, "cluster")
		}}
		c := controllerOf(t, s)
		defer c.loop.ShutDown()
		c.know(t, makeFramework(frameworkv1.FrameworkAttemptCreationPending, 2, false), admittedBy(t, map[string]string{"cpu": "a", "memory": "b", "example.com/gpu": "c"}))
		if err := c.sync(t.Context(), keyOf("ns", "fw").ObjectName); err != nil {
			t.Error(err)
		}
		if s.count("PATCH", "/frameworks/fw", `\"of\":\"cluster\"`) != 1 {
			t.Errorf("it was not admitted: %q", s.requests)
		}
	})
}

// TestFlavorsThatWereReadAreKnownAfterAFailure, and by all that are admitted together.
func TestFlavorsThatWereReadAreKnownAfterAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := true
		s := &server{answer: func(r *http.Request) (int, string) {
			if broken && strings.HasSuffix(r.URL.Path, "/b") {
				return http.StatusInternalServerError, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "InternalError", "code": 500}`
			}
			return given(r, "cluster")
		}}
		c := controllerOf(t, s)
		defer c.loop.ShutDown()
		c.know(t, makeFramework(frameworkv1.FrameworkAttemptCreationPending, 2, false), admittedBy(t, map[string]string{"cpu": "a", "memory": "b"}))
		if err := c.sync(t.Context(), keyOf("ns", "fw").ObjectName); err == nil {
			t.Error("it is admitted although a flavor could not be read")
		}
		broken = false
		if err := c.sync(t.Context(), keyOf("ns", "fw").ObjectName); err != nil || s.count("PATCH") != 1 {
			t.Errorf("it is not admitted: %v", err)
		}
		if got := s.count("/resourceflavors/a"); got != 1 {
			t.Errorf("a flavor that is known was read %d times", got)
		}
		time.Sleep(2 * knownTime)
		if err := c.sync(t.Context(), keyOf("ns", "fw").ObjectName); err != nil || s.count("/resourceflavors/a") != 2 {
			t.Errorf("after a while a flavor is not read anew (%v)", err)
		}
	})
}

// TestAnAnnotationThatSomebodyWroteIsCorrected, and the right one is left alone.
func TestAnAnnotationThatSomebodyWroteIsCorrected(t *testing.T) {
	const right = `{"framework":"u","workload":"w","roles":{"worker":{"nodeSelector":{"of":"spot"}}}}`
	for annotation, want := range map[string]int{right: 0, `{"framework":"u","workload":"w","roles":{"worker":{"nodeSelector":{"of":"gpus"}}}}`: 1,
		`{"workload":"w","roles":{"worker":{"nodeSelector":{"of":"spot"}}}}`: 1, "yes": 1} {
		s := &server{answer: func(r *http.Request) (int, string) { return given(r, "spot") }}
		c := controllerOf(t, s)
		f := makeFramework(frameworkv1.FrameworkAttemptRunning, 2, true)
		f.Annotations[frameworkv1.AnnotationAdmission] = annotation
		c.know(t, f, admittedBy(t, map[string]string{"cpu": "spot"}))
		if err := c.sync(t.Context(), keyOf("ns", "fw").ObjectName); err != nil {
			t.Error(err)
		}
		if got := s.count("PATCH", `\"of\":\"spot\"`); got != want {
			t.Errorf("with the annotation %s there are %d writes, want %d", annotation, got, want)
		}
		c.loop.ShutDown()
	}
}

// TestAWorkloadThatIsNotKnownHoldsNoFramework that runs: a list that is refused does not say that there is none.
func TestAWorkloadThatIsNotKnownHoldsNoFramework(t *testing.T) {
	const notFound = `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404}`
	for name, tc := range map[string]struct {
		code int
		body string
		want int
	}{
		"it is there": {http.StatusOK, `{"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "WorkloadList", "items": [
			{"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload", "metadata": {"name": "framework-fw"}}]}`, 0},
		"nobody may look":         {http.StatusForbidden, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": 403}`, 0},
		"it is not there, either": {http.StatusOK, `{"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "WorkloadList", "items": []}`, 1},
		"its kind is not there":   {http.StatusNotFound, notFound, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := &server{answer: func(r *http.Request) (int, string) {
				if strings.HasSuffix(r.URL.Path, "/workloads") && r.URL.Query().Get("fieldSelector") == "metadata.name=framework-fw" {
					return tc.code, tc.body
				}
				return given(r, "cluster")
			}}
			c := controllerOf(t, s)
			defer c.loop.ShutDown()
			c.know(t, makeFramework(frameworkv1.FrameworkAttemptRunning, 2, true), nil)
			if err := c.sync(t.Context(), keyOf("ns", "fw").ObjectName); (err == nil) != (tc.want == 1) {
				t.Errorf("the sync ends with %v", err)
			}
			if got := s.count("PATCH", frameworkv1.AnnotationAdmission+`":null`); got != tc.want {
				t.Errorf("the Framework is held %d times, want %d: %q", got, tc.want, s.requests)
			}
		})
	}
}

// TestAFrameworkThatMayNotBeReadKeepsItsWorkload, by which it runs: that it is not shown does not say that it is gone.
func TestAFrameworkThatMayNotBeReadKeepsItsWorkload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := apiserver.New(t, apiserver.WithResource(apiserver.Resource{GroupVersionResource: workloads, Kind: "Workload"}),
			apiserver.WithResource(apiserver.Resource{GroupVersionResource: flavors, Kind: "ResourceFlavor", Cluster: true, NoStatus: true}))
		client, err := dynamic.NewForConfig(cluster.Config())
		if err != nil {
			t.Fatal(err)
		}
		framework := apiserver.Add(cluster, makeFramework(frameworkv1.FrameworkAttemptRunning, 2, true))
		workload := admittedBy(t, map[string]string{})
		workload.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(framework, frameworkv1.SchemeGroupVersion.WithKind(frameworkv1.FrameworkKind))}
		object := stored(t, workload)
		created, err := client.Resource(workloads).Namespace("ns").Create(t.Context(), object, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		created.Object["status"] = object.Object["status"]
		if _, err := client.Resource(workloads).Namespace("ns").UpdateStatus(t.Context(), created, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		var allowed atomic.Bool
		cluster.SetHook(func(r *apiserver.Request) apiserver.Fault {
			if !allowed.Load() && r.Namespace == "ns" && r.Resource == frameworkv1.FrameworkPlural && !r.Verb.Writes() {
				return apiserver.Fault{Refusal: apiserver.NoRight(string(r.Verb), r.Resource, r.Namespace)}
			}
			return apiserver.Fault{}
		})
		cluster.ClearJournal()
		c := controllerOf(t, cluster.Process("controller"), "ns", "other")
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- c.Run(ctx) }()
		time.Sleep(5 * time.Minute)
		if writes := cluster.Writes(); len(writes) > 0 {
			t.Errorf("what is written while it may not be read: %v", writes)
		}
		allowed.Store(true)
		time.Sleep(5 * time.Minute)
		// A second sync at the same moment, of the event for the Workload, writes nothing: it meets a conflict.
		// A Pod is tried, and not created.
		writes := slices.DeleteFunc(cluster.Writes(), func(e apiserver.Entry) bool { return e.Code == http.StatusConflict || e.Resource == "pods" })
		if len(writes) != 1 || writes[0].Verb != apiserver.Patch || writes[0].Resource != frameworkv1.FrameworkPlural {
			t.Errorf("what is written: %v, want the admission, when it may be read", writes)
		}
		if admission := apiserver.Find[frameworkv1.Framework](cluster, "ns", "fw").Annotations[frameworkv1.AnnotationAdmission]; admission == "" || admission == framework.Annotations[frameworkv1.AnnotationAdmission] {
			t.Errorf("it is admitted by %q", admission)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// TestAWriteThatIsLateChangesNothing: each says which state it is about, so the API server refuses one that an earlier leader
// has sent, after the next one has written.
func TestAWriteThatIsLateChangesNothing(t *testing.T) {
	for name, tc := range map[string]struct {
		tasks    int32
		workload *workload
		write    []string
	}{
		"an admission": {2, makeWorkload(t, conditionQuotaReserved, conditionAdmitted), []string{"PATCH", `"resourceVersion":"7"`}},
		"the deletion of a Workload, of a Framework that was scaled": {3, makeWorkload(t), []string{"DELETE", `"resourceVersion":"8"`}},
	} {
		t.Run(name, func(t *testing.T) {
			s := &server{answer: func(r *http.Request) (int, string) { return given(r, "cluster") }}
			c := controllerOf(t, s)
			defer c.loop.ShutDown()
			f := makeFramework(frameworkv1.FrameworkAttemptCreationPending, tc.tasks, false)
			f.ResourceVersion = "7"
			tc.workload.ResourceVersion = "8"
			c.know(t, f, tc.workload)
			if err := c.sync(t.Context(), keyOf("ns", "fw").ObjectName); err != nil {
				t.Fatal(err)
			}
			if s.count(tc.write...) == 0 {
				t.Errorf("there is no write with %q: %q", tc.write, s.requests)
			}
		})
	}
}

// TestFrameworksInQueuesOfOneNamespaceHoldUpNoOther: not where requests hang, and not where a sync panics.
func TestFrameworksInQueuesOfOneNamespaceHoldUpNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{answer: func(r *http.Request) (int, string) {
			switch {
			case strings.Contains(r.URL.Path, "/namespaces/slow"):
				during(r, time.Hour)
			case strings.Contains(r.URL.Path, "/namespaces/panics/"):
				panic("a fault of the controller")
			}
			return http.StatusCreated, `{"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload"}`
		}}
		c := controllerOf(t, s)
		ctx := klog.NewContext(t.Context(), klog.Logger{}) // It says a lot.
		var running sync.WaitGroup
		defer running.Wait()
		defer c.loop.ShutDown()
		add := func(namespace string) {
			f := makeFramework("", 2, false)
			f.Namespace = namespace
			c.know(t, f, nil)
			c.enqueue(f)
		}
		add("panics")
		for i := range 2 * workers {
			add(fmt.Sprint("slow-", i))
		}
		add("calm")
		c.loop.Start(ctx, workers, &running)
		time.Sleep(3 * time.Second)
		if got := s.count("POST", "/namespaces/calm/"); got != 1 {
			t.Errorf("%d Workloads were made where nothing is wrong, want 1", got)
		}
	})
}

// TestTheLogSaysThatKueueIsNotServed.
func TestTheLogSaysThatKueueIsNotServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{answer: func(*http.Request) (int, string) {
			return http.StatusNotFound, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404}`
		}}
		c := controllerOf(t, s)
		logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true)))
		ctx, cancel := context.WithCancel(klog.NewContext(t.Context(), logger))
		ended := make(chan error)
		go func() { ended <- c.Run(ctx) }()
		time.Sleep(pacing.UnservedAfter + time.Second)
		if said := logger.GetSink().(ktesting.Underlier).GetBuffer().String(); !strings.Contains(said, "are not admitted yet") {
			t.Errorf("the log says %q", said)
		}
		if got := c.listed(); got != 0 {
			t.Errorf("the metric is %v, want 0", got)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// world is an API server that serves Kueue's kinds, and a controller of Frameworks in queues that runs for a test.
type world struct {
	*testing.T
	cluster *apiserver.Server
	client  dynamic.Interface
}

// inWorld runs a test in a world, in which time passes only when nobody has anything to do.
func inWorld(t *testing.T, test func(w *world)) {
	synctest.Test(t, func(t *testing.T) {
		cluster := apiserver.New(t, apiserver.WithResource(apiserver.Resource{GroupVersionResource: workloads, Kind: "Workload"}),
			apiserver.WithResource(apiserver.Resource{GroupVersionResource: flavors, Kind: "ResourceFlavor", Cluster: true, NoStatus: true}))
		client, err := dynamic.NewForConfig(cluster.Config())
		if err != nil {
			t.Fatal(err)
		}
		c := controllerOf(t, cluster.Process("controller"))
		ctx, cancel := context.WithCancel(klog.NewContext(t.Context(), klog.Logger{}))
		ended := make(chan error)
		go func() { ended <- c.Run(ctx) }()
		test(&world{t, cluster, client})
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// pass lets a while pass.
func (w *world) pass() {
	time.Sleep(5 * time.Minute)
	synctest.Wait()
}

// refusal is what the annotation of the Framework says of a refusal.
func (w *world) refusal() string {
	return apiserver.Find[frameworkv1.Framework](w.cluster, "ns", "fw").Annotations[frameworkv1.AnnotationRefusal]
}

// hasWorkload reports whether a Framework has one.
func (w *world) hasWorkload(framework string) bool {
	_, err := w.client.Resource(workloads).Namespace("ns").Get(w.Context(), workloadName(framework), metav1.GetOptions{})
	return err == nil
}

// TestWhyAFrameworkCannotBeInAQueueIsSaidOnIt, and is no longer when it can.
func TestWhyAFrameworkCannotBeInAQueueIsSaidOnIt(t *testing.T) {
	tooMany := makeFramework("", 2, false)
	for range maxPodSets {
		tooMany.Spec.TaskRoles = append(tooMany.Spec.TaskRoles, tooMany.Spec.TaskRoles[0])
	}
	for name, tc := range map[string]struct {
		framework *frameworkv1.Framework
		// stands is in the way until it is removed.
		stands func(w *world) (remove func())
		want   string
	}{
		"it has too many roles": {tooMany, func(w *world) func() {
			return func() {
				apiserver.Change(w.cluster, "ns", "fw", func(f *frameworkv1.Framework) { f.Spec.TaskRoles = f.Spec.TaskRoles[:1] })
			}
		}, "at most 18 roles"},
		"its Workload has the name of another one": {makeFramework("", 2, false), func(w *world) func() {
			other := makeWorkload(t)
			other.OwnerReferences = nil
			if _, err := w.client.Resource(workloads).Namespace("ns").Create(w.Context(), stored(t, other), metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			return func() {
				if err := w.client.Resource(workloads).Namespace("ns").Delete(w.Context(), other.Name, metav1.DeleteOptions{}); err != nil {
					t.Fatal(err)
				}
			}
		}, "the Workload framework-fw is not the Framework's"},
		"Kueue will not have its Workload": {makeFramework("", 2, false), func(w *world) func() {
			w.cluster.SetHook(func(r *apiserver.Request) apiserver.Fault {
				if r.Resource != workloads.Resource || r.Verb != apiserver.Create {
					return apiserver.Fault{}
				}
				return apiserver.Fault{Refusal: apierrors.NewForbidden(workloads.GroupResource(), r.Name, errors.New("too many podSets"))}
			})
			return func() { w.cluster.SetHook(nil) }
		}, "its Workload is refused: workloads.kueue.x-k8s.io \"framework-fw\" is forbidden: too many podSets"},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				remove := tc.stands(w)
				framework := tc.framework.DeepCopy()
				framework.UID = ""
				apiserver.Add(w.cluster, framework)
				w.pass()
				if got := w.refusal(); !strings.Contains(got, tc.want) {
					t.Errorf("it says %q, want %q", got, tc.want)
				}
				w.cluster.ClearJournal()
				time.Sleep(time.Hour)
				if tries := len(w.cluster.Writes()); tries > 130 {
					t.Errorf("in an hour there were %d writes", tries)
				}
				remove()
				w.pass()
				if got := w.refusal(); got != "" || !w.hasWorkload("fw") {
					t.Errorf("it can be in the queue, and says %q; it has a Workload: %v", got, w.hasWorkload("fw"))
				}
			})
		})
	}
}

// TestAFrameworkThatDoesNotDecodeStopsNoOther, and keeps the Workload that it runs by.
func TestAFrameworkThatDoesNotDecodeStopsNoOther(t *testing.T) {
	inWorld(t, func(w *world) {
		broken := apiserver.Add(w.cluster, makeFramework("", 2, false))
		w.pass()
		if !w.hasWorkload("fw") {
			t.Fatal("it has no Workload")
		}
		if _, err := w.client.Resource(frameworks).Namespace("ns").Patch(w.Context(), broken.Name, types.MergePatchType,
			[]byte(`{"spec": {"taskRoles": "none"}}`), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		other := makeFramework("", 2, false)
		other.Name, other.UID = "other", ""
		apiserver.Add(w.cluster, other)
		w.pass()
		if !w.hasWorkload("other") || !w.hasWorkload("fw") {
			t.Errorf("the other one has a Workload: %v; the one that does not decode still has: %v", w.hasWorkload("other"), w.hasWorkload("fw"))
		}
	})
}

// TestTheTemplatesOfAWorkloadAreNotRead: a quantity such as this would be read for hours, and hold up all Workloads.
func TestTheTemplatesOfAWorkloadAreNotRead(t *testing.T) {
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON([]byte(`{"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload", "metadata": {"name": "w"}, "spec": {"queueName": "q", "podSets": [
		{"name": "main", "count": 2, "template": {"spec": {"containers": [{"name": "a", "resources": {"requests": {"cpu": "1e-2000000000"}}}]}}}, {"name": "odd", "template": 3}]}}`)); err != nil {
		t.Fatal(err)
	}
	kept, err := keepOfWorkload(object)
	if w, ok := kept.(*workload); err != nil || !ok || len(w.Spec.PodSets) != 2 || w.Spec.PodSets[0].Count != 2 {
		t.Errorf("it keeps %+v, %v", kept, err)
	}
}

// TestWhereKueueTakesPodsForJobsTheAdmissionSaysSo: a Pod is tried that is never created.
func TestWhereKueueTakesPodsForJobsTheAdmissionSaysSo(t *testing.T) {
	for name, tc := range map[string]struct {
		code  int
		tried string
		want  bool
	}{
		"it gates them":             {http.StatusCreated, `{"apiVersion": "v1", "kind": "Pod", "spec": {"schedulingGates": [{"name": "kueue.x-k8s.io/admission"}]}}`, true},
		"it leaves them alone":      {http.StatusCreated, `{"apiVersion": "v1", "kind": "Pod", "spec": {"schedulingGates": [{"name": "example.com/other"}]}}`, false},
		"a policy refuses that Pod": {http.StatusForbidden, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": 403}`, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := &server{answer: func(r *http.Request) (int, string) {
				if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/pods") {
					if r.URL.Query().Get("dryRun") != metav1.DryRunAll {
						t.Error("a Pod is created")
					}
					return tc.code, tc.tried
				}
				return given(r, "spot")
			}}
			c := controllerOf(t, s)
			defer c.loop.ShutDown()
			c.know(t, makeFramework(frameworkv1.FrameworkAttemptCreationPending, 2, false), admittedBy(t, map[string]string{"cpu": "spot"}))
			for range 2 {
				if err := c.sync(t.Context(), keyOf("ns", "fw").ObjectName); err != nil {
					t.Fatal(err)
				}
			}
			if got := s.count("PATCH", `\"gated\":true`) > 0; got != tc.want {
				t.Errorf("the admission says that Pods are gated: %v, want %v: %q", got, tc.want, s.requests)
			}
			if got := s.count("POST", "/pods"); got != 1 {
				t.Errorf("it was tried %d times", got)
			}
		})
	}
}

// TestGatedPodsArePlacedWhileTheirFrameworkIsAdmitted: those of its attempt, and no others that say so.
func TestGatedPodsArePlacedWhileTheirFrameworkIsAdmitted(t *testing.T) {
	for name, tc := range map[string]struct {
		owner   types.UID
		admits  bool
		leaves  bool
		deleted bool
		want    bool
	}{
		"it is admitted":                    {owner: "attempt", admits: true, want: true},
		"it is not":                         {owner: "attempt"},
		"the Pod is of another attempt":     {owner: "other", admits: true},
		"it has left the queue":             {owner: "attempt", leaves: true, want: true},
		"the Pod is to go, and is finished": {owner: "attempt", deleted: true, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				f := makeFramework(frameworkv1.FrameworkAttemptPreparing, 2, false)
				f.UID = ""
				f.Status.AttemptStatus.ConfigMapUID = ptr.To[types.UID]("attempt")
				if tc.leaves {
					f.Labels = nil
				}
				f = apiserver.Add(w.cluster, f)
				if tc.admits {
					workload := admittedBy(t, nil)
					workload.UID, workload.OwnerReferences[0].UID = "", f.UID
					created, err := w.client.Resource(workloads).Namespace("ns").Create(t.Context(), stored(t, workload), metav1.CreateOptions{})
					if err != nil {
						t.Fatal(err)
					}
					created.Object["status"] = stored(t, workload).Object["status"]
					if _, err := w.client.Resource(workloads).Namespace("ns").UpdateStatus(t.Context(), created, metav1.UpdateOptions{}); err != nil {
						t.Fatal(err)
					}
				}
				apiserver.Add(w.cluster, &corev1.Pod{
					ObjectMeta: metav1.ObjectMeta{
						Namespace: "ns", Name: "pod", Labels: map[string]string{frameworkv1.KeyFrameworkName: "fw", frameworkv1.LabelGated: "true"},
						Finalizers:      []string{podFinalizer, "example.com/other"},
						OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "fw-attempt", UID: tc.owner, Controller: ptr.To(true)}},
					},
					Spec: corev1.PodSpec{SchedulingGates: []corev1.PodSchedulingGate{{Name: gateAdmission}, {Name: "example.com/other"}, {Name: gateTopology}}},
				})
				if tc.deleted {
					apiserver.DeleteObject[corev1.Pod](w.cluster, "ns", "pod", metav1.DeleteOptions{})
				}
				w.pass()
				pod := apiserver.Find[corev1.Pod](w.cluster, "ns", "pod")
				_, labelled := pod.Labels[frameworkv1.LabelGated]
				if got := !labelled && len(pod.Spec.SchedulingGates) == 1 && len(pod.Finalizers) == 1; got != tc.want {
					t.Errorf("it is let go: %v, want %v: the Pod has %v, %v, %v", got, tc.want, pod.Labels, pod.Spec.SchedulingGates, pod.Finalizers)
				}
			})
		})
	}
}
