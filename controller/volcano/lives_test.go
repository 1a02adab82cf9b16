// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package volcano

import (
	"cmp"
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
	busv1alpha1 "github.com/lockstep-k8s/lockstep/apis/bus/v1alpha1"
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/controller/engine/plan"
	"github.com/lockstep-k8s/lockstep/controller/jobpods"
	"github.com/lockstep-k8s/lockstep/internal/podend"
	"github.com/lockstep-k8s/lockstep/internal/testing/podways"
)

var (
	livesFlag = flag.Uint64("lives", 3000, "how many random lives TestRandomLives leads")
	firstFlag = flag.Uint64("first-seed", 0, "the seed of the first of them; the others count up")
	seedFlag  = flag.Int64("seed", -1, "lead only the random life of this seed, and print it")
)

// TestRandomLives leads Jobs through random worlds: caches that are behind, each kind by
// itself, events that are missed or come twice, requests that are refused or whose replies
// are lost, crashes between any two writes, controllers that begin with old Commands in
// their cache, deletions from outside, by force too, names that others have, and users who
// rescale and issue Commands at any moment. What must always hold is in
// invariants_test.go. A failing life prints its seed; -seed leads it alone.
func TestRandomLives(t *testing.T) {
	if *seedFlag >= 0 {
		l := newLife(t, uint64(*seedFlag))
		l.verbose = true
		l.live()
		return
	}
	lives := *livesFlag
	if testing.Short() {
		lives = min(lives, 300)
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
					t.Logf("to see the life alone: go test ./controller/volcano -run TestRandomLives -seed %d -v", seed)
				}
			}
		})
	}
}

// life is one Job in one random world.
type life struct {
	*world
	random  *rand.Rand
	verbose bool
	truth   truth
	// sane is the spec that the user has made nonsense of. Nil if it makes sense.
	sane *batchv1alpha1.JobSpec
}

func newLife(t *testing.T, seed uint64) *life {
	random := rand.New(rand.NewPCG(seed, 11))
	l := &life{random: random, truth: newTruth()}
	l.world = newWorld(t, l.newJob())
	l.prompt = false
	l.pendingGoAtOnce = random.IntN(2) == 0
	l.onPlan = l.checkPlan
	l.onWrite = l.checkWrite
	l.beforeAction = l.checkDeletion
	l.onAction = l.checkAction
	l.onEvent = func(e plan.Event) { l.log("tell  %s: %s", e.Reason, e.Message) }
	return l
}

func (l *life) log(format string, args ...any) {
	if l.verbose {
		l.t.Helper()
		l.t.Logf(format, args...)
	}
}

func (l *life) newJob() *batchv1alpha1.Job {
	var tasks []batchv1alpha1.TaskSpec
	for i := range 1 + l.random.IntN(3) {
		task := ofTask(string(rune('a'+i)), int32(l.random.IntN(4)), l.newPolicies()...)
		if l.random.IntN(3) == 0 {
			task.MinAvailable = ptr.To(int32(l.random.IntN(int(task.Replicas) + 1)))
		}
		if i > 0 && l.random.IntN(4) == 0 {
			task.DependsOn = &batchv1alpha1.DependsOn{Name: []string{"a"}}
		}
		if l.random.IntN(4) == 0 {
			task.Replicas = 4
			task.PartitionPolicy = &batchv1alpha1.PartitionPolicySpec{TotalPartitions: 2, PartitionSize: 2}
		}
		tasks = append(tasks, task)
	}
	j := job(tasks...)
	j.Spec.Policies = l.newPolicies()
	j.Spec.MaxRetry = int32(l.random.IntN(6))
	if l.random.IntN(3) == 0 {
		j.Annotations = map[string]string{schedulingv1alpha1.AnnotationMaxRuntime: strconv.Itoa(1 + l.random.IntN(300))}
	}
	if sum := l.replicasOf(j); l.random.IntN(2) == 0 && sum > 0 {
		j.Spec.MinAvailable = int32(1 + l.random.IntN(sum))
	}
	if l.random.IntN(4) == 0 {
		j.Spec.MinSuccess = ptr.To(int32(1 + l.random.IntN(4)))
	}
	if l.random.IntN(4) == 0 {
		j.Spec.Plugins = map[string]batchv1alpha1.PluginFlags{"env": nil, "svc": nil, "ssh": nil}
		j.Spec.Volumes = []batchv1alpha1.VolumeSpec{
			{MountPath: "/in", VolumeClaimName: "named"},
			{MountPath: "/out", VolumeClaim: &kruntime.RawExtension{Raw: []byte(`{"accessModes":["ReadWriteOnce"]}`)}},
		}
	}
	if l.random.IntN(6) == 0 {
		j.Spec.TTLSecondsAfterFinished = ptr.To(int32(l.random.IntN(2) * 60))
	}
	return j
}

