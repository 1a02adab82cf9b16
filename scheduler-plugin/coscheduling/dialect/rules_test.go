// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"math"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	configv1alpha1 "github.com/lockstep-k8s/lockstep/apis/config/v1alpha1"
)

// said is what a Pod says: labels, annotations, and the UID of its controller.
type said struct {
	labels, annotations map[string]string
	controller          string
}

func (s said) pod() *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", Labels: s.labels, Annotations: s.annotations}}
	if s.controller != "" {
		pod.OwnerReferences = []metav1.OwnerReference{{UID: "bystander"}, {UID: "controller", Controller: ptr.To(true)}}
	}
	return pod
}

func TestGangsWithoutAPodGroup(t *testing.T) {
	type strings = map[string]string
	tests := map[string]struct {
		rule configv1alpha1.GroupingRule
		said said
		// want is the name of the gang, empty for none.
		want    string
		minimum int32
		dialect Dialect
	}{
		"a name in an annotation": {configv1alpha1.RuleAnnotations,
			said{annotations: strings{"scheduling.lockstep.dev/group": "ring", "scheduling.lockstep.dev/min-member": "4"}}, "group/ring", 4, Rules},
		"a name in an annotation, without a minimum": {configv1alpha1.RuleAnnotations,
			said{annotations: strings{"scheduling.lockstep.dev/group": "ring"}}, "group/ring", 1, Rules},
		"a minimum in words": {configv1alpha1.RuleAnnotations,
			said{annotations: strings{"scheduling.lockstep.dev/group": "ring", "scheduling.lockstep.dev/min-member": "four"}}, "group/ring", 1, Rules},
		"a negative minimum": {configv1alpha1.RuleAnnotations,
			said{annotations: strings{"scheduling.lockstep.dev/group": "ring", "scheduling.lockstep.dev/min-member": "-4"}}, "group/ring", 1, Rules},
		"a minimum above all numbers": {configv1alpha1.RuleAnnotations,
			said{annotations: strings{"scheduling.lockstep.dev/group": "ring", "scheduling.lockstep.dev/min-member": "99999999999999999999"}}, "group/ring", math.MaxInt32, Rules},
		"a minimum without a name": {configv1alpha1.RuleAnnotations,
			said{annotations: strings{"scheduling.lockstep.dev/min-member": "4"}}, "", 0, Rules},
		"by its controller": {configv1alpha1.RuleAnnotations,
			said{annotations: strings{"scheduling.lockstep.dev/group-by": "owner", "scheduling.lockstep.dev/min-member": "4"}, controller: "controller"}, "owner/controller", 4, Rules},
		"by its controller, which it does not have": {configv1alpha1.RuleAnnotations,
			said{annotations: strings{"scheduling.lockstep.dev/group-by": "owner"}}, "", 0, Rules},
		"by something else": {configv1alpha1.RuleAnnotations,
			said{annotations: strings{"scheduling.lockstep.dev/group-by": "node"}, controller: "controller"}, "", 0, Rules},

		"a pod group of Kueue": {configv1alpha1.RuleKueuePods,
			said{labels: strings{"kueue.x-k8s.io/pod-group-name": "ring"}, annotations: strings{"kueue.x-k8s.io/pod-group-total-count": "3"}}, "kueue/ring", 3, Rules},
		"a pod group of Kueue whose name is too long for a label": {configv1alpha1.RuleKueuePods,
			said{annotations: strings{"kueue.x-k8s.io/pod-group-name": "ring", "kueue.x-k8s.io/pod-group-total-count": "3"}}, "kueue/ring", 3, Rules},
		"a pod group of Kueue that serves": {configv1alpha1.RuleKueuePods,
			said{labels: strings{"kueue.x-k8s.io/pod-group-name": "web"}, annotations: strings{"kueue.x-k8s.io/pod-group-total-count": "3", "kueue.x-k8s.io/pod-group-serving": "true"}}, "", 0, Rules},
		"a pod group of Kueue that does not serve": {configv1alpha1.RuleKueuePods,
			said{labels: strings{"kueue.x-k8s.io/pod-group-name": "ring"}, annotations: strings{"kueue.x-k8s.io/pod-group-total-count": "3", "kueue.x-k8s.io/pod-group-serving": "false"}}, "kueue/ring", 3, Rules},
		"a pod group of Kueue that is admitted fast": {configv1alpha1.RuleKueuePods,
			said{labels: strings{"kueue.x-k8s.io/pod-group-name": "web"}, annotations: strings{"kueue.x-k8s.io/pod-group-total-count": "3", "kueue.x-k8s.io/pod-group-fast-admission": "true"}}, "", 0, Rules},
		"a Pod in a queue of Kueue": {configv1alpha1.RuleKueuePods,
			said{labels: strings{"kueue.x-k8s.io/queue-name": "queue"}}, "", 0, Rules},

		"the light form": {configv1alpha1.RuleMinAvailable,
			said{labels: strings{"pod-group.scheduling.sigs.k8s.io/name": "ring", "pod-group.scheduling.sigs.k8s.io/min-available": "2"}}, "ring", 2, SchedulerPlugins},
		"the light form without a minimum, which names a PodGroup": {configv1alpha1.RuleMinAvailable,
			said{labels: strings{"pod-group.scheduling.sigs.k8s.io/name": "ring"}}, "", 0, SchedulerPlugins},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			links := &Links{}
			pod := tc.said.pod()
			if key, named := links.KeyOf(pod); named {
				t.Errorf("it is a member of %s, and the rule is off", key)
			}
			links.TurnOnRule(tc.rule)
			key, named := links.KeyOf(pod)
			if named != (tc.want != "") || named && key != (Key{Dialect: tc.dialect, Namespace: "ns", Name: tc.want}) {
				t.Errorf("it is a member of %v, %t, want %q", key, named, tc.want)
			}
			if minimum := links.MinimumBy(pod); minimum != tc.minimum {
				t.Errorf("it says a minimum of %d, want %d", minimum, tc.minimum)
			}
			if links.Awaits(pod) {
				t.Error("it waits for an owner")
			}
			if IsNamedByRule(pod) != named {
				t.Errorf("it may be a member by rule: %t, want %t", IsNamedByRule(pod), named)
			}
		})
	}
}

