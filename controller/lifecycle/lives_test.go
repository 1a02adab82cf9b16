// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
)

// TestRandomLives leads Frameworks through random worlds: caches that are
// behind, replies that are lost, crashes between any two writes, deletions from
// outside, rescales and stops at any moment. A failing seed is printed; run it
// alone with -run TestRandomLives/seed=N.
func TestRandomLives(t *testing.T) {
	lives := uint64(4000)
	if testing.Short() {
		lives = 500
	}
	for seed := range lives {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) { newLife(t, seed).live() })
	}
}

// life is one Framework in one random world.
type life struct {
	*world
	random *rand.Rand
}

func newLife(t *testing.T, seed uint64) *life {
	random := rand.New(rand.NewPCG(seed, 7))
	var roles []frameworkv1.TaskRoleSpec
	for i := range 1 + random.IntN(3) {
		r := role(string(rune('a'+i)), int32(random.IntN(4)))
		r.Task.RetryPolicy = randomPolicy(random)
		r.FrameworkAttemptCompletionPolicy.MinFailedTaskCount = ptr.To(int32(random.IntN(4) - 1))
		r.FrameworkAttemptCompletionPolicy.MinSucceededTaskCount = ptr.To(int32(random.IntN(4) - 1))
		if random.IntN(2) == 0 {
			r.Task.PodGracefulDeletionTimeoutSec = nil
		}
		roles = append(roles, r)
	}
	f := framework(roles...)
	f.Spec.RetryPolicy = randomPolicy(random)
	if random.IntN(3) == 0 {
		f.Spec.Gang = &frameworkv1.GangSpec{}
		if random.IntN(2) == 0 {
			f.Spec.Gang.ScheduleTimeoutSeconds = ptr.To[int32](30)
			f.Spec.Gang.RecoveryTimeoutSeconds = ptr.To[int32](30)
		}
	}
	if random.IntN(8) == 0 {
		f.Spec.ExecutionType = frameworkv1.ExecutionCreate
	}
	l := &life{world: newWorld(t, f), random: random}
	l.prompt = false
	l.onWrite = l.checkWrite
	l.onAction = l.checkAction
	return l
}

func randomPolicy(random *rand.Rand) frameworkv1.RetryPolicySpec {
	return frameworkv1.RetryPolicySpec{FancyRetryPolicy: random.IntN(2) == 0, MaxRetryCount: int32(random.IntN(4) - 1)}
}

// live is a while of chaos, and then peace in which the Framework comes to its
// end.
func (l *life) live() {
	for range 40 {
		l.disturb()
		l.lose = func() bool { return l.random.IntN(20) == 0 }
		l.writeFrom = []Persist{PersistLater, PersistSoon}[l.random.IntN(2)]
		if l.random.IntN(6) == 0 {
			l.crashAfter = l.random.IntN(6)
		}
		l.run()
		l.deliver(l.random.IntN(len(l.behind) + 1))
	}
	l.lose, l.crashAfter, l.writeFrom, l.prompt = func() bool { return false }, -1, PersistLater, true
	l.framework.Spec.ExecutionType = frameworkv1.ExecutionStop
	for range 50 {
		l.deliver(len(l.behind))
		l.collectGarbage()
		for _, name := range l.podNames() {
			l.endPod(name)
		}
		l.collectGarbage()
		l.now = l.now.Add(10 * time.Minute)
		l.run()
	}
	if status := l.serverStatus(); status.State != frameworkv1.FrameworkCompleted {
		l.t.Errorf("after peace the Framework is %s, want Completed", transcript(status))
	}
	if len(l.pods) > 0 || l.configMap != nil {
		l.t.Errorf("Pods %v and ConfigMap %v are left behind", l.podNames(), l.configMap)
	}
}

