// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	configv1alpha1 "github.com/lockstep-k8s/lockstep/apis/config/v1alpha1"
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/podgroup"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/provision"
)

// testTiers have labels for two of the tiers of a network.
var testTiers = []configv1alpha1.Tier{{Tier: 1, Name: "leaf", Key: "rack"}, {Tier: 2, Key: "spine"}}

// volcanoGroup is a group of Volcano's with a spec and a status.
func volcanoGroup(t *testing.T, spec, status string) *Group {
	t.Helper()
	return FromVolcano(testTiers)(object(t, `{"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup",
		"metadata": {"namespace": "ns", "name": "g", "uid": "u", "resourceVersion": "7", "creationTimestamp": "2026-01-01T00:00:00Z"},
		"spec": `+spec+`, "status": `+status+`}`))
}

// TestWhatAVolcanoGroupAsksFor: what can't be read is not said.
func TestWhatAVolcanoGroupAsksFor(t *testing.T) {
	for name, tc := range map[string]struct {
		spec  string
		asked int32
		want  Spec
	}{
		"nothing":                       {`{}`, 0, Spec{Minimum: podgroup.Minimum{Members: 1}}},
		"no spec":                       {`null`, 0, Spec{Minimum: podgroup.Minimum{Members: 1}}},
		"none, which is planned as one": {`{"minMember": 0}`, 0, Spec{Minimum: podgroup.Minimum{Members: 1}}},
		"as training-operator writes it": {`{"minMember": 3, "queue": "default", "minResources": {"cpu": "3"}}`, 3,
			Spec{Minimum: podgroup.Minimum{Members: 3}, Provision: Provision{Resources: provision.Amounts{"cpu": 3000}}}},
		"a priority":                    {`{"minMember": 2, "priorityClassName": "high"}`, 2, Spec{Minimum: podgroup.Minimum{Members: 2}, PriorityClassName: "high"}},
		"minima of roles":               {`{"minMember": 3, "minTaskMember": {"ps": 1, "worker": 2}}`, 3, Spec{Minimum: podgroup.Minimum{Members: 3, Roles: map[string]int32{"ps": 1, "worker": 2}}}},
		"minima of roles above all":     {`{"minMember": 2, "minTaskMember": {"ps": 1, "worker": 2}}`, 2, Spec{Minimum: podgroup.Minimum{Members: 2}}},
		"minima of roles that are none": {`{"minMember": 2, "minTaskMember": {"ps": "one", "worker": -2}}`, 2, Spec{Minimum: podgroup.Minimum{Members: 2}}},
		"minima of too many roles":      {`{"minMember": 1000, "minTaskMember": {` + manyRoles(maxRoles+1) + `}}`, 1000, Spec{Minimum: podgroup.Minimum{Members: 1000}}},
		"roles in words":                {`{"minMember": 2, "minTaskMember": "all"}`, 2, Spec{Minimum: podgroup.Minimum{Members: 2}}},
		"a priority that is no name":    {`{"minMember": 2, "priorityClassName": 7}`, 2, Spec{Minimum: podgroup.Minimum{Members: 2}}},
	} {
		t.Run(name, func(t *testing.T) {
			got := volcanoGroup(t, tc.spec, `{}`)
			tc.want.DisruptionMode = schedulingv1alpha1.DisruptGang
			if diff := cmp.Diff(tc.want, got.Spec); diff != "" {
				t.Errorf("-want, +got:\n%s", diff)
			}
			if got.Asked != tc.asked {
				t.Errorf("its phase is told by a minimum of %d, want %d", got.Asked, tc.asked)
			}
		})
	}
}

