// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/internal/testing/apiserver"
)

// book has everything that is stored, and holds on each change what must be true of
// it: docs/guarantees.md, and that the controller writes down before it acts.
//
// What is stored counts, not what runs: a Pod that was removed by force is gone here.
type book struct {
	witness
	// creationTimeout is how long a creation may take to be seen.
	creationTimeout time.Duration

	mu sync.Mutex
	// leading is the name of the process that runs now. What another one has asked for
	// gets to the server late.
	leading    string
	stored     map[types.NamespacedName]*frameworkv1.Framework
	accounts   map[types.UID]*account
	pods       map[types.NamespacedName]*corev1.Pod
	configMaps map[types.NamespacedName]*corev1.ConfigMap
	// podsByUID has all Pods that ever were.
	podsByUID map[types.UID]*corev1.Pod
	// created is when an object was stored, by the clock of the bubble.
	created map[types.UID]time.Time
	// late has objects that were created by a process that did not live to see it.
	late map[types.UID]bool
	// grouped is when the first PodGroup of an attempt was stored, by Framework and
	// attempt.
	grouped map[string]time.Time
	// marked is when the deletion of a Pod began.
	marked map[types.UID]time.Time
	// ended has Pods whose end others than the controller have begun.
	ended map[types.UID]bool
}

// account is one Framework in the book.
type account struct {
	framework *frameworkv1.Framework
	// specs are those that it had, by generation.
	specs map[int64]*frameworkv1.FrameworkSpec
	// recorded has the UIDs of ConfigMaps and Pods that some status named.
	recorded map[types.UID]bool
	// created has what was created for an attempt of a task, and "" for one of the
	// Framework.
	created map[string]types.UID
	// loose says that somebody has let an attempt's Pods live on without their
	// ConfigMap, or all of it without the Framework.
	loose bool
	// overtaken says that a write of the status got to the server when its process did not
	// run any more.
	overtaken bool
	// changed is when the status was last written, edited when the user last changed
	// the Framework, both by the clock of the bubble.
	changed, edited time.Time
	gone            bool
}

func newBook(t *testing.T, trace *trace) *book {
	return &book{
		witness:    witness{t: t, trace: trace},
		stored:     map[types.NamespacedName]*frameworkv1.Framework{},
		accounts:   map[types.UID]*account{},
		pods:       map[types.NamespacedName]*corev1.Pod{},
		configMaps: map[types.NamespacedName]*corev1.ConfigMap{},
		podsByUID:  map[types.UID]*corev1.Pod{},
		created:    map[types.UID]time.Time{},
		late:       map[types.UID]bool{},
		ended:      map[types.UID]bool{},
		grouped:    map[string]time.Time{},
		marked:     map[types.UID]time.Time{},
	}
}

// lead notes which process runs from now on.
func (b *book) lead(process string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.leading = process
}

// leader is the name of the process that runs now.
func (b *book) leader() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.leading
}

// loosen notes that somebody lets what belongs to a Framework live on without its
// owner.
func (b *book) loosen(framework types.UID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if account := b.accounts[framework]; account != nil {
		account.loose = true
	}
}

// findLate holds, once nothing has disturbed for a while, that no Framework rests that
// has something to do, and says whether one does: its status changes when its timer
// is due, or soon if it waits for none.
func (b *book) findLate(calm time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	const settled, patience, jitter = 2 * time.Minute, 2 * time.Minute, 5 * time.Second
	if time.Since(calm) < settled {
		return false
	}
	late := false
	for _, account := range b.accounts {
		f := account.framework
		if account.gone || f.Status != nil && f.Status.State == frameworkv1.FrameworkCompleted {
			continue
		}
		due, what := account.changed.Add(patience), "nothing happens"
		if timer := nextRetry(f.Status); !timer.IsZero() {
			due, what = timer.Add(jitter), "a retry is late"
		}
		if time.Now().After(due) {
			late = true
			b.wrong("Framework %s: %s since %v: %s", f.Name, what, time.Since(account.changed), brief(f.Status))
		}
	}
	return late
}

