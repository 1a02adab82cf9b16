// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"errors"
	"flag"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
)

var (
	livesFlag = flag.Uint64("lives", 10000, "how many random lives TestRandomLives leads")
	firstFlag = flag.Uint64("first-seed", 0, "the seed of the first of them; the others count up")
	seedFlag  = flag.Int64("seed", -1, "lead only the random life of this seed, and print it")
)

// TestRandomLives leads Frameworks through random worlds: caches that are behind,
// each kind by itself, events that are missed or come twice, requests that are
// refused or whose replies are lost, Pods that the API server does not want,
// crashes between any two writes, deletions from outside, by force too, nodes that
// are lost, and users who rescale, stop, delete and change policies and gangs at
// any moment. What must always hold is in invariants_test.go and
// action_invariants_test.go.
// A failing life prints its seed; -seed leads it alone.
func TestRandomLives(t *testing.T) {
	if *seedFlag >= 0 {
		l := newLife(t, uint64(*seedFlag))
		l.verbose = true
		l.live()
		return
	}
	lives := *livesFlag
	if testing.Short() {
		lives = min(lives, 500)
	}
	percent := debug.SetGCPercent(400) // garbage is small, and made fast
	t.Cleanup(func() { debug.SetGCPercent(percent) })
	t.Logf("leading %d lives, with the seeds %d to %d", lives, *firstFlag, *firstFlag+lives-1)
	var next atomic.Uint64
	for range runtime.GOMAXPROCS(0) {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			for i := next.Add(1) - 1; i < lives && !t.Failed(); i = next.Add(1) - 1 {
				seed := *firstFlag + i
				newLife(t, seed).live()
				if t.Failed() {
					t.Logf("to see the life alone: go test ./controller/lifecycle -run TestRandomLives -seed %d -v", seed)
				}
			}
		})
	}
}

// TestLivesThatOnceFailed leads lives again that have found an error. Their seeds
// are other lives once anything is added to what may happen: what they found then
// needs a trace of its own.
func TestLivesThatOnceFailed(t *testing.T) {
	for _, seed := range []uint64{39263, 39264} {
		newLife(t, seed).live()
	}
}

// life is one Framework in one random world.
type life struct {
	*world
	random *rand.Rand
	// lostNodes don't answer: their Pods don't end.
	lostNodes map[string]bool
	// gentle lives come to their end by themselves, others are stopped.
	gentle  bool
	verbose bool
	// chronicle is what was written of attempts.
	chronicle chronicle
}

func newLife(t *testing.T, seed uint64) *life {
	random := rand.New(rand.NewPCG(seed, 7))
	l := &life{random: random, lostNodes: map[string]bool{}, gentle: random.IntN(2) == 0}
	l.world = newWorld(t, l.newFramework())
	l.rand = random
	l.prompt = false
	l.pendingGoAtOnce = random.IntN(2) == 0
	if random.IntN(3) == 0 {
		l.refuse = l.randomRefusal
	}
	l.options.HistoryLimit = []int{0, 1, 2, 10}[random.IntN(4)]
	l.onPlan = func(seen Snapshot, plan Plan) {
		l.checkGangEnd(seen, plan)
		l.checkPreparingEnd(seen, plan)
		l.checkRuntimeEnd(seen, plan)
	}
	l.onWrite = l.checkWrite
	l.onAction = l.checkAction
	return l
}

func (l *life) newFramework() *frameworkv1.Framework {
	var roles []frameworkv1.TaskRoleSpec
	for i := range 1 + l.random.IntN(3) {
		roles = append(roles, l.newRole(string(rune('a'+i))))
	}
	f := framework(roles...)
	f.Spec.RetryPolicy = l.newPolicy()
	if l.random.IntN(3) == 0 {
		f.Spec.Gang = &frameworkv1.GangSpec{}
		if l.random.IntN(2) == 0 {
			f.Spec.Gang.ScheduleTimeoutSeconds = ptr.To[int32](30)
			f.Spec.Gang.RecoveryTimeoutSeconds = ptr.To[int32](30)
		}
	}
	if l.random.IntN(3) == 0 {
		f.Annotations = map[string]string{schedulingv1alpha1.AnnotationMaxRuntime: strconv.Itoa(30 * (1 + l.random.IntN(10)))}
	}
	if l.random.IntN(8) == 0 {
		f.Spec.ExecutionType = frameworkv1.ExecutionCreate
	}
	return f
}