// TestHowCloseTogetherAVolcanoGroupIsToBe, by the labels that stand for tiers. What is asked for and can't be had
// is an obstacle.
func TestHowCloseTogetherAVolcanoGroupIsToBe(t *testing.T) {
	required := func(key string) []schedulingv1alpha1.TopologyConstraint {
		return []schedulingv1alpha1.TopologyConstraint{{Key: key, Mode: schedulingv1alpha1.TopologyRequired}}
	}
	for name, tc := range map[string]struct {
		spec         string
		want         []schedulingv1alpha1.TopologyConstraint
		wantObstacle string
	}{
		"in one domain of a tier":             {spec: `{"networkTopology": {"mode": "hard", "highestTierAllowed": 2}}`, want: required("spine")},
		"hard is the default":                 {spec: `{"networkTopology": {"highestTierAllowed": 1}}`, want: required("rack")},
		"in one domain of a tier by its name": {spec: `{"networkTopology": {"mode": "hard", "highestTierName": "leaf"}}`, want: required("rack")},
		"in a domain of any tier":             {spec: `{"networkTopology": {"mode": "hard"}}`},
		"of a tier without a label":           {spec: `{"networkTopology": {"highestTierAllowed": 3}}`, wantObstacle: "tier 3"},
		"of tier 0, which has no label":       {spec: `{"networkTopology": {"highestTierAllowed": 0}}`, wantObstacle: "tier 0"},
		"of a name that nobody knows":         {spec: `{"networkTopology": {"highestTierName": "zone"}}`, wantObstacle: "tier zone"},
		"as near as may be": {spec: `{"networkTopology": {"mode": "soft", "highestTierAllowed": 3}}`, want: []schedulingv1alpha1.TopologyConstraint{
			{Key: "spine", Mode: schedulingv1alpha1.TopologyPreferred}, {Key: "rack", Mode: schedulingv1alpha1.TopologyPreferred}}},
		"in words":                        {spec: `{"networkTopology": "near"}`},
		"with subgroups in a domain each": {spec: `{"subGroupPolicy": [7, {"name": "a", "networkTopology": {"highestTierAllowed": 1}}]}`, wantObstacle: "spec.subGroupPolicy[1].networkTopology asks for one domain of tier 1 for each subgroup"},
	} {
		t.Run(name, func(t *testing.T) {
			got := volcanoGroup(t, tc.spec, `{}`)
			if diff := cmp.Diff(tc.want, got.Spec.Topology); diff != "" {
				t.Errorf("-want, +got:\n%s", diff)
			}
			if !strings.Contains(got.Spec.Halt.Message, tc.wantObstacle) || (got.Spec.Halt.Message == "") != (tc.wantObstacle == "") {
				t.Errorf("the obstacle is %q, want %q", got.Spec.Halt.Message, tc.wantObstacle)
			}
		})
	}
}

// TestWhatIsToldOfSubgroups: each field by its name that asks for something, and nothing of those that ask for nothing.
func TestWhatIsToldOfSubgroups(t *testing.T) {
	for name, tc := range map[string]struct{ policies, want string }{
		"none":                                  {`[]`, ""},
		"one in words":                          {`"each"`, ""},
		"of one Pod each, as many as there are": {`[{"name": "a", "labelSelector": {}, "matchLabelKeys": ["part"], "subGroupSize": 1, "minSubGroups": 0}]`, ""},
		"of a size":                             {`[{"name": "a", "subGroupSize": 2}]`, "does not enforce spec.subGroupPolicy[0].subGroupSize: "},
		"of a size and a number": {`["a", {"subGroupSize": 2, "minSubGroups": 3}]`,
			"does not enforce spec.subGroupPolicy[1].subGroupSize, spec.subGroupPolicy[1].minSubGroups: "},
		"near together each":                             {`[{"networkTopology": {"mode": "soft", "highestTierAllowed": 1}}]`, "does not enforce spec.subGroupPolicy[0].networkTopology: "},
		"in a domain each, of which all are wide enough": {`[{"networkTopology": {"mode": "hard"}}]`, ""},
		"many": {`[` + strings.Repeat(`{"subGroupSize": 2},`, 9) + `{}]`, "spec.subGroupPolicy[3].subGroupSize and 5 more fields: "},
	} {
		t.Run(name, func(t *testing.T) {
			got := volcanoGroup(t, `{"minMember": 4, "subGroupPolicy": `+tc.policies+`}`, `{}`)
			told := ""
			for _, warning := range got.Warnings {
				if warning.Reason != ReasonSubGroups {
					t.Errorf("the reason is %s", warning.Reason)
				}
				told += warning.Message
			}
			if !strings.Contains(told, tc.want) || (told == "") != (tc.want == "") {
				t.Errorf("it is told %q, want %q", told, tc.want)
			}
			if got.IsHalted() {
				t.Errorf("it is not placed: %s", got.Spec.Halt.Message)
			}
		})
	}
}

