// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/client/clientset/versioned"
	"github.com/lockstep-k8s/lockstep/client/informers/externalversions"
	"github.com/lockstep-k8s/lockstep/internal/testing/apiserver"
)

const namespace = "ns"

func newPod(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"gang": "a"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "busybox"}}},
	}
}

// inBubble runs a test beside a new server, in a bubble.
func inBubble(t *testing.T, test func(t *testing.T, server *apiserver.Server)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, apiserver.New(t)) })
}

// protobuf is how programs are told to talk to the server about Kubernetes' own
// objects.
func protobuf(config *rest.Config) *rest.Config {
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	return config
}

func kubeClient(t *testing.T, config *rest.Config) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(protobuf(config))
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// follower is an informer with what it told its handler.
type follower struct {
	t        *testing.T
	informer cache.SharedIndexInformer
	events   []string
}

// follow runs an informer until the test ends.
func follow(t *testing.T, informer cache.SharedIndexInformer) *follower {
	t.Helper()
	f := &follower{t: t, informer: informer}
	tell := func(what string, object any) {
		if missed, ok := object.(cache.DeletedFinalStateUnknown); ok {
			what, object = "missed the deletion of", missed.Obj
		}
		accessor, err := meta.Accessor(object)
		if err != nil {
			t.Error(err)
			return
		}
		f.events = append(f.events, what+" "+accessor.GetName())
	}
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { tell("added", object) },
		UpdateFunc: func(_, object any) { tell("updated", object) },
		DeleteFunc: func(object any) { tell("deleted", object) },
	}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		informer.RunWithContext(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	synctest.Wait()
	return f
}

// saw checks what was told since it was last asked.
func (f *follower) saw(want ...string) {
	f.t.Helper()
	time.Sleep(time.Minute) // Longer than any back-off of an informer.
	synctest.Wait()
	if !slices.Equal(f.events, want) {
		f.t.Errorf("the informer told\n%s\nwant\n%s", strings.Join(f.events, "\n"), strings.Join(want, "\n"))
	}
	f.events = nil
}

func podInformer(t *testing.T, process *apiserver.Process) cache.SharedIndexInformer {
	t.Helper()
	return informers.NewSharedInformerFactory(kubeClient(t, process.Config()), 0).Core().V1().Pods().Informer()
}

func TestInformersOfAllKindsFollow(t *testing.T) {
	inBubble(t, func(t *testing.T, server *apiserver.Server) {
		config := server.Process("controller").Config()
		lockstep, err := versioned.NewForConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		metadataClient, err := metadata.NewForConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		core := informers.NewSharedInformerFactory(kubeClient(t, config), 0)
		ours := externalversions.NewSharedInformerFactory(lockstep, 0)
		frameworks := frameworkv1.SchemeGroupVersion.WithResource(frameworkv1.FrameworkPlural)
		apiserver.Add(server, newPod("old"))
		for name, informer := range map[string]cache.SharedIndexInformer{
			"pods":       core.Core().V1().Pods().Informer(),
			"configmaps": core.Core().V1().ConfigMaps().Informer(),
			"podgroups":  ours.Scheduling().V1alpha1().PodGroups().Informer(),
			"frameworks": ours.Frameworkcontroller().V1().Frameworks().Informer(),
			"metadata":   metadatainformer.NewSharedInformerFactory(metadataClient, 0).ForResource(frameworks).Informer(),
			"nodes":      core.Core().V1().Nodes().Informer(),
			"leases":     core.Coordination().V1().Leases().Informer(),
		} {
			f := follow(t, informer)
			if !informer.HasSynced() {
				t.Errorf("%s: not synced", name)
			}
			add, change, remove := lives[name](server)
			var want []string
			if name == "pods" {
				want = append(want, "added old")
			}
			add()
			f.saw(append(want, "added new")...)
			change()
			f.saw("updated new")
			remove()
			f.saw("deleted new")
		}
		for _, entry := range server.Journal() {
			if entry.Verb != apiserver.Watch || entry.Code != 200 {
				t.Errorf("an informer needed %v", entry)
			}
		}
	})
}

// lives creates, changes and removes an object of each resource.
var lives = map[string]func(server *apiserver.Server) (add, change, remove func()){
	"pods":       life[corev1.Pod],
	"configmaps": life[corev1.ConfigMap],
	"podgroups":  life[schedulingv1alpha1.PodGroup],
	"frameworks": life[frameworkv1.Framework],
	"metadata":   life[frameworkv1.Framework],
	"nodes":      life[corev1.Node],
	"leases":     life[coordinationv1.Lease],
}

func life[T any, P apiserver.Object[T]](server *apiserver.Server) (add, change, remove func()) {
	object := P(new(T))
	object.SetName("new")
	object.SetNamespace(namespace)
	if _, ok := any(object).(*corev1.Node); ok {
		object.SetNamespace("")
	}
	return func() { apiserver.Add[T, P](server, object) },
		func() {
			apiserver.Change(server, object.GetNamespace(), "new", func(object P) { object.SetLabels(map[string]string{"a": "b"}) })
		},
		func() { apiserver.Remove[T, P](server, object.GetNamespace(), "new") }
}

