// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"math"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

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
			if named && !links.MayBeMember(pod) {
				t.Error("it may be no member")
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
