// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
)

var podGroupResource = schedulingv1alpha1.SchemeGroupVersion.WithResource("podgroups")

func TestWritesOfAnAttemptComeInOrder(t *testing.T) {
	f := framework(2)
	f.Spec.Gang = &frameworkv1.GangSpec{}
	w := newWorld(t, f)
	for range 12 {
		if err := w.sync(); err != nil {
			t.Fatal(err)
		}
		w.live(succeed)
	}
	if got := w.stored().State; got != frameworkv1.FrameworkCompleted {
		t.Fatalf("the Framework is %s, want Completed", got)
	}
	creations := func(log []string) []string {
		var kept []string
		for _, write := range log {
			if strings.HasPrefix(write, "create") || strings.HasPrefix(write, "delete") {
				kept = append(kept, write)
			}
		}
		return kept
	}
	want := []string{
		"update frameworks/status fw", "create configmaps fw-attempt", "create podgroups fw-attempt",
		"create pods fw-w-0", "create pods fw-w-1", "update frameworks/status fw",
	}
	if diff := cmp.Diff(want, dedupe(w.log)[:len(want)]); diff != "" {
		t.Errorf("unexpected first writes (-want +got):\n%s", diff)
	}
	wantAll := []string{
		"create configmaps fw-attempt", "create podgroups fw-attempt", "create pods fw-w-0", "create pods fw-w-1",
		"delete pods fw-w-0", "delete pods fw-w-1", "delete configmaps fw-attempt",
	}
	got := creations(w.log)
	if len(got) == len(wantAll) {
		slices.Sort(got[4:6]) // Pods are deleted side by side.
	}
	if diff := cmp.Diff(wantAll, got); diff != "" {
		t.Errorf("unexpected creations and deletions (-want +got):\n%s", diff)
	}
}

// TestAGangWithTheLongestNameCompletes: its PodGroup has another name than its
// ConfigMap.
func TestAGangWithTheLongestNameCompletes(t *testing.T) {
	f := framework(2)
	f.Name = strings.Repeat("x", validation.DNS1123LabelMaxLength)
	f.Spec.Gang = &frameworkv1.GangSpec{}
	w := newWorld(t, f)
	for range 12 {
		if err := w.sync(); err != nil {
			t.Fatal(err)
		}
		w.live(succeed)
	}
	if got := w.stored().State; got != frameworkv1.FrameworkCompleted {
		t.Errorf("the Framework is %s, want Completed", got)
	}
	groups := slices.DeleteFunc(slices.Clone(w.log), func(write string) bool { return !strings.Contains(write, "podgroups") })
	if want := []string{"create podgroups " + frameworkv1.PodGroupName(f.Name)}; !slices.Equal(groups, want) {
		t.Errorf("writes of PodGroups %q, want %q", groups, want)
	}
}

// TestCrashBetweenAnyTwoWrites lets the controller crash after each of its writes
// in turn. A new one always brings the Framework to the same end.
func TestCrashBetweenAnyTwoWrites(t *testing.T) {
	// The first attempt of w-0 fails and is retried; then all succeed.
	exit := func(pod *corev1.Pod) int32 {
		if pod.Name == "fw-w-0" && pod.Annotations[frameworkv1.KeyTaskAttemptID] == "0" {
			return 200
		}
		return 0
	}
	lead := func(t *testing.T, crashAfter int) (*world, bool) {
		f := framework(2)
		f.Spec.TaskRoles[0].Task.RetryPolicy.FancyRetryPolicy = true
		f.Spec.Gang = &frameworkv1.GangSpec{}
		w := newWorld(t, f)
		w.budget = crashAfter
		crashed := false
		for range 40 {
			if err := w.sync(); err != nil {
				t.Fatal(err)
			}
			if w.crashed {
				crashed = true
				w.restart()
			}
			w.live(exit)
		}
		return w, crashed
	}
	for crashAfter := 0; ; crashAfter++ {
		crashed := false
		t.Run(fmt.Sprintf("after %d writes", crashAfter), func(t *testing.T) {
			var w *world
			w, crashed = lead(t, crashAfter)
			status := w.stored()
			if status.State != frameworkv1.FrameworkCompleted || status.AttemptStatus.CompletionStatus.Code != 0 {
				t.Errorf("the Framework is %s with %v, want Completed with 0", status.State, status.AttemptStatus.CompletionStatus)
			}
			if status.AttemptStatus.ID != 0 {
				t.Errorf("attempt %d, want 0", status.AttemptStatus.ID)
			}
			tasks := status.AttemptStatus.TaskRoleStatuses[0].TaskStatuses
			if tasks[0].AttemptStatus.ID != 1 || tasks[1].AttemptStatus.ID != 0 {
				t.Errorf("attempts %d and %d of the tasks, want 1 and 0", tasks[0].AttemptStatus.ID, tasks[1].AttemptStatus.ID)
			}
			if len(w.pods) > 0 || w.configMap() != nil {
				t.Errorf("%d Pods and ConfigMap %v are left behind", len(w.pods), w.configMap())
			}
		})
		if !crashed {
			if crashAfter < 10 {
				t.Errorf("a life without a crash has only %d writes", crashAfter)
			}
			return
		}
	}
}

