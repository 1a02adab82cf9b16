// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeflow

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	kubeflowv1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v1"
	"github.com/lockstep-k8s/lockstep/controller/engine/plan"
	"github.com/lockstep-k8s/lockstep/controller/jobpods"
	"github.com/lockstep-k8s/lockstep/internal/podend"
	"github.com/lockstep-k8s/lockstep/internal/testing/jobworld"
)

// truth is what the world knows better than the controller.
type truth struct {
	foreign map[types.UID]bool
	// specs are those that decisions were made with, by their status.
	specs map[*status]*Job
	// counted are the Pods whose end or going a status has taken into account, since its
	// controller began, and written those of all that were written.
	counted map[*status]map[types.UID]bool
	written map[types.UID]bool
	// lost are the names of objects that a user has deleted, and of objects whose deletion got no reply. The controller takes these
	// objects to be there until the cache shows that they are gone.
	lost map[string]bool
	// least are the fewest replicas of a type since the last write.
	least map[string]int32
}

func newTruth() truth {
	return truth{
		foreign: map[types.UID]bool{}, specs: map[*status]*Job{}, counted: map[*status]map[types.UID]bool{},
		written: map[types.UID]bool{}, lost: map[string]bool{}, least: map[string]int32{},
	}
}

// indexesIn is how many indexes of a type there may be in a life.
const indexesIn = 10

func kindOfJob(j *Job) *kind { return kindOf(j, j.Spec.CreatedAs) }

// recordsOf are what a status remembers, by type.
func (l *life) recordsOf(s *status) map[string]record {
	records := map[string]record{}
	for name, stored := range kindOfJob(l.Owner).statusesOf(s) {
		records[name] = readRecord(stored, indexesIn)
	}
	return records
}

// checkPlan holds that restarts are counted as they were seen, and that the controller looks
// again when a time is up.
func (l *life) checkPlan(seen *view, p plan.Plan[status]) {
	l.T.Helper()
	if p.Status == nil {
		return
	}
	for name, spec := range seen.Owner.Spec.Replicas {
		if least, known := l.truth.least[name]; !known || replicasOf(&spec) < least {
			l.truth.least[name] = replicasOf(&spec)
		}
	}
	if l.truth.specs[p.Status] == nil { // The write may have failed, and the user changed the spec since.
		l.truth.specs[p.Status] = seen.Owner
	}
	l.checkCounts(seen, p.Status)
	policy := seen.Owner.Spec.RunPolicy
	begun := p.Status.StartTime != nil && !isFinished(p.Status) && !is(p.Status, kubeflowv1.JobConditionSuspended)
	outdated := slices.ContainsFunc(p.Actions, func(a plan.Action) bool { return a.Verb == plan.CheckStatus }) && p.Persist == plan.PersistNone
	if d := policy.ActiveDeadlineSeconds; d != nil && begun && seen.Owner.DeletionTimestamp == nil && !outdated && seen.Owner.Spec.CreatedAs == "" {
		if due := p.Status.StartTime.Add(time.Duration(*d) * time.Second); p.WakeAt.IsZero() || p.WakeAt.After(due) {
			l.T.Errorf("it looks again at %v, its deadline is at %v: %s", p.WakeAt, due, transcript(p.Status))
		}
	}
}

// checkCounts holds that a plan counts of each Pod, when it ends or goes, what the controller
// has seen of it, and notes which Pods it has counted.
func (l *life) checkCounts(seen *view, after *status) {
	l.T.Helper()
	if _, known := l.truth.counted[after]; known {
		return
	}
	before := seen.Status
	counted := map[types.UID]bool{}
	l.truth.counted[after] = counted
	if before == nil {
		return
	}
	maps.Copy(counted, l.truth.counted[before])
	if before.Starts != after.Starts || is(after, kubeflowv1.JobConditionSuspended) || isFinished(before) {
		return
	}
	k := kindOfJob(seen.Owner)
	was, now := l.recordsOf(before), l.recordsOf(after)
	for name, is := range now {
		want := was[name].restarts
		for index := range int32(indexesIn) {
			old := was[name]
			accounted := is.restarting.Has(index) && !old.restarting.Has(index) || is.ended(index) && !old.ended(index)
			if !accounted {
				continue
			}
			pod, _ := seen.Objects[keyOf(k.objectName(seen.Owner, name, index))].(*corev1.Pod)
			if pod == nil {
				l.T.Errorf("%s %d is accounted for without a Pod: %s", name, index, transcript(after))
				continue
			}
			if old.ended(index) {
				continue // It was counted when it ended, and is scaled away.
			}
			counted[pod.UID] = true
			if spec, ok := seen.Owner.Spec.Replicas[name]; ok && (policyOf(seen.Owner, &spec) != kubeflowv1.RestartNever || name == kubeflowv1.ReplicaLauncher) {
				want += jobpods.Restarts(pod)
				if is.restarting.Has(index) && pod.Status.Phase == corev1.PodFailed && index < replicasOf(&spec) && jobpods.EndedForGood(pod) {
					want += failuresOf(podend.Of(pod))
				}
			}
		}
		if is.restarts != want {
			l.T.Errorf("restarts of %s are %d, want %d:\nbefore %s\nafter  %s", name, is.restarts, want, transcript(before), transcript(after))
		}
	}
}