// findOverdue holds, in a life in which nothing stands between the controller and the
// cluster, that no timer of the user fires late: Pods that don't end are deleted by
// force in time, and gangs are given up that get no room.
func (b *book) findOverdue(noRoom bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	const jitter = 5 * time.Second
	for key, pod := range b.pods {
		account := b.accountOf(pod)
		if account == nil || account.gone || pod.DeletionTimestamp == nil || account.framework.DeletionTimestamp != nil || account.loose {
			continue
		}
		for _, role := range account.framework.Status.AttemptStatus.TaskRoleStatuses {
			timeout := role.PodGracefulDeletionTimeoutSec
			if role.Name != pod.Annotations[frameworkv1.KeyTaskRoleName] || timeout == nil {
				continue
			}
			begun := later(b.marked[pod.UID], account.edited)
			if waited := time.Since(begun); waited > time.Duration(*timeout)*time.Second+jitter {
				b.wrong("Pod %s is not deleted by force after %v: %s", key, waited, brief(account.framework.Status))
			}
		}
	}
	for _, account := range b.accounts {
		f := account.framework
		if account.gone || f.Status == nil || f.Spec.Gang == nil || f.Spec.Gang.ScheduleTimeoutSeconds == nil ||
			f.Status.AttemptStatus.CompletionStatus != nil || f.Status.AttemptStatus.PodGroup == nil || f.Status.AttemptStatus.PodGroup.EverScheduled {
			continue
		}
		grouped := b.grouped[fmt.Sprintf("%s/%d", f.UID, f.Status.AttemptStatus.ID)]
		waited := time.Since(later(grouped, account.edited))
		if noRoom && waited > time.Duration(*f.Spec.Gang.ScheduleTimeoutSeconds)*time.Second+jitter {
			b.wrong("the gang of %s is not given up after %v: %s", f.Name, waited, brief(f.Status))
		}
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// nextRetry is when the next retry of a status is due, zero if there is none.
func nextRetry(status *frameworkv1.FrameworkStatus) time.Time {
	var next time.Time
	consider := func(since metav1.Time, delay *int64) {
		if delay == nil {
			return
		}
		if due := since.Add(time.Duration(*delay) * time.Second); next.IsZero() || due.Before(next) {
			next = due
		}
	}
	if status == nil {
		return next
	}
	consider(status.TransitionTime, status.RetryPolicyStatus.RetryDelaySec)
	if status.AttemptStatus.CompletionStatus == nil {
		for _, task := range tasksOf(status) {
			consider(task.TransitionTime, task.RetryPolicyStatus.RetryDelaySec)
		}
	}
	return next
}

// witness tells the test of what must not be.
type witness struct {
	t      *testing.T
	trace  *trace
	errors int
}

// wrong reports what must not be. Those that come after the first few are only in the trace.
func (b *witness) wrong(format string, args ...any) {
	b.errors++
	message := fmt.Sprintf(format, args...)
	b.trace.log("WRONG: %s", message)
	if b.errors <= 3 {
		b.t.Errorf("at %.3f s: %s", time.Since(b.trace.begun).Seconds(), message)
	}
}

// observe is an apiserver.Observer.
func (b *book) observe(c *apiserver.Written) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if ofJob(c) || ofTraining(c) {
		return
	}
	switch c.Resource {
	case "frameworks":
		b.onFramework(c)
	case "pods":
		b.onPod(c)
	case "configmaps":
		b.onConfigMap(c)
	case "podgroups":
		b.onPodGroup(c)
	}
}

func (b *book) onPodGroup(c *apiserver.Written) {
	b.logChange(c, "")
	if !c.Created() {
		return
	}
	annotations := apiserver.After[schedulingv1alpha1.PodGroup](c).Annotations
	id := annotations[frameworkv1.KeyFrameworkUID] + "/" + annotations[frameworkv1.KeyFrameworkAttemptID]
	if b.grouped[id].IsZero() {
		b.grouped[id] = time.Now()
	}
}

func (b *book) logChange(c *apiserver.Written, what string) {
	if !b.trace.verbose {
		return
	}
	verb := "changes"
	switch {
	case c.Created():
		verb = "creates"
	case c.Removed():
		verb = "removes"
	}
	who := c.Process
	if who == "" {
		who = "the cluster"
	}
	b.trace.log("    %s %s %s %s %s", who, verb, c.Resource, c.Key, what)
}

// isController says whether a change is the controller's.
func isController(c *apiserver.Written) bool { return strings.HasPrefix(c.Process, "controller") }

// accountOf is the Framework that an object belongs to by its annotations.
func (b *book) accountOf(object metav1.Object) *account {
	return b.accounts[types.UID(object.GetAnnotations()[frameworkv1.KeyFrameworkUID])]
}

func (b *book) onPod(c *apiserver.Written) {
	before, after := apiserver.Before[corev1.Pod](c), apiserver.After[corev1.Pod](c)
	if after == nil {
		delete(b.pods, c.Key)
	} else {
		b.pods[c.Key], b.podsByUID[after.UID] = after, after
	}
	switch {
	case before == nil:
		b.created[after.UID] = time.Now()
		b.logChange(c, fmt.Sprintf("%s, attempt %s", after.UID, after.Annotations[frameworkv1.KeyTaskAttemptID]))
		if isController(c) {
			b.onPodCreation(c, after)
		}
	case before.DeletionTimestamp == nil && (after == nil || after.DeletionTimestamp != nil):
		b.logChange(c, fmt.Sprintf("%s, deleted", before.UID))
		b.marked[before.UID] = time.Now()
		if isController(c) {
			b.onPodDeletion(c, before)
		} else {
			b.ended[before.UID] = true
		}
	case after == nil:
		b.logChange(c, string(before.UID))
	case isController(c) && ptr.Deref(after.DeletionGracePeriodSeconds, 1) == 0 && ptr.Deref(before.DeletionGracePeriodSeconds, 0) > 0:
		b.logChange(c, fmt.Sprintf("%s, by force", after.UID))
		b.onForce(c, before)
	default:
		b.logChange(c, fmt.Sprintf("%s %s %s", after.UID, after.Status.Phase, after.Spec.NodeName))
	}
}

// onPodCreation holds that a Pod is created for an attempt of a task that waits for
// it by what is stored, and one only.
func (b *book) onPodCreation(c *apiserver.Written, pod *corev1.Pod) {
	account := b.accountOf(pod)
	if account == nil {
		b.wrong("%s creates Pod %s of no Framework", c.Process, c.Key)
		return
	}
	id := pod.Annotations[frameworkv1.KeyTaskUID] + "/" + pod.Annotations[frameworkv1.KeyTaskAttemptID]
	first, again := account.created[id]
	account.created[id] = pod.UID
	if c.Process != b.leading {
		b.late[pod.UID] = true
		return
	}
	// The late write of a former leader may have told of a Pod, and of its end, while this creation was under way. No precondition can
	// hold a creation to the status of another object; the next look at the status deletes the Pod.
	if again && !account.overtaken && (account.recorded[first] || b.pods[c.Key] == nil) {
		b.wrong("%s creates Pod %s anew for the same attempt of the task, whose Pod was %s", c.Process, c.Key, first)
	}
	if account.gone {
		return // The cache is behind: the garbage collector takes it.
	}
	status := account.framework.Status
	task := taskOfPod(status, pod)
	configMap := status.AttemptStatus.ConfigMapUID
	switch {
	case task == nil:
		b.wrong("%s creates Pod %s of no task: %s", c.Process, c.Key, brief(status))
	case !account.overtaken && (task.State != frameworkv1.TaskAttemptCreationPending || task.DeletionPending):
		b.wrong("%s creates Pod %s, but by what is stored nobody waits for it: %s", c.Process, c.Key, brief(status))
	case status.AttemptStatus.CompletionStatus != nil:
		b.wrong("%s creates Pod %s of an attempt that has ended: %s", c.Process, c.Key, brief(status))
	case configMap != nil && string(*configMap) != pod.Annotations[frameworkv1.KeyConfigMapUID]:
		b.wrong("%s creates Pod %s of the ConfigMap %s: %s", c.Process, c.Key, pod.Annotations[frameworkv1.KeyConfigMapUID], brief(status))
	case status.AttemptStatus.Gang == nil || status.AttemptStatus.Gang.Enabled != (pod.Labels[schedulingv1alpha1.LabelPodGroup] != ""):
		b.wrong("%s creates Pod %s, whose label of a gang is not what was decided: %s", c.Process, c.Key, brief(status))
	}
}

// onPodDeletion holds that the controller deletes no Pod of an attempt of a task
// that goes on by what is stored: above all not because a predecessor died.
func (b *book) onPodDeletion(c *apiserver.Written, pod *corev1.Pod) {
	account := b.accountOf(pod)
	if account == nil {
		b.wrong("%s deletes Pod %s, which is nobody's", c.Process, c.Key)
		return
	}
	if account.gone {
		return
	}
	status := account.framework.Status
	task := taskOfPod(status, pod)
	switch {
	case task == nil, task.AttemptStatus.CompletionStatus != nil, task.DeletionPending,
		status.AttemptStatus.CompletionStatus != nil,
		// The late write names a Pod that was deleted before this one was created.
		account.overtaken && task.AttemptStatus.PodUID != nil && *task.AttemptStatus.PodUID != pod.UID,
		status.AttemptStatus.ConfigMapUID != nil && string(*status.AttemptStatus.ConfigMapUID) != pod.Annotations[frameworkv1.KeyConfigMapUID],
		!b.hasConfigMap(pod):
		return
	}
	b.wrong("%s deletes Pod %s (%s) of the current attempt of a task: %s", c.Process, c.Key, pod.UID, brief(status))
}

// hasConfigMap says whether the ConfigMap of a Pod is there, and stays.
func (b *book) hasConfigMap(pod *corev1.Pod) bool {
	owner := metav1.GetControllerOf(pod)
	if owner == nil {
		return false
	}
	configMap := b.configMaps[types.NamespacedName{Namespace: pod.Namespace, Name: owner.Name}]
	return configMap != nil && configMap.UID == owner.UID && configMap.DeletionTimestamp == nil
}

// onForce holds that a Pod is not deleted by force before its node had the time to
// end it that the user gives, whatever the API server's clock says.
func (b *book) onForce(c *apiserver.Written, pod *corev1.Pod) {
	account := b.accountOf(pod)
	if account == nil || account.gone {
		return
	}
	waited := time.Since(b.marked[pod.UID])
	for _, role := range account.framework.Status.AttemptStatus.TaskRoleStatuses {
		if role.Name != pod.Annotations[frameworkv1.KeyTaskRoleName] {
			continue
		}
		if timeout := role.PodGracefulDeletionTimeoutSec; timeout == nil || waited < time.Duration(*timeout)*time.Second-time.Second {
			b.wrong("%s deletes Pod %s by force after %v: %s", c.Process, c.Key, waited, brief(account.framework.Status))
		}
	}
}

// checkGangTimeouts holds that a gang has the time to be placed that the user gives,
// whatever the API server's clock says.
func (b *book) checkGangTimeouts(a *account, before, after *frameworkv1.FrameworkStatus, wrong complain) {
	end := after.AttemptStatus.CompletionStatus
	if before.AttemptStatus.CompletionStatus != nil || end == nil || end.Code != frameworkv1.CodePodGroupScheduleTimeout {
		return
	}
	waited := time.Since(b.grouped[fmt.Sprintf("%s/%d", a.framework.UID, after.AttemptStatus.ID)])
	for generation := before.ObservedGeneration; generation <= after.ObservedGeneration; generation++ {
		if spec := a.specs[generation]; spec != nil && spec.Gang != nil && spec.Gang.ScheduleTimeoutSeconds != nil &&
			waited >= time.Duration(*spec.Gang.ScheduleTimeoutSeconds-1)*time.Second {
			return
		}
	}
	wrong("the gang was given up after %v", waited)
}

// overdue says whether an object is so old that a controller which has not seen it
// gives it up.
func (b *book) overdue(object metav1.Object) bool {
	return time.Since(b.created[object.GetUID()]) >= b.creationTimeout-time.Second // Statuses tell whole seconds.
}

func (b *book) onConfigMap(c *apiserver.Written) {
	before, after := apiserver.Before[corev1.ConfigMap](c), apiserver.After[corev1.ConfigMap](c)
	if after == nil {
		delete(b.configMaps, c.Key)
	} else {
		b.configMaps[c.Key] = after
	}
	switch {
	case before == nil:
		b.created[after.UID] = time.Now()
		b.logChange(c, fmt.Sprintf("%s, attempt %s", after.UID, after.Annotations[frameworkv1.KeyFrameworkAttemptID]))
		if isController(c) {
			b.onConfigMapCreation(c, after)
		}
	case before.DeletionTimestamp == nil && (after == nil || after.DeletionTimestamp != nil):
		b.logChange(c, fmt.Sprintf("%s, deleted", before.UID))
		if isController(c) {
			b.onConfigMapDeletion(c, before)
		}
	default:
		b.logChange(c, "")
	}
}

// onConfigMapCreation holds that an attempt begins once, and only when nothing of
// another is left.
func (b *book) onConfigMapCreation(c *apiserver.Written, configMap *corev1.ConfigMap) {
	account := b.accountOf(configMap)
	if account == nil {
		b.wrong("%s creates ConfigMap %s of no Framework", c.Process, c.Key)
		return
	}
	id := configMap.Annotations[frameworkv1.KeyFrameworkAttemptID]
	first, again := account.created[id]
	account.created[id] = configMap.UID
	if c.Process != b.leading {
		b.late[configMap.UID] = true
		return
	}
	if again && account.recorded[first] {
		b.wrong("%s creates ConfigMap %s anew for the same attempt, whose ConfigMap was %s", c.Process, c.Key, first)
	}
	if account.gone {
		return
	}
	status := account.framework.Status
	if status == nil || status.State != frameworkv1.FrameworkAttemptCreationPending || id != strconv.Itoa(int(status.AttemptStatus.ID)) {
		b.wrong("%s creates ConfigMap %s of attempt %s, but by what is stored nobody waits for it: %s", c.Process, c.Key, id, brief(status))
	}
	for key, pod := range b.pods {
		if b.accountOf(pod) == account && !b.late[pod.UID] {
			b.wrong("%s creates ConfigMap %s of attempt %s while Pod %s (%s) of another is there", c.Process, c.Key, id, key, pod.UID)
		}
	}
}

// onConfigMapDeletion holds that no attempt ends before its end was stored.
func (b *book) onConfigMapDeletion(c *apiserver.Written, configMap *corev1.ConfigMap) {
	account := b.accountOf(configMap)
	if account == nil || account.gone {
		return
	}
	status := account.framework.Status
	if status == nil || configMap.Annotations[frameworkv1.KeyFrameworkAttemptID] != strconv.Itoa(int(status.AttemptStatus.ID)) ||
		status.AttemptStatus.CompletionStatus != nil || b.overdue(configMap) ||
		account.framework.Spec.ExecutionType == frameworkv1.ExecutionStop ||
		status.AttemptStatus.ConfigMapUID != nil && *status.AttemptStatus.ConfigMapUID != configMap.UID {
		return
	}
	b.wrong("%s deletes ConfigMap %s of an attempt that goes on: %s", c.Process, c.Key, brief(status))
}

func (b *book) onFramework(c *apiserver.Written) {
	before, after := b.stored[c.Key], apiserver.After[frameworkv1.Framework](c)
	b.stored[c.Key] = after
	if after == nil {
		b.logChange(c, "")
		b.onFrameworkGone(before)
		return
	}
	a := b.accounts[after.UID]
	if a == nil {
		a = &account{specs: map[int64]*frameworkv1.FrameworkSpec{}, recorded: map[types.UID]bool{}, created: map[string]types.UID{}, changed: time.Now()}
		b.accounts[after.UID] = a
	}
	a.framework = after
	a.specs[after.Generation] = &after.Spec
	if before == nil || !isController(c) {
		b.logChange(c, fmt.Sprintf("generation %d: %s", after.Generation, briefSpec(&after.Spec)))
		a.changed, a.edited = time.Now(), time.Now()
		return
	}
	b.logChange(c, brief(after.Status))
	switch {
	case after.Status == nil:
		b.wrong("%s removes the status of Framework %s", c.Process, c.Key)
		return
	case !apiequality.Semantic.DeepEqual(before.Spec, after.Spec):
		b.wrong("%s changes the spec of Framework %s", c.Process, c.Key)
	case before.Status == nil && (after.Status.State != frameworkv1.FrameworkAttemptCreationPending || after.Status.AttemptStatus.ID != 0):
		b.wrong("the first status of Framework %s is %s", c.Key, brief(after.Status))
	}
	if apiequality.Semantic.DeepEqual(before.Status, after.Status) {
		return
	}
	a.changed = time.Now()
	a.overtaken = a.overtaken || c.Process != b.leading
	b.onStatus(a, before.Status, after.Status)
}

// onFrameworkGone holds that nothing is left of a Framework that is gone.
func (b *book) onFrameworkGone(f *frameworkv1.Framework) {
	account := b.accounts[f.UID]
	account.gone = true
	if account.loose {
		return
	}
	for key, pod := range b.pods {
		if b.accountOf(pod) == account && !b.late[pod.UID] {
			b.wrong("Framework %s is gone while Pod %s is there", f.Name, key)
		}
	}
}

// onStatus holds what must be true of every status that is stored.
func (b *book) onStatus(a *account, before, after *frameworkv1.FrameworkStatus) {
	wrong := func(format string, args ...any) {
		b.wrong("Framework %s: %s:\nbefore %s\nafter  %s", a.framework.Name, fmt.Sprintf(format, args...), brief(before), brief(after))
	}
	checkCounts(after, wrong)
	checkEnds(after, wrong)
	b.checkRecorded(a, after, wrong)
	b.checkNoneRuns(a, after, wrong)
	if before != nil {
		checkProgress(before, after, wrong)
		checkVerdict(a, before, after, wrong)
		b.checkGangTimeouts(a, before, after, wrong)
	}
	if uid := after.AttemptStatus.ConfigMapUID; uid != nil {
		a.recorded[*uid] = true
	}
	for _, task := range tasksOf(after) {
		if uid := task.AttemptStatus.PodUID; uid != nil {
			a.recorded[*uid] = true
		}
	}
}

type complain func(format string, args ...any)

func checkCounts(after *frameworkv1.FrameworkStatus, wrong complain) {
	check := func(who string, attempt int32, retries frameworkv1.RetryPolicyStatus) {
		if attempt != retries.TotalRetriedCount || retries.AccountableRetriedCount > retries.TotalRetriedCount {
			wrong("%s: attempt %d after %d retries, of which %d count", who, attempt, retries.TotalRetriedCount, retries.AccountableRetriedCount)
		}
	}
	check("the Framework", after.AttemptStatus.ID, after.RetryPolicyStatus)
	for _, role := range after.AttemptStatus.TaskRoleStatuses {
		for i, task := range role.TaskStatuses {
			if int(task.Index) != i {
				wrong("task %s[%d] has the index %d", role.Name, i, task.Index)
			}
			check(task.AttemptStatus.PodName, task.AttemptStatus.ID, task.RetryPolicyStatus)
		}
	}
}

// checkEnds holds that the end of an attempt is that of all its tasks.
func checkEnds(after *frameworkv1.FrameworkStatus, wrong complain) {
	over := frameworkRank(after.State) >= frameworkRank(frameworkv1.FrameworkAttemptCompleted)
	for _, task := range tasksOf(after) {
		if over && task.State != frameworkv1.TaskCompleted {
			wrong("task %s goes on", task.AttemptStatus.PodName)
		}
	}
}

// checkRecorded holds that a Pod whose UID is stored is that of the attempt.
func (b *book) checkRecorded(a *account, after *frameworkv1.FrameworkStatus, wrong complain) {
	for _, task := range tasksOf(after) {
		uid := task.AttemptStatus.PodUID
		if uid == nil || a.recorded[*uid] {
			continue
		}
		pod := b.podsByUID[*uid]
		if pod == nil || pod.Name != task.AttemptStatus.PodName ||
			pod.Annotations[frameworkv1.KeyTaskUID] != string(task.InstanceUID) ||
			pod.Annotations[frameworkv1.KeyTaskAttemptID] != strconv.Itoa(int(task.AttemptStatus.ID)) ||
			pod.Annotations[frameworkv1.KeyConfigMapUID] != string(ptr.Deref(after.AttemptStatus.ConfigMapUID, "")) {
			wrong("the Pod %s is recorded, which is another's", *uid)
		}
	}
}

// checkNoneRuns holds guarantees 2 and 4: nothing is there of what is over or does
// not exist. With the checks of every creation, 1 and 3 follow.
func (b *book) checkNoneRuns(a *account, after *frameworkv1.FrameworkStatus, wrong complain) {
	over := after.State == frameworkv1.FrameworkAttemptCompleted || after.State == frameworkv1.FrameworkCompleted
	for key, configMap := range b.configMaps {
		if over && b.accountOf(configMap) == a && metav1.IsControlledBy(configMap, a.framework) && !b.late[configMap.UID] {
			wrong("ConfigMap %s (%s) is there", key, configMap.UID)
		}
	}
	if a.loose {
		return
	}
	for key, pod := range b.pods {
		if b.accountOf(pod) != a || b.late[pod.UID] {
			continue
		}
		task := taskNamed(after, pod.Name)
		if over || task == nil || task.State == frameworkv1.TaskAttemptCompleted || task.State == frameworkv1.TaskCompleted {
			wrong("Pod %s (%s) is there", key, pod.UID)
		}
	}
}

// checkProgress holds that no write goes back, that an end is never changed, and
// that marked tasks stay marked.
func checkProgress(before, after *frameworkv1.FrameworkStatus, wrong complain) {
	attempt, next := &before.AttemptStatus, &after.AttemptStatus
	if !after.StartTime.Equal(&before.StartTime) || after.TransitionTime.Before(&before.TransitionTime) {
		wrong("time goes back")
	}
	if before.State == frameworkv1.FrameworkCompleted && after.State != frameworkv1.FrameworkCompleted {
		wrong("what was completed goes on")
	}
	switch {
	case next.ID < attempt.ID || next.ID > attempt.ID+1:
		wrong("attempts are out of order")
	case next.ID == attempt.ID+1:
		if before.State != frameworkv1.FrameworkAttemptCompleted {
			wrong("an attempt is followed by another before it is over")
		}
		return
	}
	if frameworkRank(after.State) < frameworkRank(before.State) {
		wrong("the Framework's state goes back")
	}
	if attempt.Gang != nil && !apiequality.Semantic.DeepEqual(attempt.Gang, next.Gang) {
		wrong("the attempt becomes a gang, or another one, or none")
	}
	if attempt.ConfigMapUID != nil && !ptr.Equal(attempt.ConfigMapUID, next.ConfigMapUID) {
		wrong("the attempt has another ConfigMap")
	}
	if end := attempt.CompletionStatus; end != nil && !apiequality.Semantic.DeepEqual(end, next.CompletionStatus) {
		wrong("the attempt's end changes")
	}
	begun := before.State != frameworkv1.FrameworkAttemptCreationPending
	tasks := map[types.UID]*frameworkv1.TaskStatus{}
	for _, task := range tasksOf(after) {
		tasks[task.InstanceUID] = task
	}
	for _, task := range tasksOf(before) {
		switch now := tasks[task.InstanceUID]; {
		case now != nil:
			if broken := taskRegress(task, now); broken != "" {
				wrong("task %s: %s", task.AttemptStatus.PodName, broken)
			}
		case begun && (!task.DeletionPending || task.State != frameworkv1.TaskCompleted):
			wrong("task %s is removed before it is deleted", task.AttemptStatus.PodName)
		}
	}
}

// taskRegress says in what a task has gone back, if it has.
func taskRegress(before, after *frameworkv1.TaskStatus) string {
	attempt, next := &before.AttemptStatus, &after.AttemptStatus
	backFromRunning := before.State == frameworkv1.TaskAttemptRunning && after.State == frameworkv1.TaskAttemptPreparing
	switch {
	case before.DeletionPending && !after.DeletionPending:
		return "its mark is gone"
	case before.State == frameworkv1.TaskCompleted && after.State != frameworkv1.TaskCompleted:
		return "it goes on after its end"
	case after.TransitionTime.Before(&before.TransitionTime):
		return "time goes back"
	case next.ID < attempt.ID:
		return "attempts are out of order"
	case next.ID > attempt.ID:
		if before.State != frameworkv1.TaskAttemptCompleted {
			return "an attempt is followed by another before it is over"
		}
		return ""
	case taskRank(after.State) < taskRank(before.State) && !backFromRunning:
		return "its state goes back"
	case attempt.PodUID != nil && !ptr.Equal(attempt.PodUID, next.PodUID):
		return "the attempt has another Pod"
	case attempt.CompletionStatus != nil && !apiequality.Semantic.DeepEqual(attempt.CompletionStatus, next.CompletionStatus):
		return "the attempt's end changes"
	}
	return ""
}

// checkVerdict holds that a verdict of the completion policy counts the tasks that
// the spec with that policy wants, and that its scale was stored before.
func checkVerdict(a *account, before, after *frameworkv1.FrameworkStatus, wrong complain) {
	end := after.AttemptStatus.CompletionStatus
	if before.AttemptStatus.CompletionStatus != nil || before.AttemptStatus.ID != after.AttemptStatus.ID || end == nil || end.Trigger == nil {
		return
	}
	// It was decided by one of the specs since the write before.
	for generation := before.ObservedGeneration; generation <= after.ObservedGeneration; generation++ {
		spec := a.specs[generation]
		if spec == nil {
			continue
		}
		trigger := taskNamed(after, frameworkv1.PodName(a.framework.Name, end.Trigger.TaskRoleName, end.Trigger.TaskIndex))
		if trigger != nil && !trigger.DeletionPending && trigger.State == frameworkv1.TaskCompleted &&
			followsScale(a.framework.Name, spec, before) && followsScale(a.framework.Name, spec, after) && verdictIsDue(spec, after) {
			return
		}
	}
	wrong("%s is not what any spec says", end.Trigger.Message)
}

// verdictIsDue counts anew whether some threshold is reached, or all is over.
func verdictIsDue(spec *frameworkv1.FrameworkSpec, status *frameworkv1.FrameworkStatus) bool {
	all := true
	for _, role := range spec.TaskRoles {
		var failed, succeeded int32
		for _, roleStatus := range status.AttemptStatus.TaskRoleStatuses {
			for _, task := range roleStatus.TaskStatuses {
				switch {
				case roleStatus.Name != role.Name || task.DeletionPending:
				case task.State != frameworkv1.TaskCompleted:
					all = false
				case task.AttemptStatus.CompletionStatus.Code == frameworkv1.CodeSucceeded:
					succeeded++
				default:
					failed++
				}
			}
		}
		policy := role.FrameworkAttemptCompletionPolicy
		if least := policy.FailedThreshold(); least > 0 && failed >= least {
			return true
		}
		if least := policy.SucceededThreshold(); least > 0 && succeeded >= least {
			return true
		}
	}
	return all
}

// followsScale says whether a status has the tasks of a spec, and others only if
// they are marked. A marked one may still hold the place of a wanted one.
func followsScale(framework string, spec *frameworkv1.FrameworkSpec, status *frameworkv1.FrameworkStatus) bool {
	missing := map[string]bool{}
	for _, role := range spec.TaskRoles {
		for index := range role.TaskNumber {
			missing[frameworkv1.PodName(framework, role.Name, index)] = true
		}
	}
	for _, task := range tasksOf(status) {
		if name := task.AttemptStatus.PodName; missing[name] {
			delete(missing, name)
		} else if !task.DeletionPending {
			return false
		}
	}
	return len(missing) == 0
}

func frameworkRank(state frameworkv1.FrameworkState) int {
	return slices.Index([]frameworkv1.FrameworkState{
		frameworkv1.FrameworkAttemptCreationPending, frameworkv1.FrameworkAttemptCreationRequested,
		frameworkv1.FrameworkAttemptPreparing, frameworkv1.FrameworkAttemptRunning,
		frameworkv1.FrameworkAttemptDeletionPending, frameworkv1.FrameworkAttemptDeletionRequested,
		frameworkv1.FrameworkAttemptDeleting, frameworkv1.FrameworkAttemptCompleted, frameworkv1.FrameworkCompleted,
	}, state)
}

func taskRank(state frameworkv1.TaskState) int {
	return slices.Index([]frameworkv1.TaskState{
		frameworkv1.TaskAttemptCreationPending, frameworkv1.TaskAttemptCreationRequested,
		frameworkv1.TaskAttemptPreparing, frameworkv1.TaskAttemptRunning,
		frameworkv1.TaskAttemptDeletionPending, frameworkv1.TaskAttemptDeletionRequested,
		frameworkv1.TaskAttemptDeleting, frameworkv1.TaskAttemptCompleted, frameworkv1.TaskCompleted,
	}, state)
}

// tasksOf are all tasks of a status.
func tasksOf(status *frameworkv1.FrameworkStatus) []*frameworkv1.TaskStatus {
	if status == nil {
		return nil
	}
	var tasks []*frameworkv1.TaskStatus
	for _, role := range status.AttemptStatus.TaskRoleStatuses {
		tasks = append(tasks, role.TaskStatuses...)
	}
	return tasks
}

func taskNamed(status *frameworkv1.FrameworkStatus, podName string) *frameworkv1.TaskStatus {
	for _, task := range tasksOf(status) {
		if task.AttemptStatus.PodName == podName {
			return task
		}
	}
	return nil
}

// taskOfPod is the task whose current attempt a Pod is, nil if there is none.
func taskOfPod(status *frameworkv1.FrameworkStatus, pod *corev1.Pod) *frameworkv1.TaskStatus {
	task := taskNamed(status, pod.Name)
	if task == nil || pod.Annotations[frameworkv1.KeyTaskUID] != string(task.InstanceUID) ||
		pod.Annotations[frameworkv1.KeyTaskAttemptID] != strconv.Itoa(int(task.AttemptStatus.ID)) {
		return nil
	}
	return task
}

// brief is a status in a line.
func brief(status *frameworkv1.FrameworkStatus) string {
	if status == nil {
		return "no status"
	}
	var b strings.Builder
	attempt := &status.AttemptStatus
	fmt.Fprintf(&b, "%s #%d gen=%d", status.State, attempt.ID, status.ObservedGeneration)
	if attempt.Gang != nil && attempt.Gang.Enabled {
		b.WriteString(" gang")
	}
	if group := attempt.PodGroup; group != nil {
		fmt.Fprintf(&b, "(%s)", group.Phase)
	}
	if attempt.ConfigMapUID != nil {
		fmt.Fprintf(&b, " cm=%s", shortUID(*attempt.ConfigMapUID))
	}
	if attempt.CompletionStatus != nil {
		fmt.Fprintf(&b, " code=%d", attempt.CompletionStatus.Code)
	}
	if delay := status.RetryPolicyStatus.RetryDelaySec; delay != nil {
		fmt.Fprintf(&b, " retry in %ds", *delay)
	}
	for _, task := range tasksOf(status) {
		fmt.Fprintf(&b, " [%s #%d %s", task.AttemptStatus.PodName, task.AttemptStatus.ID, strings.TrimPrefix(string(task.State), "Attempt"))
		if uid := task.AttemptStatus.PodUID; uid != nil {
			fmt.Fprintf(&b, " pod=%s", shortUID(*uid))
		}
		if end := task.AttemptStatus.CompletionStatus; end != nil {
			fmt.Fprintf(&b, " code=%d", end.Code)
		}
		if task.DeletionPending {
			b.WriteString(" marked")
		}
		if delay := task.RetryPolicyStatus.RetryDelaySec; delay != nil {
			fmt.Fprintf(&b, " retry in %ds", *delay)
		}
		b.WriteString("]")
	}
	for _, condition := range status.Conditions {
		if condition.Type == frameworkv1.ConditionTasksBlocked && condition.Status == metav1.ConditionTrue {
			fmt.Fprintf(&b, " blocked: %s: %s", condition.Reason, condition.Message)
		}
	}
	return b.String()
}

// shortUID is what differs between UIDs of the server.
func shortUID(uid types.UID) string {
	return strings.TrimLeft(string(uid[max(0, len(uid)-12):]), "0")
}

func briefSpec(spec *frameworkv1.FrameworkSpec) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s", spec.ExecutionType)
	if spec.Gang != nil {
		fmt.Fprintf(&b, " gang of %d", ptr.Deref(spec.Gang.MinMember, 0))
	}
	for _, role := range spec.TaskRoles {
		fmt.Fprintf(&b, " %s×%d", role.Name, role.TaskNumber)
	}
	return b.String()
}
