// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package implicit

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/podgroup"
)

const (
	gang   = schedulingv1alpha1.PolicyGang
	basic  = schedulingv1alpha1.PolicyBasic
	perJob = schedulingv1alpha1.PolicyGangPerJob
)

// object makes an owner from JSON.
func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	owner := &unstructured.Unstructured{}
	if err := owner.UnmarshalJSON([]byte(text)); err != nil {
		t.Fatal(err)
	}
	return owner
}

// podWith makes a Pod with labels.
func podWith(name string, labels map[string]string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Labels: labels}}
}

// Pods as Kubernetes, JobSet and LeaderWorkerSet make them.
func podOfJob(name string) *corev1.Pod {
	return podWith(name, map[string]string{"batch.kubernetes.io/controller-uid": "u"})
}

func podOfSet(name, role, job string) *corev1.Pod {
	return podWith(name, map[string]string{"jobset.sigs.k8s.io/jobset-uid": "u", "jobset.sigs.k8s.io/restart-attempt": "1", "jobset.sigs.k8s.io/replicatedjob-name": role,
		"jobset.sigs.k8s.io/job-key": job, "batch.kubernetes.io/controller-uid": "of-" + job})
}

func podOfReplica(name, size string) *corev1.Pod {
	pod := podWith(name, map[string]string{"leaderworkerset.sigs.k8s.io/name": "serve", "leaderworkerset.sigs.k8s.io/group-key": "g", "leaderworkerset.sigs.k8s.io/template-revision-hash": "r"})
	pod.Annotations = map[string]string{"leaderworkerset.sigs.k8s.io/size": size}
	return pod
}

// of is the metadata of owners.
const of = `"metadata": {"namespace": "ns", "name": "serve", "uid": "u"}`

// situationOf is that of some Pods with an owner, in a namespace that asks for PodGroups.
func situationOf(t *testing.T, owner *unstructured.Unstructured, perJob bool, pods ...*corev1.Pod) situation {
	t.Helper()
	s := situation{asks: true, owner: owner, pods: pods, pod: pods[0]}
	first, ofItsJob := podgroup.ImplicitOf(s.pod)
	if s.implicit = first; perJob {
		s.implicit = ofItsJob
		s.whole = made(t, situationOf(t, owner, false, pods...))
	}
	s.name = s.implicit.Name(s.pod)
	return s
}

// made is the PodGroup that is made in a situation.
func made(t *testing.T, s situation) *schedulingv1alpha1.PodGroup {
	t.Helper()
	next := decide(s)
	if next.create == nil {
		t.Fatalf("no PodGroup is made: %+v", next)
	}
	next.create.UID = "group"
	return next.create
}