// policyOf is what becomes of Pods that fail.
func policyOf(job *Job, spec *kubeflowv1.ReplicaSpec) kubeflowv1.RestartPolicy {
	if job.Spec.CreatedAs == "" {
		return spec.RestartPolicy
	}
	template, err := jobpods.DecodeTemplate(spec.Template.Raw)
	if err != nil {
		return ""
	}
	return kubeflowv1.RestartPolicy(template.Spec.RestartPolicy)
}

// checkWrite holds what must be true of every status that anyone can see.
func (l *life) checkWrite(before, after *status) {
	l.T.Helper()
	l.log("write %s", transcript(after))
	fail := func(what string) {
		l.T.Helper()
		l.T.Errorf("%s:\nbefore %s\nafter  %s", what, transcript(before), transcript(after))
	}
	if before == nil {
		before = &status{}
	}
	for uid := range l.truth.counted[after] {
		if !l.truth.counted[before][uid] && l.truth.written[uid] {
			fail("a Pod is counted twice, " + string(uid))
		}
		l.truth.written[uid] = true
	}
	l.checkConditions(before, after, fail)
	begun, isFirst := after.Starts != before.Starts, isBlank(before) // Before the first write, a job may be suspended and resumed.
	if begun && !isFirst && after.Starts != before.Starts+1 || !begun && !before.StartTime.Equal(after.StartTime) {
		fail("the starts are wrong, or startTime")
	}
	ended := after.Phase == kubeflowv1.JobSucceeded || after.Phase == kubeflowv1.JobFailed
	if l.Owner.Spec.CreatedAs == "" {
		ended = is(after, kubeflowv1.JobConditionSucceeded) || is(after, kubeflowv1.JobConditionFailed)
	}
	if ended != (after.CompletionTime != nil) {
		fail("completionTime is wrong")
	}
	if isFinished(before) && (after.Phase != before.Phase || !apiequality.Semantic.DeepEqual(before.Conditions, after.Conditions) || begun) {
		fail("what has ended goes on")
	}
	if !begun && !is(after, kubeflowv1.JobConditionSuspended) {
		l.checkRecords(before, after, fail)
	}
	if isFinished(after) && !isFinished(before) {
		l.checkOutcome(after, fail)
	}
	for name, s := range kindOfJob(l.Owner).statusesOf(after) {
		if s.Active < 0 || s.Succeeded < 0 || s.Failed < 0 || s.Active+s.Succeeded+s.Failed > indexesIn {
			fail("counts of " + name)
		}
	}
	clear(l.truth.least)
}

// checkConditions holds the rules of the list.
func (l *life) checkConditions(before, after *status, fail func(string)) {
	l.T.Helper()
	if is(after, kubeflowv1.JobConditionSucceeded) && is(after, kubeflowv1.JobConditionFailed) {
		fail("it has succeeded and failed")
	}
	designed := l.Owner.Spec.CreatedAs != ""
	if !designed && condition(after, kubeflowv1.JobConditionRunning) != nil && condition(after, kubeflowv1.JobConditionRestarting) != nil &&
		is(after, kubeflowv1.JobConditionRunning) && is(after, kubeflowv1.JobConditionRestarting) {
		fail("it runs and restarts")
	}
	seen := map[kubeflowv1.JobConditionType]bool{}
	var changedAt metav1.Time // of the last that has changed; zero for none
	for _, c := range after.Conditions {
		if seen[c.Type] {
			fail("a condition twice, " + string(c.Type))
		}
		seen[c.Type] = true
		old := condition(before, c.Type)
		changed := old == nil || old.Status != c.Status || old.Reason != c.Reason
		switch {
		case !changed && (!old.LastTransitionTime.Equal(&c.LastTransitionTime) || !old.LastUpdateTime.Equal(&c.LastUpdateTime)):
			// It may have changed and changed back, in steps that were not written.
			changedAt = c.LastUpdateTime
		case !changed && c.LastUpdateTime.Before(&changedAt) && !isFinished(after):
			fail("what has changed is not the last, before " + string(c.Type))
		case changed:
			changedAt = c.LastUpdateTime
		}
	}
	if !designed && len(after.Conditions) > 0 && !seen[kubeflowv1.JobConditionCreated] {
		fail("nobody has created it")
	}
}