func TestAPodGroupCountsForMoreThanARule(t *testing.T) {
	links := &Links{}
	links.TurnOnRule(configv1alpha1.RuleKueuePods)
	links.TurnOnRule(configv1alpha1.RuleMinAvailable)
	links.TurnOn(SchedulerPlugins)
	kueue := map[string]string{"kueue.x-k8s.io/pod-group-total-count": "3"}
	for name, tc := range map[string]struct {
		said    said
		want    Key
		minimum int32
	}{
		"a PodGroup of scheduler-plugins, as of Trainer's under Kueue": {
			said{labels: map[string]string{"kueue.x-k8s.io/pod-group-name": "ring", "scheduling.x-k8s.io/pod-group": "job"}, annotations: kueue},
			Key{SchedulerPlugins, "ns", "job"}, 0},
		"a PodGroup of Lockstep's": {
			said{labels: map[string]string{"kueue.x-k8s.io/pod-group-name": "ring", "scheduling.lockstep.dev/pod-group": "job"}, annotations: kueue},
			Key{Own, "ns", "job"}, 0},
		"a PodGroup of another name than that of the light form": {
			said{labels: map[string]string{"scheduling.x-k8s.io/pod-group": "job", "pod-group.scheduling.sigs.k8s.io/name": "ring", "pod-group.scheduling.sigs.k8s.io/min-available": "2"}},
			Key{SchedulerPlugins, "ns", "job"}, 0},
		"none but the light form": {
			said{labels: map[string]string{"pod-group.scheduling.sigs.k8s.io/name": "ring", "pod-group.scheduling.sigs.k8s.io/min-available": "2"}},
			Key{SchedulerPlugins, "ns", "ring"}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			got, _ := links.KeyOf(tc.said.pod())
			if got != tc.want || links.MinimumBy(tc.said.pod()) != tc.minimum {
				t.Errorf("it is a member of %v and says a minimum of %d, want %v and %d", got, links.MinimumBy(tc.said.pod()), tc.want, tc.minimum)
			}
		})
	}
}