func (l *life) replicasOf(j *batchv1alpha1.Job) int {
	sum := 0
	for _, task := range j.Spec.Tasks {
		sum += int(task.Replicas)
	}
	return sum
}

func (l *life) newPolicies() []batchv1alpha1.LifecyclePolicy {
	var policies []batchv1alpha1.LifecyclePolicy
	events := []busv1alpha1.Event{
		busv1alpha1.EventPodFailed, busv1alpha1.EventPodFailed, busv1alpha1.EventPodEvicted, busv1alpha1.EventPodEvicted,
		busv1alpha1.EventPodPending, busv1alpha1.EventTaskCompleted, busv1alpha1.EventTaskFailed, busv1alpha1.EventUnknown, busv1alpha1.EventAny,
	}
	actions := []busv1alpha1.Action{
		busv1alpha1.ActionRestartJob, busv1alpha1.ActionRestartTask, busv1alpha1.ActionRestartTask, busv1alpha1.ActionRestartPod,
		busv1alpha1.ActionRestartPod, busv1alpha1.ActionRestartPartition, busv1alpha1.ActionAbortJob, busv1alpha1.ActionTerminateJob,
		busv1alpha1.ActionCompleteJob, busv1alpha1.ActionResumeJob,
	}
	used := map[busv1alpha1.Event]bool{}
	for range l.random.IntN(3) {
		p := on(events[l.random.IntN(len(events))], actions[l.random.IntN(len(actions))])
		switch {
		case l.random.IntN(4) == 0 && !used["code"]:
			p = onCode(int32(1+l.random.IntN(2)), p.Action)
			used["code"] = true
		case used[p.Event] || used[busv1alpha1.EventAny] || p.Event == busv1alpha1.EventAny && len(policies) > 0:
			continue
		}
		used[p.Event] = true
		if l.random.IntN(3) == 0 {
			p = in("20s", p)
		}
		policies = append(policies, p)
	}
	return policies
}

// live is a while of chaos, and then peace in which the Job comes to its end.
func (l *life) live() {
	l.fate = l.randomFate
	for range 50 {
		l.disturb()
		l.writeFrom = []plan.Persist{plan.PersistLater, plan.PersistSoon, plan.PersistNow}[l.random.IntN(3)]
		if l.random.IntN(6) == 0 {
			l.crashAfter = l.random.IntN(6)
		}
		for range l.random.IntN(3) { // Events are missed, or come twice.
			l.run()
		}
		for _, kind := range jobpods.SortedKeys(l.behind) {
			l.deliver(kind, l.random.IntN(len(l.behind[kind])+1))
		}
	}
	l.crash()
	l.fate, l.crashAfter, l.writeFrom, l.prompt = func(plan.Action) fate { return done }, -1, plan.PersistLater, true
	l.deliverAll()
	l.peace()
	l.checkEnd()
}

func (l *life) randomFate(plan.Action) fate {
	switch l.random.IntN(24) {
	case 0:
		return refused
	case 1:
		return replyLost
	default:
		return done
	}
}

// disturb does one random thing to the world.
func (l *life) disturb() {
	pod := ""
	if pods := l.ownPods(); len(pods) > 0 {
		pod = pods[l.random.IntN(len(pods))]
	}
	switch l.random.IntN(20) {
	case 0, 1, 2:
		l.now = l.now.Add(time.Duration(l.random.IntN(15)) * time.Second)
	case 3, 4, 5, 6, 7, 8:
		l.advancePod(pod)
	case 9, 10, 11:
		l.log("user  ends %s", pod)
		l.endPod(pod)
		l.collectOrphan(pod)
	case 12:
		l.rescale()
	case 13:
		l.meddle(pod)
	case 14:
		l.issue()
	case 15:
		l.changePodGroup()
	case 16:
		l.restartController()
	default:
		l.deliverAll()
	}
}

