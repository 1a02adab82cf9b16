//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	applyschedulingv1alpha1 "github.com/lockstep-k8s/lockstep/client/applyconfiguration/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/e2e/testbed"
)

// TestPodGroupStatusFollowsAThousandPodEvents: a thousand members come, a thousand
// succeed, a thousand go, each as fast as the API server takes it. A watcher of
// Pods and of the PodGroup sees the counters agree with the Pods within a second
// of the last event, and few writes. On a machine that does other work as well the
// API server is the slower one, so the best of the waves is held to that.
func TestPodGroupStatusFollowsAThousandPodEvents(t *testing.T) {
	const size = 1000
	namespace := cluster.Namespace(t)
	cluster.CreateGroup(t, namespace, "wave", 1)
	seen := newWaveWatcher(t, namespace)
	nobodys := func(pod *corev1.Pod) { pod.Spec.SchedulerName = "nobody" } // it is not about scheduling
	pods := members("wave", size, nobodys)

	var lags []time.Duration
	for _, wave := range []struct {
		name string
		do   func()
		want counts
	}{
		{"come", func() { createPods(t, namespace, pods) }, counts{members: size}},
		{"succeed", func() { endPods(t, namespace, pods) }, counts{members: size, succeeded: size}},
		{"go", func() { deletePods(t, namespace, pods) }, counts{}},
		{"come again", func() { createPods(t, namespace, pods) }, counts{members: size}},
		{"go again", func() { deletePods(t, namespace, pods) }, counts{}},
	} {
		start, writes := time.Now(), seen.writes()
		wave.do()
		took := time.Since(start)
		testbed.Eventually(t, fmt.Sprintf("Pods and PodGroup to be seen to %s", wave.name), func(context.Context) (bool, string, error) {
			return seen.agree(wave.want), seen.String(), nil
		})
		lag := seen.lag(wave.want)
		lags = append(lags, lag)
		written := seen.writes() - writes
		t.Logf("%d members %s in %v: status after %v, %d writes", size, wave.name, took.Round(time.Millisecond), lag.Round(time.Millisecond), written)
		if most := 10 * int(1+time.Since(start)/time.Second); written > most {
			t.Errorf("%d writes in %v, want at most ten a second", written, time.Since(start))
		}
	}
	if best := slices.Min(lags); best > time.Second {
		t.Errorf("the status is right %v after the last Pod event at best, want a second", best)
	}
}

// counts are the counters that a wave changes.
type counts struct{ members, succeeded int32 }

// waveWatcher sees Pods and a PodGroup as a client does, and notes when what it
// sees of them came to be as it is.
type waveWatcher struct {
	mu              sync.Mutex
	pods            map[types.UID]corev1.PodPhase
	ofPods, ofGroup counts
	podsAt, groupAt map[counts]time.Time
	groupWrites     int
}

func newWaveWatcher(t *testing.T, namespace string) *waveWatcher {
	t.Helper()
	w := &waveWatcher{pods: map[types.UID]corev1.PodPhase{}, podsAt: map[counts]time.Time{}, groupAt: map[counts]time.Time{}}
	begin, err := cluster.Kube.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pods := testbed.Watch(t, begin, cluster.Kube.CoreV1().Pods(namespace).Watch)
	groups := testbed.Watch(t, begin, cluster.Lockstep.SchedulingV1alpha1().PodGroups(namespace).Watch)
	go func() {
		for event := range pods.ResultChan() {
			if pod, ok := event.Object.(*corev1.Pod); ok {
				w.seePod(event.Type, pod)
			}
		}
	}()
	go func() {
		for event := range groups.ResultChan() {
			if group, ok := event.Object.(*schedulingv1alpha1.PodGroup); ok {
				w.seeGroup(group)
			}
		}
	}()
	return w
}

func (w *waveWatcher) seePod(kind watch.EventType, pod *corev1.Pod) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.pods[pod.UID] == corev1.PodSucceeded {
		w.ofPods.succeeded--
	}
	delete(w.pods, pod.UID)
	if kind != watch.Deleted {
		w.pods[pod.UID] = pod.Status.Phase
		if pod.Status.Phase == corev1.PodSucceeded {
			w.ofPods.succeeded++
		}
	}
	before := w.ofPods
	if w.ofPods.members = int32(len(w.pods)); w.ofPods != before || w.podsAt[w.ofPods].IsZero() {
		w.podsAt[w.ofPods] = time.Now()
	}
}

func (w *waveWatcher) seeGroup(group *schedulingv1alpha1.PodGroup) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := counts{group.Status.Members, group.Status.Succeeded}
	if now != w.ofGroup {
		w.groupWrites++
	}
	w.ofGroup = now
	w.groupAt[now] = time.Now()
}

func (w *waveWatcher) agree(on counts) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ofPods == on && w.ofGroup == on
}

// lag is how much later than the Pods the PodGroup came to where both are.
func (w *waveWatcher) lag(at counts) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return max(0, w.groupAt[at].Sub(w.podsAt[at]))
}

func (w *waveWatcher) writes() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.groupWrites
}