// TestTheFirstNameOfAGroupCounts: a Pod that names a group of each kind is a member of Lockstep's, without that of
// Kubernetes' own, and so on. The others are told to be ignored.
func TestTheFirstNameOfAGroupCounts(t *testing.T) {
	links := &Links{}
	for _, d := range []Dialect{Native, SchedulerPlugins, Volcano} {
		links.TurnOn(d)
	}
	links.TurnOnRule(configv1alpha1.RuleAnnotations)
	pod := said{labels: map[string]string{"scheduling.lockstep.dev/pod-group": "g", "scheduling.x-k8s.io/pod-group": "g"},
		annotations: map[string]string{"scheduling.k8s.io/group-name": "g", "scheduling.lockstep.dev/group": "g"}}.pod()
	pod.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: ptr.To("g")}
	all := []Key{{Own, "ns", "g"}, {Native, "ns", "g"}, {SchedulerPlugins, "ns", "g"}, {Volcano, "ns", "g"}, {Rules, "ns", "group/g"}}
	for i, without := range []func(){
		func() { delete(pod.Labels, "scheduling.lockstep.dev/pod-group") },
		func() { pod.Spec.SchedulingGroup = nil },
		func() { delete(pod.Labels, "scheduling.x-k8s.io/pod-group") },
		func() { delete(pod.Annotations, "scheduling.k8s.io/group-name") },
		func() {},
	} {
		if key, _ := links.KeyOf(pod); key != all[i] {
			t.Errorf("a Pod that names %v is a member of %v", all[i:], key)
		}
		if ignored := links.Ignored(pod); !slices.Equal(ignored, all[i+1:]) {
			t.Errorf("of %v it ignores %v, want all but the first", all[i:], ignored)
		}
		without()
	}
}

func TestGangsByOwner(t *testing.T) {
	job := said{labels: map[string]string{"batch.kubernetes.io/controller-uid": "u"}}
	inSet := func(role, key string) said {
		return said{labels: map[string]string{"jobset.sigs.k8s.io/jobset-uid": "u", "jobset.sigs.k8s.io/restart-attempt": "1", "jobset.sigs.k8s.io/replicatedjob-name": role,
			"jobset.sigs.k8s.io/job-key": key, "batch.kubernetes.io/controller-uid": "of-" + key}}
	}
	worker := said{labels: map[string]string{"leaderworkerset.sigs.k8s.io/name": "serve", "leaderworkerset.sigs.k8s.io/group-key": "g", "leaderworkerset.sigs.k8s.io/template-revision-hash": "r"},
		annotations: map[string]string{"leaderworkerset.sigs.k8s.io/size": "4"}}
	const of = `"metadata": {"namespace": "ns", "name": "serve", "uid": "u"}`
	jobs := func(rest string) string {
		return `{"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", ` + of + `, "spec": {"replicatedJobs": [
			{"name": "driver", "template": {"spec": {}}},
			{"name": "worker", "replicas": 2, "template": {"spec": {"parallelism": 4, "completions": 3}}` + rest
	}
	tests := map[string]struct {
		rule    configv1alpha1.GroupingRule
		owner   string
		said    said
		want    string
		minimum int32
	}{
		"a Job":                   {configv1alpha1.RuleJobs, `{"apiVersion": "batch/v1", "kind": "Job", ` + of + `, "spec": {"parallelism": 3}}`, job, "job/u", 3},
		"a Job that says nothing": {configv1alpha1.RuleJobs, `{"apiVersion": "batch/v1", "kind": "Job", ` + of + `, "spec": {}}`, job, "job/u", 1},
		"a Job that runs a few of many at once": {configv1alpha1.RuleJobs,
			`{"apiVersion": "batch/v1", "kind": "Job", ` + of + `, "spec": {"parallelism": 3, "completions": 100}}`, job, "job/u", 3},
		"a Job that needs fewer than may run at once": {configv1alpha1.RuleJobs,
			`{"apiVersion": "batch/v1", "kind": "Job", ` + of + `, "spec": {"parallelism": 3, "completions": 2}}`, job, "job/u", 2},
		"a Job that runs none": {configv1alpha1.RuleJobs, `{"apiVersion": "batch/v1", "kind": "Job", ` + of + `, "spec": {"parallelism": 0}}`, job, "job/u", 1},

		"a JobSet":                               {configv1alpha1.RuleJobSets, jobs(`}]}}`), inSet("worker", "k"), "jobset/u/1", 7},
		"a JobSet whose order is any":            {configv1alpha1.RuleJobSets, jobs(`}], "startupPolicy": {"startupPolicyOrder": "AnyOrder"}}}`), inSet("worker", "k"), "jobset/u/1", 7},
		"a JobSet that starts in order":          {configv1alpha1.RuleJobSets, jobs(`}], "startupPolicy": {"startupPolicyOrder": "InOrder"}}}`), inSet("worker", "k"), "jobset/u/1/k", 3},
		"a JobSet of which one part waits":       {configv1alpha1.RuleJobSets, jobs(`, "dependsOn": [{"name": "driver", "status": "Ready"}]}]}}`), inSet("worker", "k"), "jobset/u/1/k", 3},
		"the part for which the other one waits": {configv1alpha1.RuleJobSets, jobs(`, "dependsOn": [{"name": "driver", "status": "Ready"}]}]}}`), inSet("driver", "d"), "jobset/u/1/d", 1},
		"a JobSet that makes no sense":           {configv1alpha1.RuleJobSets, `{"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", ` + of + `, "spec": {"replicatedJobs": ["many"]}}`, inSet("worker", "k"), "jobset/u/1", 1},
		"a JobSet above all numbers": {configv1alpha1.RuleJobSets, `{"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", ` + of + `, "spec": {"replicatedJobs": [
			{"name": "a", "replicas": 99999999999, "template": {"spec": {"parallelism": 99999999999}}}, {"name": "b", "replicas": 99999999999, "template": {"spec": {"parallelism": 99999999999}}}]}}`,
			inSet("a", "k"), "jobset/u/1", math.MaxInt32},

		"a LeaderWorkerSet": {configv1alpha1.RuleLeaderWorkerSets, `{"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", ` + of + `, "spec": {"startupPolicy": "LeaderCreated"}}`,
			worker, "lws/g/r", 4},
		"a LeaderWorkerSet whose workers wait for the leader": {configv1alpha1.RuleLeaderWorkerSets,
			`{"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", ` + of + `, "spec": {"startupPolicy": "LeaderReady"}}`, worker, "", 0},
		"a LeaderWorkerSet whose workers go where the leader is": {configv1alpha1.RuleLeaderWorkerSets,
			`{"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", "metadata": {"namespace": "ns", "name": "serve", "annotations": {"leaderworkerset.sigs.k8s.io/exclusive-topology": "rack"}}}`,
			worker, "", 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			kinds := OwnerKinds()
			kind := kinds[slices.IndexFunc(kinds, func(k OwnerKind) bool { return k.Rule == tc.rule })]
			owner, pod := object(t, tc.owner), tc.said.pod()
			links := &Links{Owners: &Owners{Allows: func(string) (bool, bool) { return true, true }}}
			links.TurnOnRule(tc.rule)
			if _, named := links.KeyOf(pod); named || !links.Awaits(pod) {
				t.Errorf("before its owner is seen: it is a member: %t, it waits: %t", named, links.Awaits(pod))
			}
			whole := kind.Read(owner)
			kind.Reduce(owner)
			if diff := cmp.Diff(whole, kind.Read(owner), cmp.AllowUnexported(Owner{})); diff != "" {
				t.Errorf("what is left out of it was read (-want, +got):\n%s", diff)
			}
			links.Owners.Set(kind.KeyOf(owner), whole)
			key, named := links.KeyOf(pod)
			if named != (tc.want != "") || named && key.Name != tc.want || links.MinimumBy(pod) != tc.minimum || links.Awaits(pod) {
				t.Errorf("it is a member of %q with a minimum of %d, want %q and %d; it waits: %t", key.Name, links.MinimumBy(pod), tc.want, tc.minimum, links.Awaits(pod))
			}
			if key := kind.KeyOf(owner); !slices.Contains(OwnersNamedBy(pod), key) {
				t.Errorf("the Pod names %v, want %v", OwnersNamedBy(pod), key)
			}
		})
	}
}

