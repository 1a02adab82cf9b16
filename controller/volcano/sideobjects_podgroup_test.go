// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package volcano

import (
	"regexp"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
)

func TestTheGangOfAJob(t *testing.T) {
	all := func(active ...int32) []activity {
		var activities []activity
		for _, n := range active {
			activities = append(activities, activity{Started: true, Active: n})
		}
		return activities
	}
	const tasks = "tasks: [{name: a, replicas: 2, @t}, {name: b, replicas: 4, minAvailable: 2, @t}]}"
	tests := map[string]struct {
		spec       string
		activities []activity
		member     int32
		roles      map[string]int32
	}{
		"the minimum of each task":                     {"{" + tasks, all(2, 4), 4, map[string]int32{"a": 2, "b": 2}},
		"a higher minimum of the Job":                  {"{minAvailable: 5, " + tasks, all(2, 4), 5, map[string]int32{"a": 2, "b": 2}},
		"a lower minimum of the Job means any Pods":    {"{minAvailable: 3, " + tasks, all(2, 4), 3, nil},
		"a task without a minimum":                     {"{tasks: [{name: a, replicas: 2, @t}, {name: b, replicas: 4, minAvailable: 0, @t}]}", all(2, 4), 2, map[string]int32{"a": 2}},
		"what has yet to start does not count":         {"{" + tasks, []activity{{}, {Started: true, Active: 4}}, 2, map[string]int32{"b": 2}},
		"but what is needed beyond does":               {"{minAvailable: 5, " + tasks, []activity{{Active: 2}, {Started: true, Active: 4}}, 3, map[string]int32{"b": 2}},
		"any Pods of those that start":                 {"{minAvailable: 3, " + tasks, []activity{{Started: true, Active: 2}, {Active: 4}}, 2, nil},
		"what is done needs no place":                  {"{" + tasks, []activity{{Started: true, Active: 1, Done: 1}, {Started: true, Active: 3, Done: 1}}, 2, map[string]int32{"a": 1, "b": 1}},
		"a task that is done":                          {"{" + tasks, []activity{{Started: true, Done: 2}, {Started: true, Active: 4}}, 2, map[string]int32{"b": 2}},
		"more is done than the minimum":                {"{minAvailable: 2, " + tasks, []activity{{Started: true, Active: 1, Done: 1}, {Started: true, Active: 1, Done: 3}}, 1, nil},
		"less is left than the minimum":                {"{" + tasks, all(1, 1), 2, map[string]int32{"a": 1, "b": 1}},
		"a minimum of nothing is one, as it has to be": {"{tasks: [{name: a, replicas: 2, minAvailable: 0, @t}]}", all(2), 1, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			b := builderOf(t, strings.Replace(tc.spec, "{", "{queue: q, priorityClassName: p, ", 1))
			topology := []schedulingv1alpha1.TopologyConstraint{{Key: "rack", Mode: schedulingv1alpha1.TopologyRequired}}
			got, needed := podGroupSpec(b.spec, tc.activities, topology)
			if !needed {
				t.Fatal("there is no gang")
			}
			expect(t, "spec", schedulingv1alpha1.PodGroupSpec{
				MinMember: tc.member, MinRoleMember: tc.roles, PriorityClassName: "p", Queue: "q", Topology: topology, DisruptionMode: "Gang",
			}, got)
		})
	}
}

func TestWithoutPodsThereIsNoGang(t *testing.T) {
	b := builderOf(t, "{tasks: [{name: a, replicas: 2, @t}]}")
	for name, activities := range map[string][]activity{
		"none may start": {{Active: 2}}, "all are done": {{Started: true, Done: 2}},
	} {
		if got, needed := podGroupSpec(b.spec, activities, nil); needed {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}

func TestTheGangBelongsToTheJob(t *testing.T) {
	b := builderOf(t, "{tasks: [{name: a, replicas: 2, @t}]}")
	group := b.podGroup(3, schedulingv1alpha1.PodGroupSpec{MinMember: 2})
	if group.Name != "j-job-3" || group.Namespace != "ns" || group.Spec.MinMember != 2 {
		t.Errorf("got %s/%s with %+v", group.Namespace, group.Name, group.Spec)
	}
	if owners := group.OwnerReferences; len(owners) != 1 || owners[0].Kind != "Job" || owners[0].UID != "u" || !*owners[0].Controller {
		t.Errorf("owners: got %v", owners)
	}
	expect(t, "labels", map[string]string{"volcano.sh/job-name": "j", "volcano.sh/job-namespace": "ns"}, group.Labels)
}

func TestNamesOfGangs(t *testing.T) {
	long := strings.Repeat("x", 62)
	seen := map[string]string{}
	for _, tc := range []struct {
		job     string
		version int32
	}{{"a", 0}, {"a", 1}, {"a-job", 1}, {"a", 12}, {long + "a", 0}, {long + "b", 0}, {long + "a", 1}, {long[:57], 1}, {long[:58], 1}} {
		name := podGroupName(tc.job, tc.version)
		what := tc.job + " " + string('0'+tc.version%10)
		if len(validation.IsDNS1123Label(name)) > 0 {
			t.Errorf("%s: %q is no name", what, name)
		}
		if other := seen[name]; other != "" {
			t.Errorf("%s and %s have the name %s", what, other, name)
		}
		seen[name] = what
		if regexp.MustCompile(`-attempt(-[0-9a-f]{10})?$`).MatchString(name) {
			t.Errorf("%s: %s could be that of a Framework", what, name)
		}
	}
}

func TestTiersOfTheNetworkAreLabelsOfNodes(t *testing.T) {
	tiers := map[string]string{"1": "example.com/rack", "zone": "topology.kubernetes.io/zone"}
	tests := map[string]struct {
		topology string
		want     []schedulingv1alpha1.TopologyConstraint
		unmapped bool
	}{
		"none":           {topology: "null"},
		"a number":       {topology: "{highestTierAllowed: 1}", want: []schedulingv1alpha1.TopologyConstraint{{Key: "example.com/rack", Mode: "Required"}}},
		"a name":         {topology: "{mode: soft, highestTierName: zone}", want: []schedulingv1alpha1.TopologyConstraint{{Key: "topology.kubernetes.io/zone", Mode: "Preferred"}}},
		"no tier":        {topology: "{mode: hard}"},
		"another number": {topology: "{mode: soft, highestTierAllowed: 2}", unmapped: true},
		"another name":   {topology: "{highestTierName: rack}", unmapped: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			b := builderOf(t, "{networkTopology: "+tc.topology+", tasks: [{name: a, replicas: 1, @t}]}")
			got, unmapped := topologyOf(b.spec, tiers)
			expect(t, "constraints", tc.want, got)
			if (unmapped != "") != tc.unmapped {
				t.Errorf("unmapped: got %q, want some: %v", unmapped, tc.unmapped)
			}
		})
	}
}