// TestWhatOwnersWant: how many of their Pods are placed together, if they are.
func TestWhatOwnersWant(t *testing.T) {
	job := func(spec string) string {
		return `{"apiVersion": "batch/v1", "kind": "Job", ` + of + `, "spec": ` + spec + `}`
	}
	set := func(rest string) string {
		return `{"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", ` + of + `, "spec": {"replicatedJobs": [
			{"name": "driver", "template": {"spec": {}}},
			{"name": "worker", "replicas": 2, "template": {"spec": {"parallelism": 4, "completions": 3}}` + rest
	}
	lws := func(annotation, spec string) string {
		return `{"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", "metadata": {"namespace": "ns", "name": "serve", "uid": "u", "annotations": {` + annotation + `}}, "spec": ` + spec + `}`
	}
	const inOrder, waits = `}], "startupPolicy": {"startupPolicyOrder": "InOrder"}}}`, `, "dependsOn": [{"name": "driver", "status": "Ready"}]}]}}`
	worker, driver, leader := podOfSet("w", "worker", "k"), podOfSet("d", "driver", "d"), podOfReplica("l", "4")
	for name, tc := range map[string]struct {
		owner   string
		pod     *corev1.Pod
		ofJob   bool
		want    string
		minimum int32
		policy  schedulingv1alpha1.SchedulingPolicy
	}{
		"a Job":                                       {job(`{"parallelism": 3}`), podOfJob("a"), false, "job-u", 3, gang},
		"a Job that says nothing":                     {job(`{}`), podOfJob("a"), false, "job-u", 1, gang},
		"a Job that runs a few of many at once":       {job(`{"parallelism": 3, "completions": 100}`), podOfJob("a"), false, "job-u", 3, gang},
		"a Job that needs fewer than may run at once": {job(`{"parallelism": 3, "completions": 2}`), podOfJob("a"), false, "job-u", 2, gang},
		"a Job that runs none":                        {job(`{"parallelism": 0}`), podOfJob("a"), false, "job-u", 1, gang},

		"a JobSet":                          {set(`}]}}`), worker, false, "jobset-u-1", 7, gang},
		"a JobSet whose order is any":       {set(`}], "startupPolicy": {"startupPolicyOrder": "AnyOrder"}}}`), worker, false, "jobset-u-1", 7, gang},
		"a JobSet that starts in order":     {set(inOrder), worker, false, "jobset-u-1", 1, perJob},
		"a Job of it":                       {set(inOrder), worker, true, "jobset-u-1-k", 3, gang},
		"a JobSet of which one part waits":  {set(waits), worker, false, "jobset-u-1", 1, perJob},
		"the part that waits":               {set(waits), worker, true, "jobset-u-1-k", 3, gang},
		"the part for which it waits":       {set(waits), driver, true, "jobset-u-1-d", 1, gang},
		"a Job of a role that is not there": {set(inOrder), podOfSet("x", "x", "x"), true, "jobset-u-1-x", 1, gang},
		"a JobSet that makes no sense":      {`{"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", ` + of + `, "spec": {"replicatedJobs": ["many"]}}`, worker, false, "jobset-u-1", 1, gang},
		"a JobSet above all numbers": {`{"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", ` + of + `, "spec": {"replicatedJobs": [
			{"name": "a", "replicas": 99999999999, "template": {"spec": {"parallelism": 99999999999}}}, {"name": "b", "replicas": 99999999999, "template": {"spec": {"parallelism": 99999999999}}}]}}`,
			worker, false, "jobset-u-1", math.MaxInt32, gang},

		"a LeaderWorkerSet": {lws("", `{"startupPolicy": "LeaderCreated"}`), leader, false, "lws-g-r", 4, gang},
		"a LeaderWorkerSet whose Pods do not say how many":       {lws("", `{}`), podOfReplica("l", "four"), false, "lws-g-r", 1, gang},
		"a LeaderWorkerSet whose workers wait for the leader":    {lws("", `{"startupPolicy": "LeaderReady"}`), leader, false, "lws-g-r", 1, basic},
		"a LeaderWorkerSet whose workers go where the leader is": {lws(`"leaderworkerset.sigs.k8s.io/exclusive-topology": "rack"`, `{}`), leader, false, "lws-g-r", 1, basic},
		"a LeaderWorkerSet whose subgroups each have a domain":   {lws(`"leaderworkerset.sigs.k8s.io/subgroup-exclusive-topology": "rack"`, `{}`), leader, false, "lws-g-r", 1, basic},
	} {
		t.Run(name, func(t *testing.T) {
			owner := object(t, tc.owner)
			s := situationOf(t, owner, tc.ofJob, tc.pod)
			group := made(t, s)
			if group.Name != tc.want || group.Spec.MinMember != tc.minimum || group.Spec.SchedulingPolicy != tc.policy {
				t.Errorf("the PodGroup %s asks for %d members and the policy %s, want %s, %d and %s", group.Name, group.Spec.MinMember, group.Spec.SchedulingPolicy, tc.want, tc.minimum, tc.policy)
			}
			if !podgroup.IsMember(group, tc.pod) || !metav1.IsControlledBy(group, owner) {
				t.Errorf("the Pod is no member of %+v, or its owner does not control it", group)
			}
			reduce(owner)
			if diff := cmp.Diff(group.Spec, made(t, s).Spec); diff != "" {
				t.Errorf("what is left out of the owner is read (-want, +got):\n%s", diff)
			}
			stripped, _ := strip(tc.pod)
			s.pods, s.pod = []*corev1.Pod{stripped.(*corev1.Pod)}, stripped.(*corev1.Pod)
			if diff := cmp.Diff(group.Spec, made(t, s).Spec); diff != "" {
				t.Errorf("what is left out of the Pod is read (-want, +got):\n%s", diff)
			}
			s.group = group
			if next := decide(s); next != (step{}) {
				t.Errorf("once it is there, this is done: %+v", next)
			}
		})
	}
}