func (l *life) newRole(name string) frameworkv1.TaskRoleSpec {
	r := role(name, int32(l.random.IntN(4)))
	r.Task.Pod.Raw = nil
	r.Task.RetryPolicy = l.newPolicy()
	r.FrameworkAttemptCompletionPolicy = l.newThresholds()
	r.Task.PodGracefulDeletionTimeoutSec = l.newTimeout()
	if l.random.IntN(3) == 0 {
		r.PreparingTimeoutSeconds = ptr.To[int32](30)
	}
	return r
}

func (l *life) newPolicy() frameworkv1.RetryPolicySpec {
	return frameworkv1.RetryPolicySpec{FancyRetryPolicy: l.random.IntN(2) == 0, MaxRetryCount: int32(l.random.IntN(4) - 1)}
}

func (l *life) newThresholds() frameworkv1.CompletionPolicySpec {
	return frameworkv1.CompletionPolicySpec{
		MinFailedTaskCount:    ptr.To(int32(l.random.IntN(4) - 1)),
		MinSucceededTaskCount: ptr.To(int32(l.random.IntN(4) - 1)),
	}
}

func (l *life) newTimeout() *int64 {
	if l.random.IntN(2) == 0 {
		return nil
	}
	return ptr.To(int64(l.random.IntN(2)) * 600)
}

// live is a while of chaos, and then peace in which the Framework comes to its
// end.
func (l *life) live() {
	l.fate = l.randomFate
	for range 40 {
		l.disturb()
		l.writeFrom = []Persist{PersistLater, PersistSoon}[l.random.IntN(2)]
		if l.random.IntN(6) == 0 {
			l.crashAfter = l.random.IntN(6)
		}
		for range l.random.IntN(3) { // Events are missed, or come twice.
			l.run()
		}
		for kind := range kinds {
			l.deliver(kind, l.random.IntN(len(l.behind[kind])+1))
		}
	}
	l.crash() // A controller sees what has lost its label at once only when it begins.
	l.fate, l.crashAfter, l.writeFrom, l.prompt = func() fate { return done }, -1, PersistLater, true
	l.refuse = nil
	l.deliverAll()
	l.peace()
	l.checkEnd()
}

func (l *life) randomFate() fate {
	switch l.random.IntN(24) {
	case 0:
		return refused
	case 1:
		return replyLost
	default:
		return done
	}
}

// randomRefusal is an API server to which a Pod makes no sense, or that has no
// room for it at the moment.
func (l *life) randomRefusal(pod *corev1.Pod) error {
	switch l.random.IntN(16) {
	case 0:
		return apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, pod.Name, nil)
	case 1:
		return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, pod.Name, errors.New("exceeded quota: q"))
	default:
		return nil
	}
}