// checkRecords holds that what has ended stays ended, as long as the start goes on and
// nothing is scaled away.
func (l *life) checkRecords(before, after *status, fail func(string)) {
	l.T.Helper()
	now := l.recordsOf(after)
	for name, was := range l.recordsOf(before) {
		is, kept := now[name]
		least, asked := l.truth.least[name]
		for index := range int32(indexesIn) {
			if is.completed.Has(index) && is.failed.Has(index) || is.ended(index) && is.restarting.Has(index) {
				fail("an index is two things: " + name + " " + strconv.Itoa(int(index)))
			}
			if was.ended(index) && (!kept || !is.ended(index)) && asked && index < least {
				fail("an index that had ended has not: " + name + " " + strconv.Itoa(int(index)))
			}
		}
		if kept && is.restarts < was.restarts {
			fail("restarts are forgotten")
		}
	}
}

// checkOutcome holds that a job ends for a reason that its records show.
func (l *life) checkOutcome(after *status, fail func(string)) {
	l.T.Helper()
	spec := l.truth.specs[after]
	if spec == nil {
		return
	}
	k, records := kindOfJob(spec), l.recordsOf(after)
	completed, failed, all, lacking := int32(0), int32(0), int32(0), map[string]int32{}
	for name, s := range spec.Spec.Replicas {
		r, ok := records[name]
		all += replicasOf(&s)
		lacking[name] = replicasOf(&s)
		if ok {
			completed, failed = completed+r.completed.Count(), failed+r.failed.Count()
			lacking[name] -= r.completed.Count()
		}
	}
	switch {
	case after.Phase == kubeflowv1.JobFailed && failed == 0 && !endedByLimit(after):
		fail("it fails for nothing")
	case k.launches && after.Phase == kubeflowv1.JobFailed:
		launcher := records[kubeflowv1.ReplicaLauncher]
		if reason := condition(after, kubeflowv1.JobConditionFailed).Reason; launcher.failed.Count() == 0 && reason != "MPIJobEvicted" && !endedByLimit(after) {
			fail("it fails for what workers did")
		}
	case after.Phase == kubeflowv1.JobFailed:
		if k.designed && completed+failed != all {
			fail("it fails before all have ended")
		}
	case k.designed && completed != all:
		fail("it succeeds before all have")
	case !k.designed && completed == 0:
		fail("it succeeds with nobody")
	case !k.designed && slices.ContainsFunc(k.leaders, func(t string) bool { return lacking[t] > 0 }):
		fail("it succeeds without the one that leads")
	case k == tfJob && spec.Spec.SuccessPolicy == kubeflowv1.SuccessPolicyAllWorkers && lacking[kubeflowv1.ReplicaWorker] > 0 &&
		!slices.ContainsFunc(k.leaders, func(t string) bool { _, there := spec.Spec.Replicas[t]; return there }):
		fail("it succeeds without all workers")
	case (k == jaxJob || k == paddleJob && !slices.ContainsFunc(k.leaders, func(t string) bool { _, there := spec.Spec.Replicas[t]; return there })) &&
		lacking[kubeflowv1.ReplicaWorker] > 0:
		fail("it succeeds without all its workers")
	}
}

// checkAction holds that an action rests on what the API server has. The world has already
// done it.
func (l *life) checkAction(action plan.Action) {
	l.T.Helper()
	l.log("do    %s", action)
	fail := func(what string) {
		l.T.Helper()
		l.T.Errorf("%s: %s while %s is persisted", what, action, transcript(l.Written))
	}
	switch action.Verb {
	case plan.Delete, plan.Update:
		if action.UID == "" {
			fail("it does not say which")
		}
		if l.truth.foreign[action.UID] {
			fail("it is somebody else's")
		}
	}
	switch {
	case action.Verb == plan.Create && action.Kind == KindPod:
		l.checkCreation(action, fail)
	case action.Verb == plan.Delete && action.Kind == l.Owner.Kind:
		ttl := l.Owner.Spec.RunPolicy.TTLSecondsAfterFinished
		if ttl == nil || !isFinished(l.Written) || l.Now.Before(l.Written.CompletionTime.Add(time.Duration(*ttl)*time.Second)) {
			fail("the job is deleted too early")
		}
	}
}