// disturb does one random thing to the world.
func (l *life) disturb() {
	pods := l.podNames()
	pod := ""
	if len(pods) > 0 {
		pod = pods[l.random.IntN(len(pods))]
	}
	switch l.random.IntN(16) {
	case 0, 1, 2:
		l.now = l.now.Add(time.Duration(l.random.IntN(40)) * time.Second)
	case 3, 4, 5, 6:
		l.advancePod(pod)
	case 7, 8:
		if pod != "" {
			l.endPod(pod)
		}
	case 9, 10:
		l.collectGarbage()
	case 11:
		l.framework.Generation++
		roles := l.framework.Spec.TaskRoles
		if len(roles) > 0 {
			roles[l.random.IntN(len(roles))].TaskNumber = int32(l.random.IntN(4))
		}
	case 12:
		l.changeRoles()
	case 13:
		switch l.random.IntN(8) {
		case 0:
			l.deletePod(pod, 30)
		case 1:
			l.deleteConfigMap()
		case 2:
			l.now = l.now.Add(6 * time.Minute)
		case 3:
			l.framework.Spec.ExecutionType = frameworkv1.ExecutionStop
		default:
			if l.framework.Spec.ExecutionType == frameworkv1.ExecutionCreate {
				l.framework.Spec.ExecutionType = frameworkv1.ExecutionStart
			}
		}
	case 14:
		l.changePodGroup()
	case 15:
		l.deliver(len(l.behind))
	}
}

func (l *life) advancePod(name string) {
	pod := l.pods[name]
	if pod == nil {
		return
	}
	switch pod.Status.Phase {
	case corev1.PodPending:
		l.setPhase(name, []corev1.PodPhase{corev1.PodRunning, corev1.PodFailed}[l.random.IntN(2)], 1)
	case corev1.PodRunning:
		switch l.random.IntN(4) {
		case 0, 1:
			l.setPhase(name, corev1.PodSucceeded, 0)
		case 2:
			l.setPhase(name, corev1.PodFailed, []int32{1, 200, 201, 210}[l.random.IntN(4)])
		case 3:
			l.setPhase(name, corev1.PodUnknown, 0)
		}
	}
}

func (l *life) changeRoles() {
	spec := &l.framework.Spec
	l.framework.Generation++
	if len(spec.TaskRoles) > 1 && l.random.IntN(2) == 0 {
		spec.TaskRoles = append([]frameworkv1.TaskRoleSpec{}, spec.TaskRoles[1:]...)
		return
	}
	for _, r := range spec.TaskRoles {
		if r.Name == "z" {
			return
		}
	}
	spec.TaskRoles = append(append([]frameworkv1.TaskRoleSpec{}, spec.TaskRoles...), role("z", int32(l.random.IntN(3))))
}

func (l *life) changePodGroup() {
	if l.podGroup == nil {
		return
	}
	switch l.random.IntN(4) {
	case 0:
		l.podGroup = nil
	case 1:
		l.podGroup.Status.Phase = schedulingv1alpha1.PodGroupRunning
	case 2:
		l.podGroup.Status.Phase = schedulingv1alpha1.PodGroupUnknown
	case 3:
		l.podGroup.Status.Phase = schedulingv1alpha1.PodGroupPending
	}
	l.podGroupChanged()
}

// checkWrite holds what must be true of every status that anyone can see.
func (l *life) checkWrite(before, after *frameworkv1.FrameworkStatus) {
	l.t.Helper()
	if after.AttemptStatus.ID != after.RetryPolicyStatus.TotalRetriedCount {
		l.t.Errorf("attempt %d after %d retries", after.AttemptStatus.ID, after.RetryPolicyStatus.TotalRetriedCount)
	}
	gone := after.State == frameworkv1.FrameworkAttemptCompleted || after.State == frameworkv1.FrameworkCompleted
	if gone && (l.configMap != nil || len(l.pods) > 0) {
		l.t.Errorf("%s while ConfigMap %v and Pods %v are there", transcript(after), l.configMap != nil, l.podNames())
	}
	for _, role := range after.AttemptStatus.TaskRoleStatuses {
		for i, task := range role.TaskStatuses {
			if int(task.Index) != i {
				l.t.Errorf("task %s[%d] has the index %d", role.Name, i, task.Index)
			}
			if task.AttemptStatus.ID != task.RetryPolicyStatus.TotalRetriedCount {
				l.t.Errorf("task %s[%d]: attempt %d after %d retries", role.Name, i, task.AttemptStatus.ID, task.RetryPolicyStatus.TotalRetriedCount)
			}
			ended := task.State == frameworkv1.TaskAttemptCompleted || task.State == frameworkv1.TaskCompleted
			if ended && l.pods[task.AttemptStatus.PodName] != nil {
				l.t.Errorf("task %s[%d] is %s while its Pod is there", role.Name, i, task.State)
			}
		}
	}
	if before != nil {
		l.checkProgress(before, after)
	}
}