// TestWhatTheStatusOfAVolcanoGroupSays: of conditions of a type the newest one counts, and none is
// older than the group, whatever somebody has written.
func TestWhatTheStatusOfAVolcanoGroupSays(t *testing.T) {
	got := volcanoGroup(t, `{}`, `{"phase": "Unknown", "running": 1, "failed": 2, "conditions": [
		"no condition",
		{"type": "Unschedulable", "status": "True", "reason": "NotEnoughTasks", "lastTransitionTime": "2026-01-01T00:02:00Z", "transitionID": "b"},
		{"type": "Unschedulable", "status": "True", "reason": "NotEnoughResources", "lastTransitionTime": "2026-01-01T00:01:00Z", "transitionID": "a"},
		{"type": "Scheduled", "status": "True", "reason": "tasks in gang are ready to be scheduled", "lastTransitionTime": "2020-01-01T00:00:00Z"}]}`)
	created := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	want := []schedulingv1alpha1.PodGroupCondition{
		{Type: "Unschedulable", Status: metav1.ConditionTrue, Reason: "NotEnoughTasks", LastTransitionTime: metav1.NewTime(created.Add(2 * time.Minute)), TransitionID: "b"},
		{Type: "Scheduled", Status: metav1.ConditionTrue, Reason: "tasks in gang are ready to be scheduled", LastTransitionTime: metav1.NewTime(created)},
	}
	if diff := cmp.Diff(want, got.Conditions, cmp.Comparer(func(a, b time.Time) bool { return a.Equal(b) })); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	if got.Status.Phase != PhaseUnknown || got.Status.Running != 1 || got.Status.Failed != 2 {
		t.Errorf("the status is %+v", got.Status)
	}
}

// TestThePhasesOfVolcano, for a group that asks for two.
func TestThePhasesOfVolcano(t *testing.T) {
	for name, tc := range map[string]struct {
		before string
		pods   Census
		lacks  bool
		want   string
	}{
		"nobody is there":                        {"", Census{}, false, PhaseInqueue},
		"its maker has it wait":                  {PhasePending, Census{}, false, PhaseInqueue},
		"both wait":                              {PhaseInqueue, Census{Exist: 2}, true, PhaseInqueue},
		"both have a node":                       {PhaseInqueue, Census{Exist: 2, Placed: 2}, false, PhaseRunning},
		"one has failed":                         {PhaseRunning, Census{Exist: 2, Placed: 2, Running: 1, Failed: 1}, false, PhaseRunning},
		"both have ended":                        {PhaseRunning, Census{Exist: 2, Placed: 2, Succeeded: 1, Failed: 1}, false, PhaseCompleted},
		"both have ended, and one more waits":    {PhaseRunning, Census{Exist: 3, Placed: 2, Succeeded: 2}, false, PhaseCompleted},
		"one is being replaced":                  {PhaseRunning, Census{Exist: 2, Placed: 1, Running: 1}, false, PhaseInqueue},
		"one was replaced, and there is no room": {PhaseRunning, Census{Exist: 2, Placed: 1, Running: 1}, true, PhaseUnknown},
		"one ends, and there is no room":         {PhaseRunning, Census{Exist: 2, Placed: 1, Running: 1, Ending: 1}, true, PhaseInqueue},
		"there is room again":                    {PhaseUnknown, Census{Exist: 2, Placed: 2, Running: 1}, false, PhaseRunning},
		"all were deleted":                       {PhaseCompleted, Census{}, false, PhaseInqueue},
	} {
		t.Run(name, func(t *testing.T) {
			group := volcanoGroup(t, `{"minMember": 2}`, `{}`)
			got := group.NextStatus(Status{Phase: tc.before}, Facts{Pods: tc.pods, Lacks: tc.lacks})
			if got.Phase != tc.want {
				t.Errorf("the phase is %s, want %s", got.Phase, tc.want)
			}
		})
	}
	for before, want := range map[string]string{PhaseUnknown: PhaseUnknown, PhaseInqueue: PhaseInqueue} {
		facts := Facts{Pods: Census{Exist: 2, Placed: 1, Running: 1}, Undecided: true}
		if got := volcanoGroup(t, `{"minMember": 2}`, `{}`).NextStatus(Status{Phase: before}, facts); got.Phase != want {
			t.Errorf("the phase of a group that is about to be planned becomes %s, and was %s", got.Phase, before)
		}
	}
	if got := volcanoGroup(t, `{"minMember": 0}`, `{}`).NextStatus(Status{Phase: PhaseRunning}, Facts{}); got.Phase != PhaseCompleted {
		t.Errorf("the phase of a group of which nothing is left, and nothing asked for, is %s, want %s", got.Phase, PhaseCompleted)
	}
}

// TestAVolcanoGroupIsNotToldAgainWhatItSays in other words: Volcano has none for a binding that has failed.
func TestAVolcanoGroupIsNotToldAgainWhatItSays(t *testing.T) {
	group := volcanoGroup(t, `{"minMember": 2}`, `{"phase": "Inqueue", "conditions": [
		{"type": "Unschedulable", "status": "True", "reason": "NotEnoughResources", "message": "why", "lastTransitionTime": "2026-01-01T00:01:00Z"}]}`)
	next := group.NextStatus(*group.Status, Facts{Pods: Census{Exist: 2}, Conditions: []schedulingv1alpha1.PodGroupCondition{
		{Type: "Unschedulable", Status: metav1.ConditionTrue, Reason: schedulingv1alpha1.ReasonBindingFailed, Message: "why"},
	}})
	if !next.SaysTheSameAs(group.Status) {
		t.Errorf("it is told %+v, and says %+v", next, *group.Status)
	}
}