// checkCreation holds that a Pod is made for the start that is persisted, when none of another
// is left, and for an index that has not ended and whose last Pod is not about to go.
func (l *life) checkCreation(action plan.Action, fail func(string)) {
	l.T.Helper()
	pod := l.Pod(action.Name)
	if pod == nil || l.truth.foreign[pod.UID] || pod.ResourceVersion != strconv.Itoa(l.Version()) {
		return // It was there.
	}
	if isFinished(l.Written) || is(l.Written, kubeflowv1.JobConditionSuspended) {
		fail("a Pod is made of a job that has ended, or is suspended")
	}
	if startOf(pod) != l.Written.Starts {
		fail("a Pod is made for another start")
	}
	for _, name := range l.OwnPods() {
		if startOf(l.Pod(name)) != l.Written.Starts {
			fail("Pod " + name + " of another start is beside it")
		}
		if l.Pod(name).Spec.Subdomain != pod.Spec.Subdomain {
			fail("it finds Pod " + name + " under another name than that does")
		}
	}
	service := pod.Name
	if pod.Spec.Subdomain != "" {
		service = pod.Spec.Subdomain
	}
	if l.Objects[jobworld.Key{Kind: KindService, Name: service}] == nil && !l.truth.lost[service] {
		fail("Service " + service + " is not there before it")
	}
	if config := listConfigOf(pod); config != "" && l.Objects[jobworld.Key{Kind: KindConfigMap, Name: config}] == nil && !l.truth.lost[config] {
		fail("ConfigMap " + config + " is not there before it")
	}
	name, index := l.placeOf(pod)
	r := l.recordsOf(l.Written)[name]
	if r.ended(index) || r.restarting.Has(index) {
		fail("its index has ended, or its last Pod is counted")
	}
}

// checkDeletion holds that a Pod that is about to be deleted goes for a reason: it is counted, the
// job is suspended, of another start, or has ended.
func (l *life) checkDeletion(action plan.Action) {
	l.T.Helper()
	pod := l.Pod(action.Name)
	if action.Verb != plan.Delete || action.Kind != KindPod || pod == nil || pod.UID != action.UID {
		return
	}
	if action.Version != "" && action.Version != pod.ResourceVersion {
		return // The API server will not do it.
	}
	name, index := l.placeOf(pod)
	r := l.recordsOf(l.Written)[name]
	policy := kubeflowv1.CleanPodPolicyNone
	if p := l.Owner.Spec.RunPolicy.CleanPodPolicy; p != nil {
		policy = *p
	}
	switch {
	case r.ended(index) && !jobpods.HasEnded(pod):
	case startOf(pod) != l.Written.Starts, is(l.Written, kubeflowv1.JobConditionSuspended):
	case pod.Spec.NodeName == "" && isFinished(l.Written) && (endedByLimit(l.Written) || action.Name == "j-launcher"):
	case isFinished(l.Written) && policy != kubeflowv1.CleanPodPolicyNone && l.Owner.Spec.CreatedAs == "":
	case !isFinished(l.Written) && r.restarting.Has(index):
	default:
		l.T.Errorf("nothing asks for it: %s while %s is persisted", action, transcript(l.Written))
	}
}

// endedByLimit says whether a limit has ended a job.
func endedByLimit(s *status) bool {
	failed := condition(s, kubeflowv1.JobConditionFailed)
	return failed != nil && strings.HasPrefix(failed.Message, limitReached)
}

// placeOf is the type and the index of a Pod.
func (l *life) placeOf(pod *corev1.Pod) (string, int32) {
	return kindOfJob(l.Owner).placeNamed(l.Owner, pod.Name)
}

// checkEnd holds that a job that is left alone comes to its end, and that of it stays what its
// cleanPodPolicy says.
func (l *life) checkEnd() {
	l.T.Helper()
	if l.Gone {
		return
	}
	if !isFinished(l.Written) {
		l.T.Errorf("after peace the job is %s", transcript(l.Written))
		return
	}
	if l.Owner.Spec.CreatedAs != "" {
		return
	}
	if policy := l.Owner.Spec.RunPolicy; policy.TTLSecondsAfterFinished != nil {
		l.T.Errorf("the job is still there: %s", transcript(l.Written))
	} else if kindOfJob(l.Owner).launches && *policy.CleanPodPolicy == kubeflowv1.CleanPodPolicyAll {
		if pods := l.OwnPods(); len(pods) > 1 || len(pods) == 1 && pods[0] != "j-launcher" {
			l.T.Errorf("Pods %v are left, want no worker", pods)
		}
	} else if *policy.CleanPodPolicy == kubeflowv1.CleanPodPolicyAll && len(l.OwnPods())+len(l.Names(KindService)) > 0 {
		l.T.Errorf("Pods %v and Services %v are left", l.OwnPods(), l.Names(KindService))
	}
	for _, kind := range []string{KindPodGroup, KindAutoscaler} {
		if names := l.Names(kind); len(names) > 0 {
			l.T.Errorf("%s %v is left: %s", kind, names, transcript(l.Written))
		}
	}
}
