// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/events"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/client/clientset/versioned"
	"github.com/lockstep-k8s/lockstep/internal/testing/apiserver"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/news"
)

// town is an API server with many gangs, of which a Reporter tells.
type town struct {
	*Reporter
	t      *testing.T
	server *apiserver.Server

	mu    sync.Mutex
	gangs map[dialect.Key]news.Gang
	// fault says what befalls a write, and tries counts the writes by namespace.
	fault func(*apiserver.Request) apiserver.Fault
	tries map[string]int
}

// inTown runs a test with a Reporter whose writes a fault may befall.
func inTown(t *testing.T, fault func(*apiserver.Request) apiserver.Fault, test func(*town)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &town{t: t, server: apiserver.New(t), gangs: make(map[dialect.Key]news.Gang), fault: fault, tries: make(map[string]int)}
		w.server.SetHook(func(r *apiserver.Request) apiserver.Fault {
			if !r.Verb.Writes() {
				return apiserver.Fault{}
			}
			w.mu.Lock()
			defer w.mu.Unlock()
			w.tries[r.Namespace]++
			return w.fault(r)
		})
		config := w.server.Process("scheduler").Config()
		groups, err := versioned.NewForConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		pods, err := kubernetes.NewForConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		w.Reporter = NewReporter(w, groups, nil, pods, events.NewFakeRecorder(100_000), func() bool { return false })
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go w.Run(ctx)
		test(w)
		cancel()
		synctest.Wait()
	})
}

// settle makes a gang for which there is no room, and has it be told so. Its condition is told already
// if only its Pods are to be told.
func (w *town) settle(namespace, name string, members int, toldAlready bool) {
	w.t.Helper()
	group := apiserver.Add(w.server, &schedulingv1alpha1.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}})
	gang := gangOf(complete, refused, func(g *news.Gang) {
		g.Key = dialect.Key{Namespace: namespace, Name: name}
		g.Group.Key, g.Group.UID = g.Key, group.UID
	})
	for i := range members {
		pod := apiserver.Add(w.server, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("%s-%d", name, i)},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "image"}}},
		})
		gang.Pods = append(gang.Pods, news.Pod{Pod: pod, Since: time.Now()})
	}
	if toldAlready {
		gang.Record.Conditions, _ = gang.News(time.Now(), "transition")
	}
	w.mu.Lock()
	w.gangs[gang.Key] = gang
	w.mu.Unlock()
	w.Report(gang.Key, 0)
}

// Look implements Gangs.
func (w *town) Look(key dialect.Key) (news.Gang, bool) {
	w.mu.Lock()
	gang, ok := w.gangs[key]
	w.mu.Unlock()
	pods := make([]news.Pod, len(gang.Pods))
	for i, p := range gang.Pods {
		pods[i] = p
		pods[i].Pod = apiserver.Find[corev1.Pod](w.server, p.Pod.Namespace, p.Pod.Name)
	}
	gang.Pods = pods
	return gang, ok
}

// LookAt implements Gangs.
func (w *town) LookAt(key dialect.Key, uid types.UID) (news.Gang, news.Pod, bool) {
	w.mu.Lock()
	gang := w.gangs[key]
	w.mu.Unlock()
	for _, p := range gang.Pods {
		if p.Pod.UID == uid {
			p.Pod = apiserver.Find[corev1.Pod](w.server, p.Pod.Namespace, p.Pod.Name)
			return gang, p, true
		}
	}
	return news.Gang{}, news.Pod{}, false
}

// Remember implements Gangs.
func (w *town) Remember(group *dialect.Group, record news.Record) {
	w.mu.Lock()
	defer w.mu.Unlock()
	gang := w.gangs[group.Key]
	gang.Record = record
	w.gangs[group.Key] = gang
}

// triesIn is how many writes there were in a namespace.
func (w *town) triesIn(namespace string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.tries[namespace]
}

// befalls has another fault befall writes from now on.
func (w *town) befalls(fault func(*apiserver.Request) apiserver.Fault) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fault = fault
}

// told is how many Pods of a namespace were told that there is no room.
func (w *town) told(namespace string) (n int) {
	for _, pod := range apiserver.All[corev1.Pod](w.server, namespace) {
		if news.IsMarked(pod, corev1.PodReasonUnschedulable) {
			n++
		}
	}
	return n
}

// conditions are how many groups of a namespace were told something.
func (w *town) conditions(namespace string) (n int) {
	for _, group := range apiserver.All[schedulingv1alpha1.PodGroup](w.server, namespace) {
		if len(group.Status.Conditions) > 0 {
			n++
		}
	}
	return n
}