// TestWhatIsWrittenToAVolcanoGroup: the status of that version of that object and nothing else, by a
// merge patch.
func TestWhatIsWrittenToAVolcanoGroup(t *testing.T) {
	group := volcanoGroup(t, `{"minMember": 2}`, `{"conditions": [{"type": "Theirs", "status": "True", "message": "m"}]}`)
	at := metav1.NewTime(time.Date(2026, 1, 1, 0, 1, 0, 0, time.UTC))
	status := group.NextStatus(*group.Status, Facts{Pods: Census{Exist: 2}, Conditions: []schedulingv1alpha1.PodGroupCondition{
		{Type: "Unschedulable", Status: metav1.ConditionTrue, Reason: schedulingv1alpha1.ReasonBindingFailed, Message: "why", TransitionID: "id", LastTransitionTime: at, ObservedGeneration: 3},
	}})
	{
		write, err := group.WriteOf(&status, "7")
		if err != nil {
			t.Fatal(err)
		}
		var body any
		if err := json.Unmarshal(write.Body, &body); err != nil {
			t.Fatal(err)
		}
		wantBody := map[string]any{
			"metadata": map[string]any{"uid": "u", "resourceVersion": "7"},
			"status": map[string]any{"phase": "Inqueue", "running": 0.0, "succeeded": 0.0, "failed": 0.0, "conditions": []any{
				map[string]any{"type": "Unschedulable", "status": "True", "reason": "NotEnoughResources", "message": "why", "transitionID": "id", "lastTransitionTime": "2026-01-01T00:01:00Z"},
				map[string]any{"type": "Theirs", "status": "True", "message": "m", "lastTransitionTime": "2026-01-01T00:00:00Z"},
			}},
		}
		if diff := cmp.Diff(wantBody, body); diff != "" {
			t.Errorf("-want, +got:\n%s", diff)
		}
		if write.Type != "application/merge-patch+json" {
			t.Errorf("it is a request of type %s", write.Type)
		}
	}
}

// TestWhichVolcanoGangAPodNames, and in which role: an annotation comes before a label, and another
// project's label before both.
func TestWhichVolcanoGangAPodNames(t *testing.T) {
	links := &Links{}
	links.TurnOn(Volcano)
	key := Key{Dialect: Volcano, Namespace: "ns", Name: "g"}
	for name, tc := range map[string]struct {
		annotations, labels map[string]string
		want                Key
		wantRole            string
	}{
		"by the annotation of today": {annotations: map[string]string{"scheduling.k8s.io/group-name": "g", "scheduling.volcano.sh/group-name": "h"}, want: key},
		"by the other one":           {annotations: map[string]string{"scheduling.volcano.sh/group-name": "g"}, want: key},
		"a label does not":           {labels: map[string]string{"scheduling.k8s.io/group-name": "g"}, want: Key{Namespace: "ns"}},
		"with a role": {annotations: map[string]string{"scheduling.k8s.io/group-name": "g", "volcano.sh/task-spec": "worker"},
			labels: map[string]string{"volcano.sh/task-spec": "ps"}, want: key, wantRole: "worker"},
		"with the label of a role": {annotations: map[string]string{"scheduling.k8s.io/group-name": "g"},
			labels: map[string]string{"volcano.sh/task-spec": "ps"}, want: key, wantRole: "ps"},
		"and one of Lockstep's": {annotations: map[string]string{"scheduling.k8s.io/group-name": "g"},
			labels: map[string]string{schedulingv1alpha1.LabelPodGroup: "own"}, want: Key{Namespace: "ns", Name: "own"}},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Annotations: tc.annotations, Labels: tc.labels}}
			if got, _ := links.KeyOf(pod); got != tc.want || got.RoleOf(pod) != tc.wantRole {
				t.Errorf("it names %v in role %q, want %v in %q", got, got.RoleOf(pod), tc.want, tc.wantRole)
			}
		})
	}
}

// manyRoles are a number of fields with a minimum of one.
func manyRoles(n int) string {
	var fields []string
	for i := range n {
		fields = append(fields, fmt.Sprintf(`"role-%d": 1`, i))
	}
	return strings.Join(fields, ", ")
}