// peace ends everything: by itself if there is a task that can end, and by a stop
// otherwise.
func (l *life) peace() {
	clear(l.lostNodes)
	tasks := int32(0)
	for _, r := range l.framework.Spec.TaskRoles {
		tasks += r.TaskNumber
	}
	l.gentle = l.gentle && tasks > 0
	l.edit(func(f *frameworkv1.Framework) {
		switch {
		case !l.gentle:
			f.Spec.ExecutionType = frameworkv1.ExecutionStop
		case f.Spec.ExecutionType == frameworkv1.ExecutionCreate:
			f.Spec.ExecutionType = frameworkv1.ExecutionStart
		}
	})
	for range 60 {
		if l.deleted || l.written != nil && l.written.State == frameworkv1.FrameworkCompleted {
			break
		}
		l.run()
		l.collectGarbage()
		l.run()
		if l.podGroup != nil && l.podGroup.Status.Phase != schedulingv1alpha1.PodGroupRunning {
			l.podGroup.Status.Phase = schedulingv1alpha1.PodGroupRunning
			l.podGroupChanged()
		}
		for _, name := range l.podNames() {
			l.endPod(name)
			if pod := l.pods[name]; pod != nil && pod.DeletionTimestamp == nil {
				l.setPhase(name, corev1.PodSucceeded, 0)
			}
		}
		l.collectGarbage()
		l.now = l.now.Add(4 * time.Minute)
		l.run()
	}
	l.now = l.now.Add(31 * 24 * time.Hour)
	l.run()
	l.collectGarbage()
	l.run()
	for _, name := range l.podNames() {
		l.endPod(name) // Nobody waits for the Pods of a ConfigMap that was deleted in the background.
	}
}

// disturb does one random thing to the world.
func (l *life) disturb() {
	pod := ""
	if pods := l.podNames(); len(pods) > 0 {
		pod = pods[l.random.IntN(len(pods))]
	}
	switch l.random.IntN(20) {
	case 0, 1, 2:
		l.now = l.now.Add(time.Duration(l.random.IntN(40)) * time.Second)
	case 3, 4, 5, 6:
		l.advancePod(pod)
	case 7, 8, 9:
		if p := l.pods[pod]; p != nil && !l.lostNodes[p.Spec.NodeName] {
			l.endPod(pod)
		}
	case 10, 11:
		l.collectGarbage()
	case 12, 13:
		l.editSpec()
	case 14:
		l.meddle(pod)
	case 15:
		l.changePodGroup()
	case 16:
		l.changeNode()
	case 17:
		l.deliverAll()
	case 18:
		l.tellWait(pod)
	case 19:
		if l.random.IntN(3) == 0 {
			l.disrupt(pod)
		}
	}
}

// meddle is somebody who does what is seldom done.
func (l *life) meddle(pod string) {
	switch l.random.IntN(13) {
	case 12:
		l.addCondition()
	case 9:
		l.deleteConfigMapInBackground()
	case 10:
		l.hidePod(pod)
	case 11:
		l.hideConfigMap()
	case 0, 1:
		l.deletePod(pod, 30)
	case 8:
		if l.pods[pod] != nil {
			l.podRemoved(pod) // By force.
		}
	case 2:
		l.deleteConfigMap()
	case 3:
		l.now = l.now.Add(6 * time.Minute)
	case 4:
		if l.random.IntN(2) == 0 {
			l.edit(func(f *frameworkv1.Framework) { f.Spec.ExecutionType = frameworkv1.ExecutionStop })
		}
	case 5:
		if l.random.IntN(4) == 0 {
			l.deleteFramework()
		}
	default:
		l.edit(func(f *frameworkv1.Framework) {
			if f.Spec.ExecutionType == frameworkv1.ExecutionCreate {
				f.Spec.ExecutionType = frameworkv1.ExecutionStart
			}
		})
	}
}

// addCondition is another controller that writes a condition of its own.
func (l *life) addCondition() {
	if l.written == nil {
		return
	}
	l.written = frameworkv1.ShareTasks(l.written)
	meta.SetStatusCondition(&l.written.Conditions, metav1.Condition{
		Type: "Billed", Status: []metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionFalse}[l.random.IntN(2)],
		Reason: "Meter", LastTransitionTime: metav1.NewTime(l.now),
	})
}

// editSpec is the user who rescales or changes a policy, perhaps both at once.
func (l *life) editSpec() {
	l.edit(func(f *frameworkv1.Framework) {
		for range 1 + l.random.IntN(2) {
			l.editRoles(&f.Spec)
		}
	})
}