// TestWhatIsDoneAboutAPodGroup that is there, or is not.
func TestWhatIsDoneAboutAPodGroup(t *testing.T) {
	job := func(parallelism int, uid string) *unstructured.Unstructured {
		spec, err := json.Marshal(map[string]any{"parallelism": parallelism})
		if err != nil {
			t.Fatal(err)
		}
		return object(t, `{"apiVersion": "batch/v1", "kind": "Job", "metadata": {"namespace": "ns", "name": "job", "uid": "`+uid+`"}, "spec": `+string(spec)+`}`)
	}
	now := metav1.Now()
	remove := step{remove: true, uid: "group"}
	for name, tc := range map[string]struct {
		change func(s *situation)
		want   step
	}{
		"nothing has changed":                  {func(*situation) {}, step{}},
		"the Job is to run more Pods at once":  {func(s *situation) { s.owner = job(5, "u") }, step{minMember: 5, uid: "group"}},
		"the namespace asks for it no more":    {func(s *situation) { s.asks = false }, step{}},
		"the same, and the Job changes":        {func(s *situation) { s.asks, s.owner = false, job(2, "u") }, step{minMember: 2, uid: "group"}},
		"no Pod is left":                       {func(s *situation) { s.pods, s.pod, s.implicit, s.owner = nil, nil, nil, nil }, remove},
		"the owner was recreated":              {func(s *situation) { s.owner = job(4, "another") }, remove},
		"the owner is not seen":                {func(s *situation) { s.owner = nil }, step{}},
		"the owner is being deleted":           {func(s *situation) { s.owner.SetDeletionTimestamp(&now) }, step{}},
		"it is being deleted":                  {func(s *situation) { s.group.DeletionTimestamp, s.owner = &now, job(5, "u") }, step{}},
		"somebody else has made it":            {func(s *situation) { s.group.Labels, s.owner = nil, job(5, "u") }, step{}},
		"somebody else has made it for no Pod": {func(s *situation) { s.group.Spec.MemberLabels, s.pods, s.pod = nil, nil, nil }, step{}},
		"it says that its Pods are no gang": {func(s *situation) {
			s.group.Spec.SchedulingPolicy, s.owner = basic, job(5, "u")
		}, step{}},
		"there is none, and no Pod":                             {func(s *situation) { s.group, s.pods, s.pod, s.implicit, s.owner = nil, nil, nil, nil, nil }, step{}},
		"there is none, and the owner is not seen":              {func(s *situation) { s.group, s.owner = nil, nil }, step{}},
		"there is none, and the owner is being deleted":         {func(s *situation) { s.group = nil; s.owner.SetDeletionTimestamp(&now) }, step{}},
		"there is none, and all Pods have ended":                {func(s *situation) { s.group, s.pod.Status.Phase = nil, corev1.PodSucceeded }, step{}},
		"there is none, and the namespace does not ask for one": {func(s *situation) { s.group, s.asks = nil, false }, step{}},
	} {
		t.Run(name, func(t *testing.T) {
			s := situationOf(t, job(4, "u"), false, podOfJob("a"))
			s.group = made(t, s)
			tc.change(&s)
			if next := decide(s); next != tc.want {
				t.Errorf("this is done: %+v, want %+v", next, tc.want)
			}
		})
	}
}

// TestTheJobsOfAJobSetFollowWhatWasDecidedForIt, also when the namespace asks for nothing any more, or the JobSet says
// something else by now.
func TestTheJobsOfAJobSetFollowWhatWasDecidedForIt(t *testing.T) {
	set := func(order string) *unstructured.Unstructured {
		return object(t, `{"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", `+of+`, "spec": {"startupPolicy": {"startupPolicyOrder": "`+order+`"},
			"replicatedJobs": [{"name": "worker", "template": {"spec": {"parallelism": 2}}}]}}`)
	}
	s := situationOf(t, set("InOrder"), true, podOfSet("w", "worker", "k"))
	s.asks, s.owner = false, set("AnyOrder")
	if group := made(t, s); group.Spec.MinMember != 2 {
		t.Errorf("the group of the Job asks for %d, want 2", group.Spec.MinMember)
	}
	whole := s.whole
	s.asks, s.whole = true, nil
	if next := decide(s); next != (step{}) {
		t.Errorf("before anything is decided for the JobSet, this is done: %+v", next)
	}
	s.whole = whole.DeepCopy()
	s.whole.Spec.SchedulingPolicy = gang
	if next := decide(s); next != (step{}) {
		t.Errorf("beside a group of the whole JobSet, this is done: %+v", next)
	}
}

func TestThePodGroupOfAJobHasItsEstimate(t *testing.T) {
	for name, test := range map[string]struct {
		job  string
		want int32 // 0 is none.
	}{
		"nothing is known":          {`{` + of + `, "spec": {}}`, 0},
		"its deadline":              {`{` + of + `, "spec": {"activeDeadlineSeconds": 600}}`, 600},
		"its annotation":            {`{"metadata": {"namespace": "ns", "name": "serve", "uid": "u", "annotations": {"scheduling.lockstep.dev/expected-runtime-seconds": "60"}}, "spec": {"activeDeadlineSeconds": 600}}`, 60},
		"an estimate above it":      {`{"metadata": {"namespace": "ns", "name": "serve", "uid": "u", "annotations": {"scheduling.lockstep.dev/expected-runtime-seconds": "900"}}, "spec": {"activeDeadlineSeconds": 600}}`, 600},
		"a deadline of ten decades": {`{` + of + `, "spec": {"activeDeadlineSeconds": 9999999999}}`, 0},
	} {
		t.Run(name, func(t *testing.T) {
			job := object(t, `{"apiVersion": "batch/v1", "kind": "Job", `+test.job[1:])
			group := made(t, situationOf(t, job, false, podOfJob("a")))
			if got := ptr.Deref(group.Spec.ExpectedRuntimeSeconds, 0); got != test.want || group.Spec.MaxRuntimeSeconds != nil {
				t.Errorf("estimate %d and limit %v, want %d and none", got, group.Spec.MaxRuntimeSeconds, test.want)
			}
		})
	}
}