func (w *waveWatcher) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return fmt.Sprintf("Pods %+v, PodGroup %+v", w.ofPods, w.ofGroup)
}

// TestTwoWritersOfAPodGroupDoNotConflict: controller and scheduler own different
// fields of a status, so that neither needs to read before it writes, nor force,
// and neither undoes what the other wrote.
func TestTwoWritersOfAPodGroupDoNotConflict(t *testing.T) {
	namespace := cluster.Namespace(t)
	cluster.CreateGroup(t, namespace, "shared", 2)
	createPods(t, namespace, members("shared", 2))
	group := cluster.WaitPodGroup(t, namespace, "shared", "be Running and Scheduled", func(pg *schedulingv1alpha1.PodGroup) bool {
		return pg.Status.Phase == schedulingv1alpha1.PodGroupRunning && len(pg.Status.Conditions) == 2
	})
	for _, entry := range group.ManagedFields {
		fields := string(entry.FieldsV1.Raw)
		ownsPhase, ownsConditions := strings.Contains(fields, `"f:phase"`), strings.Contains(fields, `"f:conditions"`)
		if want := entry.Manager == "lockstep-controller"; ownsPhase != want {
			t.Errorf("%s owns the phase: %v", entry.Manager, ownsPhase)
		}
		if want := entry.Manager == "lockstep-scheduler"; ownsConditions != want {
			t.Errorf("%s owns conditions: %v", entry.Manager, ownsConditions)
		}
	}

	// Both write at once what they write, not by force.
	const writes = 50
	cluster.CreateGroup(t, namespace, "contended", 2)
	client := cluster.Lockstep.SchedulingV1alpha1().PodGroups(namespace)
	write := func(manager string, n int, status *applyschedulingv1alpha1.PodGroupStatusApplyConfiguration) error {
		_, err := client.ApplyStatus(t.Context(), applyschedulingv1alpha1.PodGroup("contended", namespace).WithStatus(status),
			metav1.ApplyOptions{FieldManager: manager}) // not by force: a conflict is an error
		if err != nil {
			return fmt.Errorf("write %d of %s: %w", n, manager, err)
		}
		return nil
	}
	var writers sync.WaitGroup
	errs := make([]error, 2*writes)
	writers.Go(func() {
		for i := range writes {
			errs[i] = write("lockstep-controller", i, applyschedulingv1alpha1.PodGroupStatus().
				WithPhase(schedulingv1alpha1.PodGroupPending).WithMembers(int32(i)).WithScheduled(0).WithRunning(0).WithSucceeded(0).WithFailed(0))
		}
	})
	writers.Go(func() {
		for i := range writes {
			errs[writes+i] = write("lockstep-scheduler", i, applyschedulingv1alpha1.PodGroupStatus().WithConditions(
				applyschedulingv1alpha1.PodGroupCondition().WithType(schedulingv1alpha1.ConditionUnschedulable).
					WithStatus(metav1.ConditionTrue).WithReason(schedulingv1alpha1.ReasonNotEnoughTasks).WithMessage(fmt.Sprint(i))))
		}
	})
	writers.Wait()
	for _, err := range errs {
		if err != nil {
			t.Error(err)
		}
	}
	final, err := client.Get(t.Context(), "contended", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if final.Status.Phase == "" || len(final.Status.Conditions) == 0 {
		t.Errorf("one writer undid the other: %+v", final.Status)
	}
}

// TestKubectlDescribePodGroupTellsItsStory: why a gang waits, by how much, and
// that it got its place.
func TestKubectlDescribePodGroupTellsItsStory(t *testing.T) {
	namespace := cluster.Namespace(t)
	cluster.CreateGroup(t, namespace, "story", nodes+1)
	createPods(t, namespace, members("story", nodes+1, testbed.WithCores(coresOfNode)))
	describes := func(wants ...string) {
		t.Helper()
		testbed.Eventually(t, fmt.Sprintf("kubectl describe podgroup to tell %q", wants), func(ctx context.Context) (bool, string, error) {
			out, err := cluster.Kubectl(ctx, "describe", "podgroup", "story", "-n", namespace)
			text := strings.Join(strings.Fields(out), " ")
			missing := slices.DeleteFunc(slices.Clone(wants), func(want string) bool { return strings.Contains(text, want) })
			return len(missing) == 0, out, err
		})
	}
	describes("Reason: NotEnoughResources",
		fmt.Sprintf("there is room for %d of the %d members that are needed; the others are short of %d cpu", nodes, nodes+1, coresOfNode),
		"Phase: Pending", fmt.Sprintf("Members: %d", nodes+1), "Scheduled: 0",
		"Warning NotEnoughResources")

	patch := fmt.Appendf(nil, `{"spec":{"minMember":%d}}`, nodes)
	if _, err := cluster.Lockstep.SchedulingV1alpha1().PodGroups(namespace).Patch(t.Context(), "story", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	describes("Reason: Scheduled", "Phase: Running", fmt.Sprintf("Running: %d", nodes), "Warning NotEnoughResources", "Normal Scheduled")
}