// TestOnlyLabelledNamespacesHaveGangsByOwner, and what is one stays one.
func TestOnlyLabelledNamespacesHaveGangsByOwner(t *testing.T) {
	var allowed, known bool
	links := &Links{Owners: &Owners{Allows: func(string) (bool, bool) { return allowed, known }}}
	links.TurnOnRule(configv1alpha1.RuleJobs)
	pod := said{labels: map[string]string{"batch.kubernetes.io/controller-uid": "u"}}.pod()
	key := OwnerKey{Rule: configv1alpha1.RuleJobs, Namespace: "ns", Name: "u"}
	check := func(when string, wantNews, isNews, wantNamed, wantAwaits bool) {
		t.Helper()
		_, named := links.KeyOf(pod)
		if awaits := links.Awaits(pod); isNews != wantNews || named != wantNamed || awaits != wantAwaits {
			t.Errorf("%s: there is news: %t, want %t; it is a member: %t, want %t; it waits: %t, want %t", when, isNews, wantNews, named, wantNamed, awaits, wantAwaits)
		}
	}
	check("the namespace is not seen", false, links.Owners.Set(key, Owner{minimum: 2}), false, true)
	known = true
	check("it has no label", false, links.Owners.Set(key, Owner{minimum: 2}), false, false)
	allowed = true
	check("it has the label now", false, false, false, true)
	check("and the owner is seen", true, links.Owners.Set(key, Owner{minimum: 2}), true, false)
	check("it is seen again", false, links.Owners.Set(key, Owner{minimum: 2}), true, false)
	check("it asks for more", true, links.Owners.Set(key, Owner{minimum: 3}), true, false)
	check("it would not be a gang any more", false, links.Owners.Set(key, Owner{shape: shapeNone}), true, false)
	allowed = false
	check("the label is gone", true, links.Owners.Set(key, Owner{minimum: 4}), true, false)
	if got := links.MinimumBy(pod); got != 4 {
		t.Errorf("the minimum is %d, want 4", got)
	}
	links.Owners.Forget(key)
	check("it is gone", false, false, false, false)
}