func (l *life) editRoles(spec *frameworkv1.FrameworkSpec) {
	if len(spec.TaskRoles) == 0 {
		spec.TaskRoles = append(spec.TaskRoles, l.newRole("z"))
		return
	}
	chosen := l.random.IntN(len(spec.TaskRoles))
	r := &spec.TaskRoles[chosen]
	switch l.random.IntN(10) {
	case 9:
		r.PreparingTimeoutSeconds = []*int32{nil, ptr.To[int32](20)}[l.random.IntN(2)]
	case 0, 1, 2:
		r.TaskNumber = int32(l.random.IntN(4))
	case 3:
		r.FrameworkAttemptCompletionPolicy = l.newThresholds()
	case 4:
		r.Task.RetryPolicy = l.newPolicy()
		spec.RetryPolicy = l.newPolicy()
	case 5:
		r.Task.PodGracefulDeletionTimeoutSec = l.newTimeout()
	case 6:
		spec.TaskRoles = slices.Delete(spec.TaskRoles, chosen, chosen+1)
	case 7:
		if !slices.ContainsFunc(spec.TaskRoles, func(r frameworkv1.TaskRoleSpec) bool { return r.Name == "z" }) {
			spec.TaskRoles = append(spec.TaskRoles, l.newRole("z"))
		}
	case 8:
		l.editGang(spec)
	}
}

// editGang makes a gang of a Framework, by its templates too, or none, or changes
// what it needs.
func (l *life) editGang(spec *frameworkv1.FrameworkSpec) {
	switch {
	case l.random.IntN(4) == 0:
		template := []string{"", gangTemplate}[l.random.IntN(2)]
		spec.TaskRoles[0].Task.Pod.Raw = []byte(template)
	case spec.Gang == nil:
		spec.Gang = &frameworkv1.GangSpec{}
	case l.random.IntN(3) == 0:
		spec.Gang = nil
	default:
		spec.Gang.MinMember = ptr.To(int32(1 + l.random.IntN(3)))
		spec.Gang.ScheduleTimeoutSeconds = ptr.To(int32(30 * l.random.IntN(3)))
		spec.Gang.MaxRuntimeSeconds = ptr.To(int32(30 * l.random.IntN(10)))
	}
}

// advancePod is what a kubelet may report of a Pod.
func (l *life) advancePod(name string) {
	pod := l.pods[name]
	if pod == nil || l.lostNodes[pod.Spec.NodeName] {
		return
	}
	if pod.Spec.NodeName == "" {
		pod.Spec.NodeName = []string{"node-1", "node-2"}[l.random.IntN(2)]
	}
	switch pod.Status.Phase {
	case corev1.PodPending, corev1.PodUnknown:
		l.setPhase(name, []corev1.PodPhase{corev1.PodPending, corev1.PodRunning, corev1.PodRunning, corev1.PodFailed}[l.random.IntN(4)], 1)
	case corev1.PodRunning:
		switch l.random.IntN(4) {
		case 0, 1:
			l.setPhase(name, corev1.PodSucceeded, 0)
		case 2:
			l.setPhase(name, corev1.PodFailed, []int32{1, 200, 201, 210}[l.random.IntN(4)])
		case 3:
			l.setPhase(name, []corev1.PodPhase{corev1.PodUnknown, corev1.PodPending}[l.random.IntN(2)], 0)
		}
	}
}

// changeNode loses a node, whose Pods are then unknown and evicted but don't end;
// or it comes back.
func (l *life) changeNode() {
	node := []string{"node-1", "node-2"}[l.random.IntN(2)]
	if l.lostNodes[node] {
		delete(l.lostNodes, node)
		return
	}
	l.lostNodes[node] = true
	for _, name := range l.podNames() {
		pod := l.pods[name]
		if pod.Spec.NodeName != node {
			continue
		}
		if pod.Status.Phase == corev1.PodRunning {
			l.setPhase(name, corev1.PodUnknown, 0)
		}
		l.deletePod(name, 30)
	}
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