// meddle is somebody who deletes what is not theirs.
func (l *life) meddle(pod string) {
	switch l.random.IntN(10) {
	case 8:
		l.supplyClaim()
	case 9:
		l.loseObject()
	case 0, 1, 2, 3:
		l.log("user  deletes %s", pod)
		l.deletePod(pod, 30)
	case 4:
		l.log("user  deletes %s by force", pod)
		l.remove(KindPod, pod)
	case 5:
		if group := l.names(KindPodGroup); len(group) > 0 {
			l.remove(KindPodGroup, group[l.random.IntN(len(group))])
		}
	case 6:
		l.takeName()
	case 7:
		l.log("user  issues and withdraws a Command")
		if c := l.names(KindCommand); len(c) > 0 {
			l.remove(KindCommand, c[0])
		}
	}
}

// supplyClaim is the user who makes the claim that the Job names.
func (l *life) supplyClaim() {
	if l.objects[ObjectKey{KindClaim, "named"}] == nil {
		l.store(KindClaim, &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "named", UID: l.newUID()}})
	}
}

// loseObject is somebody who deletes an object of a plugin.
func (l *life) loseObject() {
	for _, kind := range []string{KindService, KindConfigMap, KindSecret} {
		if names := l.names(kind); len(names) > 0 && l.random.IntN(2) == 0 {
			l.log("user  deletes %s %s", kind, names[0])
			l.remove(kind, names[0])
		}
	}
}

// takeName is another Job that has a Pod of a name that this one needs.
func (l *life) takeName() {
	name := podName(l.job.Name, "a", int32(l.random.IntN(4)))
	if l.pod(name) != nil {
		return
	}
	foreign := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: l.newUID()}, Status: corev1.PodStatus{Phase: corev1.PodRunning}}
	l.truth.foreign[foreign.UID] = true
	l.log("user  takes the name %s", name)
	l.store(KindPod, foreign)
}

// issue is a user who issues a Command.
func (l *life) issue() {
	actions := []busv1alpha1.Action{
		busv1alpha1.ActionRestartJob, busv1alpha1.ActionRestartJob, busv1alpha1.ActionAbortJob, busv1alpha1.ActionResumeJob,
		busv1alpha1.ActionResumeJob, busv1alpha1.ActionTerminateJob, busv1alpha1.ActionCompleteJob, "Foo",
	}
	action := actions[l.random.IntN(len(actions))]
	if (action == busv1alpha1.ActionTerminateJob || action == busv1alpha1.ActionCompleteJob) && l.random.IntN(3) > 0 {
		return
	}
	c := l.command(action)
	l.log("user  issues %s, %s", c.Name, action)
	if l.random.IntN(8) == 0 {
		c.Target.UID = "another"
		l.store(KindCommand, c)
	}
	l.truth.commands[c.UID] = c
}

// rescale is the user who changes what may change, and now and then something into nonsense,
// and back.
func (l *life) rescale() {
	if l.sane != nil {
		l.mend()
		return
	}
	if l.random.IntN(6) == 0 {
		l.confuse()
		return
	}
	l.edit(func(j *batchv1alpha1.Job) {
		task := &j.Spec.Tasks[l.random.IntN(len(j.Spec.Tasks))]
		if task.PartitionPolicy != nil {
			return
		}
		task.Replicas = int32(l.random.IntN(5))
		if task.MinAvailable != nil {
			task.MinAvailable = ptr.To(min(*task.MinAvailable, task.Replicas))
		}
		j.Spec.MinAvailable = min(j.Spec.MinAvailable, int32(l.replicasOf(j)))
		l.log("user  scales %s to %d, minAvailable %d", task.Name, task.Replicas, j.Spec.MinAvailable)
	})
}

// confuse changes the spec into one that makes no sense.
func (l *life) confuse() {
	l.sane = l.job.Spec.DeepCopy()
	l.edit(func(j *batchv1alpha1.Job) {
		task := &j.Spec.Tasks[l.random.IntN(len(j.Spec.Tasks))]
		j.Spec.MaxRetry = int32(l.random.IntN(3))
		switch l.random.IntN(5) {
		case 0:
			task.Replicas = -1
		case 1:
			task.Replicas = 1 << 30
		case 2:
			j.Spec.MinSuccess = ptr.To[int32](-1)
		case 3:
			j.Spec.MinAvailable = 1 << 30
		default:
			task.MaxRetry = -1
		}
		l.log("user  makes nonsense of %s: %d replicas, minAvailable %d", task.Name, task.Replicas, j.Spec.MinAvailable)
	})
}

// mend takes that back.
func (l *life) mend() {
	if l.sane == nil {
		return
	}
	sane := l.sane
	l.sane = nil
	l.log("user  mends the spec")
	l.edit(func(j *batchv1alpha1.Job) { j.Spec = *sane })
}