// TestNothingHappensUntilTheStatusIsWritten refuses the first write of a life, and
// then the first after the Pod has ended.
func TestNothingHappensUntilTheStatusIsWritten(t *testing.T) {
	w := newWorld(t, framework(1))
	refuse := func() {
		t.Helper()
		w.updateError = func([]byte) error { return errors.New("the API server is tired") }
		before := len(w.log)
		for range 3 {
			w.clock.SetTime(w.clock.Now().Add(time.Second))
			if err := w.sync(); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff([]string{}, w.log[before:], cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("something was done all the same (-want +got):\n%s", diff)
		}
		w.updateError = nil
		w.clock.SetTime(w.clock.Now().Add(time.Second))
		if err := w.sync(); err != nil {
			t.Fatal(err)
		}
		if got := w.log[before]; got != "update frameworks/status fw" {
			t.Errorf("the first write is %q", got)
		}
	}
	refuse()
	for w.stored().AttemptStatus.TaskRoleStatuses[0].TaskStatuses[0].State != frameworkv1.TaskAttemptRunning {
		w.live(succeed)
		if err := w.sync(); err != nil {
			t.Fatal(err)
		}
	}
	w.live(func(*corev1.Pod) int32 { return 1 })
	refuse()
}

func TestUserChangesTheSpecDuringAWrite(t *testing.T) {
	w := newWorld(t, framework(1))
	for range 2 { // Then there is a Pod, and soon it runs: that is written without waiting.
		if err := w.sync(); err != nil {
			t.Fatal(err)
		}
		w.live(succeed)
	}
	w.fill()
	w.framework.ResourceVersion = w.nextVersion()
	before := w.stored()
	if err := w.controller.sync(t.Context(), key, w.turn()); err != nil {
		t.Fatal(err)
	}
	if cmp.Equal(before, w.stored()) {
		t.Error("the status was not written")
	}
}

// TestNewLeaderWithAnOldCache starts a controller whose cache shows a Framework as
// it was before its predecessor's last writes.
func TestNewLeaderWithAnOldCache(t *testing.T) {
	w := newWorld(t, framework(1))
	w.fill()
	cached := w.controller.frameworks.GetIndexer().List()
	if err := w.sync(); err != nil {
		t.Fatal(err)
	}
	before := w.stored()
	if before == nil {
		t.Fatal("the predecessor has written nothing")
	}

	w.restart()
	w.fill()
	w.replace(w.controller.frameworks, cached...)
	if err := w.controller.sync(t.Context(), key, w.turn()); err == nil {
		t.Error("the new leader has not noticed that its cache is behind")
	}
	if diff := cmp.Diff(before, w.stored()); diff != "" {
		t.Errorf("the predecessor's status was overwritten (-before +after):\n%s", diff)
	}
	for range 12 {
		if err := w.sync(); err != nil {
			t.Fatal(err)
		}
		w.live(succeed)
	}
	if got := w.stored().State; got != frameworkv1.FrameworkCompleted {
		t.Errorf("the Framework is %s, want Completed", got)
	}
}

func TestFrameworkReplacedDuringAWrite(t *testing.T) {
	w := newWorld(t, framework(1))
	w.fill()
	w.framework.UID = w.NewUID()
	if err := w.controller.sync(t.Context(), key, w.turn()); err == nil {
		t.Error("the status of another Framework was written")
	}
	if w.stored() != nil || w.configMap() != nil {
		t.Error("something was written")
	}
}

// TestFrameworkReplacedBetweenSyncs deletes a Framework that is under way and
// creates another one of its name, of which the controller sees only the result.
func TestFrameworkReplacedBetweenSyncs(t *testing.T) {
	w := newWorld(t, framework(1))
	if err := w.sync(); err != nil {
		t.Fatal(err)
	}
	old := w.configMap().UID
	if err := w.kube.Tracker().Delete(corev1.SchemeGroupVersion.WithResource("configmaps"), namespace, "fw-attempt"); err != nil {
		t.Fatal(err)
	}
	w.framework.UID, w.framework.ResourceVersion = w.NewUID(), w.nextVersion()
	w.status, w.decoded = nil, nil
	for range 12 {
		if err := w.sync(); err != nil {
			t.Fatal(err)
		}
		if status := w.stored(); status != nil && ptr.Equal(status.AttemptStatus.ConfigMapUID, &old) {
			t.Fatal("the new Framework has the ConfigMap of the old one")
		}
		w.live(succeed)
	}
	if status := w.stored(); status == nil || status.State != frameworkv1.FrameworkCompleted {
		t.Errorf("the new Framework has the status %v, want Completed", status)
	}
}

// TestAPodThatIsNeverShownIsFound never shows the controller the Pod that it has
// created: at last it looks by itself, and follows the Pod from then on.
func TestAPodThatIsNeverShownIsFound(t *testing.T) {
	w := newWorld(t, framework(1))
	state := func() frameworkv1.TaskState {
		w.clock.SetTime(w.clock.Now().Add(time.Minute))
		w.fillWithoutPods()
		if err := w.controller.sync(t.Context(), key, w.turn()); err != nil {
			t.Fatal(err)
		}
		return w.stored().AttemptStatus.TaskRoleStatuses[0].TaskStatuses[0].State
	}
	for range 2 {
		state()
	}
	if len(w.pods) != 1 {
		t.Fatalf("there are %d Pods, want the one that was created", len(w.pods))
	}
	w.clock.SetTime(w.clock.Now().Add(time.Hour))
	for range 2 {
		state()
	}
	if got := state(); got != frameworkv1.TaskAttemptPreparing {
		t.Errorf("the task is %s, want it Preparing", got)
	}
	delete(w.pods, "fw-w-0")
	for range 2 {
		state()
	}
	if got := state(); got != frameworkv1.TaskCompleted {
		t.Errorf("the task is %s, want Completed once its Pod is gone", got)
	}
}

func TestStatusThatIsTooLargeIsWrittenShortened(t *testing.T) {
	w := newWorld(t, framework(1))
	w.updateError = func(patch []byte) error {
		if len(patch) > 4096 {
			return apierrors.NewRequestEntityTooLargeError("etcdserver: request is too large")
		}
		return nil
	}
	long := strings.Repeat("long ", 2000)
	for range 8 {
		if err := w.sync(); err != nil {
			t.Fatal(err)
		}
		w.live(func(pod *corev1.Pod) int32 {
			pod.Status.Message = long
			return 1
		})
	}
	status := w.stored()
	if status.State != frameworkv1.FrameworkCompleted {
		t.Errorf("the Framework is %s, want Completed", status.State)
	}
	found := false
	for _, condition := range status.Conditions {
		found = found || condition.Type == frameworkv1.ConditionStatusTooLarge
	}
	if !found {
		t.Errorf("no condition %s in %v", frameworkv1.ConditionStatusTooLarge, status.Conditions)
	}
	if got := events(w); !strings.Contains(got, reasonStatusTooLarge) {
		t.Errorf("no event %s in:\n%s", reasonStatusTooLarge, got)
	}
}

// events are those told so far.
func events(w *world) string {
	var told []string
	for {
		select {
		case event := <-w.recorder.Events:
			told = append(told, event)
		default:
			return strings.Join(told, "\n")
		}
	}
}

func TestFrameworkThatDoesNotDecodeIsToldAndLeftAlone(t *testing.T) {
	tests := map[string]*frameworkEntry{
		"spec":   {Framework: *framework(1), decodeError: errors.New("spec does not decode: because")},
		"status": {Framework: *framework(1), storedStatus: []byte(`{"state":"Completed"}`)},
		"tasks, which have no schema": {Framework: *framework(1), storedStatus: []byte(
			`{"state":"AttemptRunning","attemptStatus":{"taskRoleStatuses":[{"name":"worker","taskStatuses":"none"}]}}`)},
	}
	for name, entry := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, framework(1))
			w.replace(w.controller.frameworks, entry)
			if err := w.controller.sync(t.Context(), key, w.turn()); err != nil {
				t.Errorf("got %v, want no error: trying again does not help", err)
			}
			if got := events(w); !strings.Contains(got, "Warning "+reasonUndecodable) {
				t.Errorf("no event %s in %q", reasonUndecodable, got)
			}
			if got := w.controller.metrics.undecodable.len(); got != 1 {
				t.Errorf("%d undecodable Frameworks are counted, want 1", got)
			}
			if len(w.log) > 0 {
				t.Errorf("something was written: %v", w.log)
			}
		})
	}
}

