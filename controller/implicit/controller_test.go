// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package implicit

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/client/clientset/versioned"
	"github.com/lockstep-k8s/lockstep/client/informers/externalversions"
	"github.com/lockstep-k8s/lockstep/controller/adapter"
	"github.com/lockstep-k8s/lockstep/internal/testing/apiserver"
)

// world is an API server with a running Controller, in a bubble of testing/synctest.
type world struct {
	t       *testing.T
	server  *apiserver.Server
	objects dynamic.Interface
	// process is the Controller that runs, after so many starts.
	process *apiserver.Process
	starts  int
	stop    func()
	// served says which kinds of owners the API server serves.
	served map[string]bool
}

// inWorld runs a test beside a Controller, with a namespace that asks for PodGroups and one that does not.
func inWorld(t *testing.T, test func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, served: map[string]bool{"jobs": true, "jobsets": true, "leaderworkersets": true}}
		var options []apiserver.Option
		for i, kind := range []string{"JobSet", "LeaderWorkerSet", "Job"} {
			options = append(options, apiserver.WithResource(apiserver.Resource{GroupVersionResource: ownerKinds[i].resource, Kind: kind}))
		}
		w.server = apiserver.New(t, options...)
		w.server.SetHook(func(r *apiserver.Request) apiserver.Fault {
			if served, is := w.served[r.Resource]; is && !served {
				return apiserver.Fault{Refusal: apierrors.NewNotFound(ownerKinds[0].resource.GroupResource(), "")}
			}
			return apiserver.Fault{}
		})
		w.server.StartGarbageCollector(time.Second)
		var err error
		if w.objects, err = dynamic.NewForConfig(w.server.Process("tools").Config()); err != nil {
			t.Fatal(err)
		}
		apiserver.Add(w.server, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns", Labels: map[string]string{schedulingv1alpha1.LabelGangByOwner: "true"}}})
		apiserver.Add(w.server, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "other"}})
		w.start()
		test(w)
		w.stop()
	})
}

// start starts a Controller.
func (w *world) start() {
	w.t.Helper()
	w.starts++
	w.process = w.server.Process(fmt.Sprintf("controller-%d", w.starts))
	config := w.process.Config()
	var clients adapter.Clients
	var err error
	if clients.Kube, err = kubernetes.NewForConfig(config); err != nil {
		w.t.Fatal(err)
	}
	if clients.Lockstep, err = versioned.NewForConfig(config); err != nil {
		w.t.Fatal(err)
	}
	if clients.Dynamic, err = dynamic.NewForConfig(config); err != nil {
		w.t.Fatal(err)
	}
	informers := externalversions.NewSharedInformerFactory(clients.Lockstep, 0)
	c, err := New(clients, informers.Scheduling().V1alpha1().PodGroups(), nil)
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(w.t.Context())
	informers.StartWithContext(ctx)
	ended := make(chan error)
	go func() { ended <- c.Run(ctx) }()
	w.stop = func() {
		cancel()
		informers.Shutdown()
		if err := <-ended; err != nil {
			w.t.Errorf("Run: %v", err)
		}
	}
}

// pass lets time pass, and starts another Controller if the one that runs has crashed.
func (w *world) pass(d time.Duration) (crashed bool) {
	for range int(d / time.Second) {
		time.Sleep(time.Second)
		synctest.Wait()
		if w.process.Dead() {
			crashed = true
			w.stop()
			w.start()
		}
	}
	return crashed
}

