// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	configv1alpha1 "github.com/lockstep-k8s/lockstep/apis/config/v1alpha1"
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/podgroup"
)

// Pods as Kubernetes and JobSet make them.
var (
	ofJob    = said{labels: map[string]string{"batch.kubernetes.io/controller-uid": "u"}}.pod()
	ofJobSet = said{labels: map[string]string{"jobset.sigs.k8s.io/jobset-uid": "s", "jobset.sigs.k8s.io/restart-attempt": "1", "jobset.sigs.k8s.io/job-key": "k",
		"batch.kubernetes.io/controller-uid": "u"}}.pod()
)

// asking makes Links of rules in namespaces that ask for PodGroups or not.
func asking(asks *bool, rules ...configv1alpha1.GroupingRule) *Links {
	links := &Links{Asks: func(string) bool { return *asks }}
	for _, rule := range rules {
		links.TurnOnRule(rule)
	}
	return links
}

// implicitGroup makes a PodGroup as lockstep-controller makes it for a Pod of a Job or JobSet.
func implicitGroup(pod *corev1.Pod, policy schedulingv1alpha1.SchedulingPolicy) *Group {
	first, _ := podgroup.ImplicitOf(pod)
	return &Group{Key: Key{Namespace: "ns", Name: first.Name(pod)}, MemberLabels: first.MemberLabels(pod), Policy: policy}
}

// TestAPodNamesTheGroupOfItsOwnerBeforeThereIsOne, where a rule is on and the namespace asks for it.
func TestAPodNamesTheGroupOfItsOwnerBeforeThereIsOne(t *testing.T) {
	for name, tc := range map[string]struct {
		rules []configv1alpha1.GroupingRule
		asks  bool
		pod   *corev1.Pod
		want  string
	}{
		"a Job":                          {[]configv1alpha1.GroupingRule{configv1alpha1.RuleJobs}, true, ofJob, "job-u"},
		"in a namespace without a label": {[]configv1alpha1.GroupingRule{configv1alpha1.RuleJobs}, false, ofJob, ""},
		"the rule is off":                {[]configv1alpha1.GroupingRule{configv1alpha1.RuleLeaderWorkerSets}, true, ofJob, ""},
		"a JobSet":                       {[]configv1alpha1.GroupingRule{configv1alpha1.RuleJobSets}, true, ofJobSet, "jobset-s-1"},
		"a Job of a JobSet, with the rule for Jobs alone": {[]configv1alpha1.GroupingRule{configv1alpha1.RuleJobs}, true, ofJobSet, "jobset-s-1"},
		"a Job, with the rule for JobSets alone":          {[]configv1alpha1.GroupingRule{configv1alpha1.RuleJobSets}, true, ofJob, ""},
	} {
		t.Run(name, func(t *testing.T) {
			key, named := asking(&tc.asks, tc.rules...).KeyOf(tc.pod)
			if named != (tc.want != "") || named && key != (Key{Own, "ns", tc.want}) {
				t.Errorf("it names %v, %t, want %q", key, named, tc.want)
			}
		})
	}
}

// TestAGroupThatWasMadeStaysWhenItsNamespaceAsksNoMore, and is told of as a move of Pods only where it is one.
func TestAGroupThatWasMadeStaysWhenItsNamespaceAsksNoMore(t *testing.T) {
	asks := true
	links := asking(&asks, configv1alpha1.RuleJobs)
	group := implicitGroup(ofJob, schedulingv1alpha1.PolicyGang)
	if links.SetImplicit(group) {
		t.Error("Pods that wait for a group are moved when it comes")
	}
	asks = false
	if key, named := links.KeyOf(ofJob); !named || key != group.Key {
		t.Errorf("it names %v, %t, want %v", key, named, group.Key)
	}
	if !links.DeleteImplicit(group.Key) {
		t.Error("Pods do not move when the group is gone")
	}
	if _, named := links.KeyOf(ofJob); named {
		t.Error("it names a group that is gone, in a namespace that asks for none")
	}
	if !links.SetImplicit(group) {
		t.Error("Pods do not move when the group comes")
	}
	if !links.SetImplicit(&Group{Key: group.Key}) {
		t.Error("Pods do not move when another group takes the name")
	}
}

// TestTheJobsOfAJobSetHaveGroupsOfTheirOwnIfItsGroupSaysSo, and one again if that is gone.
func TestTheJobsOfAJobSetHaveGroupsOfTheirOwnIfItsGroupSaysSo(t *testing.T) {
	asks := true
	links := asking(&asks, configv1alpha1.RuleJobSets)
	whole := implicitGroup(ofJobSet, schedulingv1alpha1.PolicyGangPerJob)
	if !links.SetImplicit(whole) || links.SetImplicit(whole) {
		t.Error("Pods do not move once, when the group comes")
	}
	if key, named := links.KeyOf(ofJobSet); !named || key.Name != "jobset-s-1-k" {
		t.Errorf("it names %v, want the group of its Job", key)
	}
	if !links.DeleteImplicit(whole.Key) {
		t.Error("Pods do not move when the group is gone")
	}
	if key, named := links.KeyOf(ofJobSet); !named || key != whole.Key {
		t.Errorf("it names %v, want %v", key, whole.Key)
	}
}