// TestAnOwnerThatIsMadeAnewUnderItsNameSaysItselfWhatIsAGang: Pods name a LeaderWorkerSet by that.
func TestAnOwnerThatIsMadeAnewUnderItsNameSaysItselfWhatIsAGang(t *testing.T) {
	allowed := true
	links := &Links{Owners: &Owners{Allows: func(string) (bool, bool) { return allowed, true }}}
	links.TurnOnRule(configv1alpha1.RuleLeaderWorkerSets)
	pod := said{labels: map[string]string{lwsName: "serve", lwsGroup: "g", lwsRevision: "r"}, annotations: map[string]string{lwsSize: "4"}}.pod()
	kind := OwnerKinds()[1]
	for _, life := range []struct {
		uid, policy         string
		wantNews, wantNamed bool
	}{
		{"first", "LeaderReady", true, false},
		{"first", "LeaderCreated", false, false}, // it stays what it was
		{"second", "LeaderCreated", true, true},
		{"second", "LeaderReady", false, true},
		{"third", "LeaderCreated", false, true}, // it is as the one before
		{"fourth", "LeaderReady", true, false},
		{"fifth", "LeaderCreated", true, true},
		{"sixth", "LeaderCreated", true, false}, // the namespace has lost its label
	} {
		allowed = life.uid != "sixth"
		set := object(t, `{"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", "metadata": {"namespace": "ns", "name": "serve", "uid": "`+life.uid+`"}, "spec": {"startupPolicy": "`+life.policy+`"}}`)
		isNews := links.Owners.Set(kind.KeyOf(set), kind.Read(set))
		if _, named := links.KeyOf(pod); isNews != life.wantNews || named != life.wantNamed {
			t.Errorf("the %s one with %s: there is news: %t, want %t; its Pods are a gang: %t, want %t", life.uid, life.policy, isNews, life.wantNews, named, life.wantNamed)
		}
	}
}

func TestAnOwnerOfAnotherNamespaceIsAnotherOne(t *testing.T) {
	links := &Links{Owners: &Owners{Allows: func(string) (bool, bool) { return true, true }}}
	links.TurnOnRule(configv1alpha1.RuleJobs)
	links.Owners.Set(OwnerKey{Rule: configv1alpha1.RuleJobs, Namespace: "theirs", Name: "u"}, Owner{minimum: 2})
	pod := said{labels: map[string]string{"batch.kubernetes.io/controller-uid": "u"}}.pod()
	if _, named := links.KeyOf(pod); named || !links.Awaits(pod) {
		t.Error("a Pod is a member by an owner of another namespace")
	}
}

// TestNoNameIsLongerThanThatOfAnObject, however long an annotation is. It is in messages to others, for which the
// API server has bounds. Two long ones are two gangs.
func TestNoNameIsLongerThanThatOfAnObject(t *testing.T) {
	links := &Links{}
	links.TurnOnRule(configv1alpha1.RuleAnnotations)
	named := func(name string) string {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Annotations: map[string]string{annotationGroup: name}}}
		key, ok := links.KeyOf(pod)
		if !ok {
			t.Fatalf("a Pod with a name of %d bytes is in no gang", len(name))
		}
		return key.Name
	}
	long := strings.Repeat("ä", 100_000)
	if a, b := named(long+"a"), named(long+"b"); len(a) > 253 || a == b || a != named(long+"a") || !utf8.ValidString(a) {
		t.Errorf("two long names are %q and %q, want two of 253 bytes at most", a, b)
	}
	if got := named(strings.Repeat("a", 200)); got != "group/"+strings.Repeat("a", 200) {
		t.Errorf("a name of 200 bytes is %q", got)
	}
}