// restartController replaces the controller by one that may begin with an old cache of
// Commands, or with the status before the last.
func (l *life) restartController() {
	l.log("---- another controller")
	old := l.behind[KindCommand]
	if l.random.IntN(2) == 0 {
		delete(l.behind, KindCommand)
	}
	l.crash()
	if len(old) > 0 && len(l.behind[KindCommand]) == 0 {
		l.behind[KindCommand] = old
	}
	if l.before != nil && l.random.IntN(4) == 0 {
		l.controller = l.remembered(l.before)
	}
}

// advancePod is what a kubelet may report of a Pod.
func (l *life) advancePod(name string) {
	pod := l.pod(name)
	if pod == nil {
		return
	}
	switch pod.Status.Phase {
	case corev1.PodPending, corev1.PodUnknown:
		l.becomes(name, []corev1.PodPhase{corev1.PodRunning, corev1.PodRunning, corev1.PodRunning, corev1.PodFailed}[l.random.IntN(4)], 1)
	case corev1.PodRunning:
		switch l.random.IntN(6) {
		case 0, 1:
			l.becomes(name, corev1.PodSucceeded, 0)
		case 2:
			if l.random.IntN(2) == 0 {
				l.becomes(name, corev1.PodFailed, int32(1+l.random.IntN(2))) // The exit codes of policies.
			} else {
				ways := podways.Ways()
				l.endIn(name, ways[l.random.IntN(len(ways))])
			}
		case 3:
			l.becomes(name, corev1.PodUnknown, 0)
		case 4:
			pod.Status.ContainerStatuses[0].RestartCount += 2
			l.store(KindPod, pod)
		}
	}
	if pod := l.pod(name); pod != nil {
		l.log("node  %s is %s", name, cmp.Or(podend.Of(pod).String(), string(pod.Status.Phase)))
	}
}

// endIn has a Pod end in one of the ways in which Kubernetes ends Pods.
func (l *life) endIn(name string, way podways.Way) {
	if way.Deletes() {
		l.deletePod(name, 30)
	}
	pod := l.pod(name)
	if pod == nil {
		return
	}
	way.Happen(pod, l.now)
	l.truth.endedAlive[pod.UID] = jobpods.HasEnded(pod) && pod.DeletionTimestamp == nil &&
		(way.Volcano != podways.PodEvicted || l.hasPolicyForFailures(pod.Labels[batchv1alpha1.KeyTaskName]))
	l.store(KindPod, pod)
}

// hasPolicyForFailures says whether the first event that the policies of a task speak of is the
// failure of a Pod and none is its eviction.
func (l *life) hasPolicyForFailures(task string) bool {
	speaksOf := func(event busv1alpha1.Event) bool {
		policies := slices.Clone(l.job.Spec.Policies)
		for _, t := range l.job.Spec.Tasks {
			if t.Name == task {
				policies = append(policies, t.Policies...)
			}
		}
		return slices.ContainsFunc(policies, func(p batchv1alpha1.LifecyclePolicy) bool {
			return p.ExitCode == nil && (p.Event == event || p.Event == busv1alpha1.EventAny ||
				slices.Contains(p.Events, event) || slices.Contains(p.Events, busv1alpha1.EventAny))
		})
	}
	return speaksOf(busv1alpha1.EventPodFailed) && !speaksOf(busv1alpha1.EventPodEvicted)
}

// becomes is the kubelet that reports a phase. Of a Pod that dies it may tell no containers, or
// times of a clock that is behind.
func (l *life) becomes(name string, phase corev1.PodPhase, exitCode int32) {
	l.setPhase(name, phase, exitCode)
	pod := l.pod(name)
	switch {
	case !jobpods.HasEnded(pod):
	case pod.DeletionTimestamp == nil:
		l.truth.endedAlive[pod.UID] = true
	default:
		if pod.Status.ContainerStatuses[0].State.Terminated.FinishedAt = metav1.NewTime(l.now.Add(-time.Minute)); l.random.IntN(2) == 0 {
			pod.Status.ContainerStatuses = nil
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: pod.CreationTimestamp}}
		}
		l.store(KindPod, pod)
	}
}

// collectOrphan is whoever announced the deletion of a Pod, and now asks for it.
func (l *life) collectOrphan(name string) {
	if pod := l.pod(name); pod != nil && podend.IsAboutToBeDeleted(pod) {
		l.remove(KindPod, name)
	}
}