// checkProgress holds that no write goes back in time.
func (l *life) checkProgress(before, after *frameworkv1.FrameworkStatus) {
	l.t.Helper()
	if before.State == frameworkv1.FrameworkCompleted && after.State != frameworkv1.FrameworkCompleted {
		l.t.Errorf("Completed became %s", after.State)
	}
	if after.AttemptStatus.ID < before.AttemptStatus.ID {
		l.t.Errorf("attempt %d was followed by %d", before.AttemptStatus.ID, after.AttemptStatus.ID)
	}
	if after.AttemptStatus.ID != before.AttemptStatus.ID {
		return
	}
	if end := before.AttemptStatus.CompletionStatus; end != nil {
		if now := after.AttemptStatus.CompletionStatus; !apiequality.Semantic.DeepEqual(end, now) {
			l.t.Errorf("the attempt's completion status changed (-before +after):\n%s", cmp.Diff(end, now))
		}
	}
	tasks := tasksByUID(after)
	for uid, old := range tasksByUID(before) {
		task := tasks[uid]
		if task == nil {
			if !old.DeletionPending || old.State != frameworkv1.TaskCompleted {
				l.t.Errorf("task %s was removed when it was %s", old.AttemptStatus.PodName, old.State)
			}
			continue
		}
		if old.DeletionPending && !task.DeletionPending {
			l.t.Errorf("task %s was unmarked", old.AttemptStatus.PodName)
		}
		if task.AttemptStatus.ID < old.AttemptStatus.ID {
			l.t.Errorf("task %s went back to attempt %d", old.AttemptStatus.PodName, task.AttemptStatus.ID)
		}
		if end := old.AttemptStatus.CompletionStatus; end != nil && task.AttemptStatus.ID == old.AttemptStatus.ID {
			if now := task.AttemptStatus.CompletionStatus; !apiequality.Semantic.DeepEqual(end, now) {
				l.t.Errorf("completion status of task %s changed (-before +after):\n%s", old.AttemptStatus.PodName, cmp.Diff(end, now))
			}
		}
	}
}

func tasksByUID(status *frameworkv1.FrameworkStatus) map[string]*frameworkv1.TaskStatus {
	tasks := map[string]*frameworkv1.TaskStatus{}
	for _, role := range status.AttemptStatus.TaskRoleStatuses {
		for _, task := range role.TaskStatuses {
			tasks[string(task.InstanceUID)] = task
		}
	}
	return tasks
}

// checkAction holds that an action rests on what the API server has. The world
// has already done it.
func (l *life) checkAction(action Action) {
	l.t.Helper()
	status := l.written
	task := taskNamed(status, action.Name)
	switch action.Kind {
	case CreateConfigMap:
		if status.State != frameworkv1.FrameworkAttemptCreationPending {
			l.t.Errorf("%s while the persisted state is %s", action, status.State)
		}
	case DeleteConfigMap:
		recorded := status.AttemptStatus.ConfigMapUID != nil && *status.AttemptStatus.ConfigMapUID == action.UID
		if recorded && status.AttemptStatus.CompletionStatus == nil {
			l.t.Errorf("%s while no end of the attempt is persisted", action)
		}
	case CreatePod:
		if task == nil || task.State != frameworkv1.TaskAttemptCreationPending || task.DeletionPending ||
			status.AttemptStatus.ConfigMapUID == nil || status.AttemptStatus.CompletionStatus != nil {
			l.t.Errorf("%s while %s is persisted", action, transcript(status))
		}
	case DeletePod:
		recorded := task != nil && task.AttemptStatus.PodUID != nil && *task.AttemptStatus.PodUID == action.UID
		if recorded && task.AttemptStatus.CompletionStatus == nil && status.AttemptStatus.CompletionStatus == nil {
			l.t.Errorf("%s while %s is persisted", action, transcript(status))
		}
	case DeleteFramework:
		if status.State != frameworkv1.FrameworkCompleted {
			l.t.Errorf("%s while the persisted state is %s", action, status.State)
		}
	}
}

func taskNamed(status *frameworkv1.FrameworkStatus, podName string) *frameworkv1.TaskStatus {
	for _, role := range status.AttemptStatus.TaskRoleStatuses {
		for _, task := range role.TaskStatuses {
			if task.AttemptStatus.PodName == podName {
				return task
			}
		}
	}
	return nil
}