func (w *town) rest(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// slowIn has all writes in a namespace take long, as a webhook may that is slow.
func slowIn(namespace string) func(*apiserver.Request) apiserver.Fault {
	return func(r *apiserver.Request) apiserver.Fault {
		if r.Namespace == namespace {
			return apiserver.Fault{Before: 30 * time.Second}
		}
		return apiserver.Fault{}
	}
}

// refusedIn has all writes of Pods in a namespace be refused.
func refusedIn(namespace string, err error) func(*apiserver.Request) apiserver.Fault {
	return func(r *apiserver.Request) apiserver.Fault {
		if r.Namespace == namespace && r.Resource == "pods" {
			return apiserver.Fault{Refusal: err}
		}
		return apiserver.Fault{}
	}
}

// TestSlowWritesInANamespaceCostOthersNoTime: neither conditions nor marks.
func TestSlowWritesInANamespaceCostOthersNoTime(t *testing.T) {
	for name, toldAlready := range map[string]bool{"conditions": false, "marks": true} {
		t.Run(name, func(t *testing.T) {
			inTown(t, slowIn("slow"), func(w *town) {
				for i := range 200 {
					w.settle("slow", fmt.Sprintf("gang-%d", i), 2, toldAlready)
				}
				w.rest(time.Second)
				for i := range 3 {
					w.settle("quick", fmt.Sprintf("gang-%d", i), 2, toldAlready)
				}
				w.rest(5 * time.Second)
				if got := w.told("quick"); got != 6 {
					t.Errorf("%d of 6 Pods are told why they wait, beside a namespace whose writes take long", got)
				}
				if got := w.conditions("quick"); !toldAlready && got != 3 {
					t.Errorf("%d of 3 groups are told why they wait, beside a namespace whose writes take long", got)
				}
			})
		})
	}
}

// TestAWriteThatHangsIsGivenUp, and tried again.
func TestAWriteThatHangsIsGivenUp(t *testing.T) {
	hangs := func(*apiserver.Request) apiserver.Fault { return apiserver.Fault{Before: 1000 * time.Hour} }
	for name, toldAlready := range map[string]bool{"conditions": false, "marks": true} {
		t.Run(name, func(t *testing.T) {
			inTown(t, hangs, func(w *town) {
				w.settle("ns", "gang", 1, toldAlready)
				w.rest(time.Second)
				w.befalls(func(*apiserver.Request) apiserver.Fault { return apiserver.Fault{} })
				w.rest(2 * time.Minute)
				if got := w.told("ns"); got != 1 {
					t.Errorf("%d Pods are told, want the one of which the first write hung", got)
				}
			})
		})
	}
}

// TestMarksThatAreRefusedAreTriedOnceForAGang, at growing intervals, however many Pods it has and however
// often something happens to it. When one of them is granted, all others are.
func TestMarksThatAreRefusedAreTriedOnceForAGang(t *testing.T) {
	for name, refusal := range map[string]error{
		"forbidden": apierrors.NewForbidden(corev1.Resource("pods"), "p", errors.New("by a webhook")),
		"invalid":   apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("Pod").GroupKind(), "p", field.ErrorList{field.Forbidden(field.NewPath("status"), "by a policy")}),
		"bad":       apiserver.WebhookDenied("hook", "no"),
	} {
		t.Run(name, func(t *testing.T) {
			inTown(t, refusedIn("ns", refusal), func(w *town) {
				w.settle("ns", "gang", 100, true)
				for range 120 {
					w.rest(5 * time.Second)
					w.Report(dialect.Key{Namespace: "ns", Name: "gang"}, 0)
				}
				if got := w.triesIn("ns"); got < 10 || got > 30 {
					t.Errorf("%d tries in ten minutes, want about two a minute", got)
				}
				w.befalls(func(*apiserver.Request) apiserver.Fault { return apiserver.Fault{} })
				w.rest(90 * time.Second)
				if got := w.told("ns"); got != 100 {
					t.Errorf("%d of 100 Pods are told once nothing is refused any more", got)
				}
			})
		})
	}
}

// TestAPodWhoseMarkIsRefusedKeepsNoOtherWaiting of its gang.
func TestAPodWhoseMarkIsRefusedKeepsNoOtherWaiting(t *testing.T) {
	one := func(r *apiserver.Request) apiserver.Fault {
		if r.Name == "gang-7" {
			return apiserver.Fault{Refusal: apiserver.WebhookDenied("hook", "not this one")}
		}
		return apiserver.Fault{}
	}
	inTown(t, one, func(w *town) {
		w.settle("ns", "gang", 20, true)
		w.rest(5 * time.Second)
		if got := w.told("ns"); got != 19 {
			t.Errorf("%d Pods are told, want 19 of 20", got)
		}
	})
}