func (l *life) changePodGroup() {
	names := l.names(KindPodGroup)
	if len(names) == 0 {
		return
	}
	group := l.objects[ObjectKey{KindPodGroup, names[len(names)-1]}].(*schedulingv1alpha1.PodGroup)
	phases := []schedulingv1alpha1.PodGroupPhase{
		schedulingv1alpha1.PodGroupPending, schedulingv1alpha1.PodGroupRunning, schedulingv1alpha1.PodGroupRunning, schedulingv1alpha1.PodGroupUnknown,
	}
	group.Status.Phase = phases[l.random.IntN(len(phases))]
	l.log("gang  %s is %s", group.Name, group.Status.Phase)
	l.store(KindPodGroup, group)
}

// peace lets everything run to its end.
func (l *life) peace() {
	l.log("---- peace")
	l.supplyClaim()
	l.mend()
	for _, name := range l.names(KindPod) {
		if l.truth.foreign[l.pod(name).UID] {
			l.remove(KindPod, name)
		}
	}
	for range 80 {
		l.run()
		if isFinal(l.phase()) && l.job.Spec.TTLSecondsAfterFinished == nil && l.isQuiet() {
			return
		}
		for _, name := range l.names(KindPodGroup) {
			group := l.objects[ObjectKey{KindPodGroup, name}].(*schedulingv1alpha1.PodGroup)
			if group.Status.Phase != schedulingv1alpha1.PodGroupRunning {
				group.Status.Phase = schedulingv1alpha1.PodGroupRunning
				l.store(KindPodGroup, group)
			}
		}
		for _, name := range l.ownPods() {
			l.endPod(name)
			l.collectOrphan(name)
			pod := l.pod(name)
			if pod == nil || pod.DeletionTimestamp != nil {
				continue
			}
			switch pod.Status.Phase {
			case corev1.PodPending, corev1.PodUnknown:
				l.becomes(name, corev1.PodRunning, 0)
			case corev1.PodRunning:
				l.becomes(name, corev1.PodSucceeded, 0)
			}
		}
		l.run()
		l.now = l.now.Add(7 * time.Second)
		if l.phase() == abd && len(l.names(KindCommand)) == 0 && l.random.IntN(3) > 0 {
			c := l.command(busv1alpha1.ActionResumeJob)
			l.truth.commands[c.UID] = c
		}
		if l.job.DeletionTimestamp != nil {
			l.deleted = true
			break
		}
	}
}

// isQuiet says whether no Pod is left that has not ended.
func (l *life) isQuiet() bool {
	for _, name := range l.ownPods() {
		pod := l.pod(name)
		if phase := pod.Status.Phase; pod.DeletionTimestamp != nil || phase != corev1.PodSucceeded && phase != corev1.PodFailed {
			return false
		}
	}
	return len(l.names(KindCommand)) == 0
}

// transcript is a status in one line.
func transcript(s *batchv1alpha1.JobStatus) string {
	if s == nil {
		return "none"
	}
	return fmt.Sprintf("%s v%d rc%d p%d r%d s%d f%d t%d u%d %v %q", s.State.Phase, s.Version, s.RetryCount, s.Pending, s.Running,
		s.Succeeded, s.Failed, s.Terminating, s.Unknown, s.ControlledResources, s.State.Reason+": "+s.State.Message)
}

// truth is what the world knows better than the controller.
type truth struct {
	foreign  map[types.UID]bool
	commands map[types.UID]*busv1alpha1.Command
	// executed counts how often Commands were.
	executed map[types.UID]int
	// causes counts how often an event of a Pod has led to a restart.
	causes map[string]int
	// cause is that of the decision that is about to be written.
	cause map[*batchv1alpha1.JobStatus]string
	// specs are those that decisions were made with.
	specs map[*batchv1alpha1.JobStatus]*batchv1alpha1.Job
	// marked are names of which a Pod was marked.
	marked map[string]bool
	// endedAlive are Pods that have ended while nobody deleted them.
	endedAlive map[types.UID]bool
	// seenEnded are the names of those whose end a decision has seen.
	seenEnded map[*batchv1alpha1.JobStatus][]string
	// leastReplicas are the fewest of a task since the last write.
	leastReplicas map[string]int32
}

func newTruth() truth {
	return truth{
		foreign: map[types.UID]bool{}, commands: map[types.UID]*busv1alpha1.Command{}, executed: map[types.UID]int{},
		causes: map[string]int{}, cause: map[*batchv1alpha1.JobStatus]string{},
		specs: map[*batchv1alpha1.JobStatus]*batchv1alpha1.Job{}, marked: map[string]bool{},
		endedAlive: map[types.UID]bool{}, seenEnded: map[*batchv1alpha1.JobStatus][]string{}, leastReplicas: map[string]int32{},
	}
}