// own creates an owner, as a user does.
func (w *world) own(kind int, namespace, text string) types.UID {
	w.t.Helper()
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON([]byte(text)); err != nil {
		w.t.Fatal(err)
	}
	object.SetNamespace(namespace)
	object.SetUID("")
	made, err := w.objects.Resource(ownerKinds[kind].resource).Namespace(namespace).Create(w.t.Context(), object, metav1.CreateOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return made.GetUID()
}

// disown deletes an owner.
func (w *world) disown(kind int, name string) {
	w.t.Helper()
	if err := w.objects.Resource(ownerKinds[kind].resource).Namespace("ns").Delete(w.t.Context(), name, metav1.DeleteOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

// job creates a Job, and n Pods of it.
func (w *world) job(namespace, name string, parallelism, n int) types.UID {
	w.t.Helper()
	uid := w.own(2, namespace, fmt.Sprintf(`{"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": %q}, "spec": {"parallelism": %d}}`, name, parallelism))
	for i := range n {
		w.pod(namespace, podWith(fmt.Sprintf("%s-%d", name, i), map[string]string{"batch.kubernetes.io/controller-uid": string(uid)}))
	}
	return uid
}

// pod creates a Pod.
func (w *world) pod(namespace string, pod *corev1.Pod) {
	pod.Namespace = namespace
	apiserver.Add(w.server, pod)
}

// groups are the PodGroups that there are: name, minMember and policy.
func (w *world) groups() []string {
	var all []string
	for _, group := range apiserver.All[schedulingv1alpha1.PodGroup](w.server, "") {
		all = append(all, fmt.Sprintf("%s/%s %d %s", group.Namespace, group.Name, group.Spec.MinMember, group.Spec.SchedulingPolicy))
	}
	return all
}

// wants checks which PodGroups there are.
func (w *world) wants(when string, want ...string) {
	w.t.Helper()
	if got := w.groups(); !slices.Equal(got, want) {
		w.t.Errorf("%s there are the PodGroups %q, want %q", when, got, want)
	}
}

const (
	inOrder = `{"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": "set"}, "spec": {"startupPolicy": {"startupPolicyOrder": "InOrder"},
		"replicatedJobs": [{"name": "worker", "replicas": 2, "template": {"spec": {"parallelism": 2}}}]}}`
	replicas = `{"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", "metadata": {"name": "serve"}, "spec": {}}`
)

// setPod makes a Pod of a Job of a JobSet.
func setPod(name string, set types.UID, job string) *corev1.Pod {
	pod := podOfSet(name, "worker", job)
	pod.Labels["jobset.sigs.k8s.io/jobset-uid"] = string(set)
	return pod
}

// TestAJobHasAPodGroupAsLongAsItHasPods, where its namespace asks for it.
func TestAJobHasAPodGroupAsLongAsItHasPods(t *testing.T) {
	inWorld(t, func(w *world) {
		uid := w.job("ns", "job", 2, 0)
		w.job("other", "job", 2, 2)
		w.pass(2 * time.Second)
		w.wants("before its Pods come")
		w.pod("ns", podWith("job-0", map[string]string{"batch.kubernetes.io/controller-uid": string(uid)}))
		w.pass(2 * time.Second)
		w.wants("when one has come", fmt.Sprintf("ns/job-%s 2 Gang", uid))
		if _, err := w.objects.Resource(ownerKinds[2].resource).Namespace("ns").Patch(t.Context(), "job", types.MergePatchType, []byte(`{"spec": {"parallelism": 3}}`), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		w.pass(2 * time.Second)
		w.wants("when it is to run more at once", fmt.Sprintf("ns/job-%s 3 Gang", uid))
		apiserver.Remove[schedulingv1alpha1.PodGroup](w.server, "ns", "job-"+string(uid))
		w.pass(2 * time.Second)
		w.wants("when somebody has deleted it", fmt.Sprintf("ns/job-%s 3 Gang", uid))
		apiserver.Change(w.server, "", "ns", func(ns *corev1.Namespace) { ns.Labels = nil })
		w.pass(2 * time.Second)
		w.wants("when the namespace asks for none", fmt.Sprintf("ns/job-%s 3 Gang", uid))
		apiserver.Remove[corev1.Pod](w.server, "ns", "job-0")
		w.pass(2 * time.Second)
		w.wants("when it has no Pods")
		writes := len(w.server.Writes())
		w.pass(time.Hour)
		if now := len(w.server.Writes()); now != writes {
			t.Errorf("there were %d more writes, and nothing has happened", now-writes)
		}
	})
}

// TestAPodGroupGoesWithItsOwner, by the garbage collector.
func TestAPodGroupGoesWithItsOwner(t *testing.T) {
	inWorld(t, func(w *world) {
		w.job("ns", "job", 2, 2)
		w.pass(2 * time.Second)
		if len(w.groups()) != 1 {
			t.Fatalf("there are the PodGroups %q, want one", w.groups())
		}
		w.disown(2, "job")
		w.pass(5 * time.Second)
		w.wants("without the Job")
	})
}

// TestALabelThatComesLaterHasPodGroupsMade for the Pods that there are.
func TestALabelThatComesLaterHasPodGroupsMade(t *testing.T) {
	inWorld(t, func(w *world) {
		uid := w.job("other", "job", 2, 1)
		w.pass(time.Minute)
		w.wants("without the label")
		apiserver.Change(w.server, "", "other", func(ns *corev1.Namespace) { ns.Labels = map[string]string{schedulingv1alpha1.LabelGangByOwner: "true"} })
		w.pass(2 * time.Second)
		w.wants("with it", fmt.Sprintf("other/job-%s 2 Gang", uid))
	})
}

// TestAKindThatIsNotThereHoldsUpNoOther, and its Pods have their PodGroup once it comes.
func TestAKindThatIsNotThereHoldsUpNoOther(t *testing.T) {
	inWorld(t, func(w *world) {
		w.stop()
		w.served["jobsets"], w.served["leaderworkersets"] = false, false
		w.start()
		job := w.job("ns", "job", 2, 2)
		w.pod("ns", podOfReplica("serve-0", "2"))
		w.pass(10 * time.Minute)
		w.wants("without the kind", fmt.Sprintf("ns/job-%s 2 Gang", job))
		w.served["leaderworkersets"] = true
		w.own(1, "ns", replicas)
		w.pass(2 * time.Minute)
		w.wants("with it", fmt.Sprintf("ns/job-%s 2 Gang", job), "ns/lws-g-r 2 Gang")
	})
}

// TestAnOwnerOfAnotherNamespaceIsAnotherOne: Pods that name it have no PodGroup.
func TestAnOwnerOfAnotherNamespaceIsAnotherOne(t *testing.T) {
	inWorld(t, func(w *world) {
		uid := w.job("other", "job", 2, 0)
		w.pod("ns", podWith("stray", map[string]string{"batch.kubernetes.io/controller-uid": string(uid)}))
		w.pass(time.Minute)
		w.wants("for a Pod that names a Job elsewhere")
	})
}

// TestSomebodyElsesPodGroupOfTheNameIsLeftAlone.
func TestSomebodyElsesPodGroupOfTheNameIsLeftAlone(t *testing.T) {
	inWorld(t, func(w *world) {
		apiserver.Add(w.server, &schedulingv1alpha1.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "lws-g-r"}, Spec: schedulingv1alpha1.PodGroupSpec{MinMember: 9}})
		w.own(1, "ns", replicas)
		w.pod("ns", podOfReplica("serve-0", "2"))
		w.pass(time.Minute)
		w.wants("beside that", "ns/lws-g-r 9 ")
	})
}

// TestCrashBetweenAnyTwoWrites: the controller is killed before each of its writes in turn, and the next one always comes
// to the same PodGroups: of a JobSet in order, of a Job that grows, and of a LeaderWorkerSet that is made again under its name.
func TestCrashBetweenAnyTwoWrites(t *testing.T) {
	for crashAfter, crashed := 0, true; crashed; crashAfter++ {
		crashed = false
		t.Run(fmt.Sprintf("after %d writes", crashAfter), func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.process.KillAfter(crashAfter)
				pass := func(d time.Duration) { crashed = w.pass(d) || crashed }
				set := w.own(0, "ns", inOrder)
				w.pod("ns", setPod("set-a-0", set, "a"))
				job := w.job("ns", "job", 2, 2)
				first := w.own(1, "ns", replicas)
				w.pod("ns", podOfReplica("serve-0", "2"))
				pass(3 * time.Second)
				w.pod("ns", setPod("set-b-0", set, "b"))
				if _, err := w.objects.Resource(ownerKinds[2].resource).Namespace("ns").Patch(t.Context(), "job", types.MergePatchType, []byte(`{"spec": {"parallelism": 3}}`), metav1.PatchOptions{}); err != nil {
					t.Fatal(err)
				}
				w.disown(1, "serve")
				second := w.own(1, "ns", replicas)
				gone := w.job("ns", "gone", 1, 1)
				pass(3 * time.Second)
				apiserver.Remove[corev1.Pod](w.server, "ns", "gone-0")
				pass(60 * time.Second)
				want := []string{fmt.Sprintf("ns/job-%s 3 Gang", job), fmt.Sprintf("ns/jobset-%s-1 1 GangPerJob", set),
					fmt.Sprintf("ns/jobset-%s-1-a 2 Gang", set), fmt.Sprintf("ns/jobset-%s-1-b 2 Gang", set), "ns/lws-g-r 2 Gang"}
				slices.Sort(want)
				w.wants("in the end", want...)
				if t.Failed() {
					return
				}
				if owner := metav1.GetControllerOf(apiserver.Find[schedulingv1alpha1.PodGroup](w.server, "ns", "lws-g-r")); owner == nil || owner.UID != second {
					t.Errorf("the PodGroup of the replica belongs to %v, want %s, which was made after %s", owner, second, first)
				}
				if apiserver.Find[schedulingv1alpha1.PodGroup](w.server, "ns", "job-"+string(gone)) != nil {
					t.Error("a Job without Pods has a PodGroup")
				}
			})
		})
	}
}