// TestWritesDoNotGrowWithTheTasks leads large Frameworks through their lives, in
// which Pods change one after another at the rate at which an API server of a
// small machine takes them.
func TestWritesDoNotGrowWithTheTasks(t *testing.T) {
	const most = 40
	writes := map[int]int{}
	for _, tasks := range []int{1000, 4000} {
		writes[tasks] = leadLargeFramework(t, tasks)
		if writes[tasks] > most {
			t.Errorf("%d tasks take %d writes of the status, want at most %d", tasks, writes[tasks], most)
		}
	}
	t.Logf("writes by tasks: %v", writes)
	if growth := float64(writes[4000]) / float64(writes[1000]); math.Abs(growth-1) > 0.2 {
		t.Errorf("four times the tasks take %.2f times the writes: %v", growth, writes)
	}
}

func leadLargeFramework(t *testing.T, tasks int) int {
	t.Helper()
	const podsPerSecond = 250
	const tick = 100 * time.Millisecond
	perTick := int(podsPerSecond * tick / time.Second)
	w := newWorld(t, framework(int32(tasks)))
	changes := &changes{}
	w.show = func(pod *corev1.Pod, gone bool) { changes.see(t, w, pod, gone) }
	w.fill()
	for range 20_000 {
		if err := w.controller.sync(t.Context(), key, w.turn()); err != nil {
			t.Fatal(err)
		}
		if status := w.stored(); status.State == frameworkv1.FrameworkCompleted {
			break
		}
		w.clock.SetTime(w.clock.Now().Add(tick))
		changes.take(w, perTick)
		w.collectGarbage()
		w.fillWithoutPods()
	}
	if got := w.stored().State; got != frameworkv1.FrameworkCompleted {
		t.Fatalf("the Framework is %s, want Completed", got)
	}
	writes := 0
	for _, write := range w.log {
		if strings.HasPrefix(write, "update frameworks/status") {
			writes++
		}
	}
	return writes
}