func TestInformersListWhereTheServerSendsNoInitialEvents(t *testing.T) {
	inBubble(t, func(t *testing.T, server *apiserver.Server) {
		server.SetHook(func(r *apiserver.Request) apiserver.Fault {
			if r.InitialEvents {
				return apiserver.Fault{Refusal: apiserver.Unavailable()}
			}
			return apiserver.Fault{}
		})
		apiserver.Add(server, newPod("old"))
		f := follow(t, podInformer(t, server.Process("controller")))
		apiserver.Add(server, newPod("new"))
		f.saw("added old", "added new")
	})
}

func TestWhatIsHeldIsSeenWhenItIsReleased(t *testing.T) {
	inBubble(t, func(t *testing.T, server *apiserver.Server) {
		process := server.Process("controller")
		f := follow(t, podInformer(t, process))
		other := follow(t, podInformer(t, server.Process("other")))
		process.Hold("pods")
		for _, name := range []string{"a", "b", "c"} {
			apiserver.Add(server, newPod(name))
		}
		other.saw("added a", "added b", "added c")
		f.saw()
		process.Release("pods", 2)
		f.saw("added a", "added b")
		apiserver.Remove[corev1.Pod](server, namespace, "c")
		f.saw()
		process.ReleaseAll("pods")
		f.saw("added c", "deleted c")
		apiserver.Add(server, newPod("d"))
		f.saw("added d")
	})
}

func TestWhatIsDelayedIsSeenLater(t *testing.T) {
	inBubble(t, func(t *testing.T, server *apiserver.Server) {
		process := server.Process("controller")
		f := follow(t, podInformer(t, process))
		process.Delay("pods", 90*time.Second)
		apiserver.Add(server, newPod("a"))
		f.saw() // After a minute.
		f.saw("added a")
	})
}

func TestADroppedWatchGoesOnWhereItWas(t *testing.T) {
	inBubble(t, func(t *testing.T, server *apiserver.Server) {
		process := server.Process("controller")
		f := follow(t, podInformer(t, process))
		apiserver.Add(server, newPod("a"))
		f.saw("added a")
		process.DropWatches("pods")
		apiserver.Remove[corev1.Pod](server, namespace, "a")
		f.saw("deleted a")
	})
}

func TestAnExpiredWatchMissesDeletions(t *testing.T) {
	inBubble(t, func(t *testing.T, server *apiserver.Server) {
		process := server.Process("controller")
		f := follow(t, podInformer(t, process))
		apiserver.Add(server, newPod("a"))
		apiserver.Add(server, newPod("b"))
		f.saw("added a", "added b")
		process.Hold("pods")
		apiserver.Remove[corev1.Pod](server, namespace, "a")
		process.ExpireWatches("pods")
		process.ReleaseAll("pods")
		f.saw("missed the deletion of a", "updated b")
	})
}

func TestAWatchFromAForgottenVersionExpires(t *testing.T) {
	inBubble(t, func(t *testing.T, server *apiserver.Server) {
		process := server.Process("controller")
		f := follow(t, podInformer(t, process))
		apiserver.Add(server, newPod("a"))
		f.saw("added a")
		process.Hold("pods")
		apiserver.Remove[corev1.Pod](server, namespace, "a")
		server.Forget("pods")
		process.DropWatches("pods")
		process.ReleaseAll("pods")
		f.saw("missed the deletion of a")
	})
}

// TestWhatIsDroppedWasSeen: a watch that is behind still gets all of it.
func TestWhatIsDroppedWasSeen(t *testing.T) {
	inBubble(t, func(t *testing.T, server *apiserver.Server) {
		process := server.Process("controller")
		behind, prompt := follow(t, podInformer(t, process)), follow(t, podInformer(t, server.Process("other")))
		process.Hold("pods")
		apiserver.Add(server, newPod("a"))
		prompt.saw("added a")
		server.DropBefore(time.Now())
		process.ReleaseAll("pods")
		behind.saw("added a")
		server.DropBefore(time.Now())
		apiserver.Remove[corev1.Pod](server, namespace, "a")
		behind.saw("deleted a")
		prompt.saw("deleted a")
	})
}

func TestOldStatesAreGoodEnoughForWhoSaysSo(t *testing.T) {
	inBubble(t, func(t *testing.T, server *apiserver.Server) {
		apiserver.Add(server, newPod("a"))
		process := server.Process("controller")
		process.Hold("pods")
		apiserver.Remove[corev1.Pod](server, namespace, "a")
		apiserver.Add(server, newPod("b"))
		client := kubeClient(t, process.Config())
		for version, want := range map[string]string{"": "[b]", "0": "[a]", server.Version(): "[b]"} {
			list, err := client.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{ResourceVersion: version})
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, pod := range list.Items {
				names = append(names, pod.Name)
			}
			if got := fmt.Sprint(names); got != want {
				t.Errorf("of version %q the list is %s, want %s", version, got, want)
			}
		}
	})
}

func TestABookmarkTellsHowFarTheServerIs(t *testing.T) {
	inBubble(t, func(t *testing.T, server *apiserver.Server) {
		f := follow(t, podInformer(t, server.Process("controller")))
		apiserver.Add(server, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "a"}})
		server.Bookmark("pods")
		f.saw()
		if got := f.informer.LastSyncResourceVersion(); got != server.Version() {
			t.Errorf("the informer is at %s, the server at %s", got, server.Version())
		}
	})
}