// changes are the Pods' next steps, in the order in which they are due.
type changes struct {
	starts, ends, removals []*corev1.Pod
}

// see shows the controller a Pod and notes its next step.
func (c *changes) see(t *testing.T, w *world, pod *corev1.Pod, gone bool) {
	t.Helper()
	indexer := w.controller.pods.GetIndexer()
	var err error
	switch {
	case gone:
		err = indexer.Delete(pod)
	case pod.DeletionTimestamp != nil:
		c.removals = append(c.removals, pod)
		err = indexer.Update(pod)
	case pod.Status.Phase == corev1.PodPending:
		c.starts = append(c.starts, pod)
		err = indexer.Update(pod)
	default:
		if pod.Status.Phase == corev1.PodRunning {
			c.ends = append(c.ends, pod)
		}
		err = indexer.Update(pod)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// take lets so many Pods take their next step: start, end a minute after their
// creation, and go.
func (c *changes) take(w *world, count int) {
	for range count {
		switch {
		case len(c.removals) > 0:
			w.remove(c.removals[0].Name)
			c.removals = c.removals[1:]
		case len(c.ends) > 0 && w.clock.Since(c.ends[0].CreationTimestamp.Time) > time.Minute:
			w.step(c.ends[0], corev1.PodSucceeded)
			c.ends = c.ends[1:]
		case len(c.starts) > 0:
			w.step(c.starts[0], corev1.PodRunning)
			c.starts = c.starts[1:]
		}
	}
}

func (w *world) step(pod *corev1.Pod, phase corev1.PodPhase) {
	changed := pod.DeepCopy()
	changed.Status.Phase = phase
	w.put(changed)
}
