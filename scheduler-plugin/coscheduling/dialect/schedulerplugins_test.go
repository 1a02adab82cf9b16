// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/podgroup"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/provision"
)

// object is an object as a watch shows it.
func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	if err := o.UnmarshalJSON([]byte(text)); err != nil {
		t.Fatal(err)
	}
	return o
}

// TestWhatATrainingOperatorWritesIsRead: the group is as training-operator makes it.
func TestWhatATrainingOperatorWritesIsRead(t *testing.T) {
	got := FromSchedulerPlugins(object(t, `{"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup",
		"metadata": {"namespace": "ns", "name": "tj", "uid": "u", "resourceVersion": "7", "generation": 2, "creationTimestamp": "2026-01-01T00:00:00Z",
			"ownerReferences": [{"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "name": "tj", "uid": "j", "controller": true}],
			"managedFields": [{"manager": "training-operator", "fieldsV1": {"f:spec": {"f:minMember": {}}}},
				{"manager": "lockstep-scheduler", "subresource": "status", "fieldsV1": {"f:status": {"f:phase": {}}}}]},
		"spec": {"minMember": 3, "minResources": {"cpu": "3"}, "scheduleTimeoutSeconds": 60},
		"status": {"phase": "Running", "occupiedBy": "ns/tj", "running": 2, "succeeded": 1}}`))
	want := &Group{
		Key: Key{Dialect: SchedulerPlugins, Namespace: "ns", Name: "tj"}, UID: "u", ResourceVersion: "7", Generation: 2,
		Created: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), MadeFor: "TFJob", MadeForUID: "j",
		Spec: Spec{Minimum: podgroup.Minimum{Members: 3}, DisruptionMode: schedulingv1alpha1.DisruptGang,
			Provision: Provision{Resources: provision.Amounts{"cpu": 3000}, Timeout: time.Minute}},
		Conditions: []schedulingv1alpha1.PodGroupCondition{
			{Type: schedulingv1alpha1.ConditionScheduled, Status: metav1.ConditionTrue, Reason: schedulingv1alpha1.ReasonScheduled},
			{Type: schedulingv1alpha1.ConditionUnschedulable, Status: metav1.ConditionFalse, Reason: schedulingv1alpha1.ReasonScheduled},
		},
		Status: &Status{Phase: "Running", Running: 2, Succeeded: 1, OccupiedBy: "ns/tj"}, PhaseBy: "lockstep-scheduler", Asked: 3,
	}
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b time.Time) bool { return a.Equal(b) })); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

// TestAGroupThatDoesNotDecodeIsToldAndNotPlaced: a CRD of another release may let in what the types have no place for.
func TestAGroupThatDoesNotDecodeIsToldAndNotPlaced(t *testing.T) {
	for name, tc := range map[string]struct {
		spec string
		want int32
		told string // Empty if it decodes.
	}{
		"nothing is asked for":        {`{}`, 1, ""},
		"there is no spec":            {`null`, 1, ""},
		"the spec is no object":       {`"three"`, 1, "spec"},
		"a minimum of none":           {`{"minMember": 0}`, 1, ""},
		"a negative minimum":          {`{"minMember": -3}`, 1, ""},
		"a minimum in words":          {`{"minMember": "three"}`, 1, "spec.minMember"},
		"a minimum with a fraction":   {`{"minMember": 3.0}`, 3, ""},
		"a minimum above all numbers": {`{"minMember": 99999999999}`, 1, "spec.minMember"},
		"a time in words":             {`{"minMember": 2, "scheduleTimeoutSeconds": "soon"}`, 2, "spec.scheduleTimeoutSeconds"},
		"quantities that are none":    {`{"minMember": 2, "minResources": {"cpu": "many"}}`, 2, ""},
		"a quantity without an end":   {`{"minMember": 2, "minResources": {"cpu": "1e1000000"}}`, 2, ""},
		"resources that are no list":  {`{"minMember": 2, "minResources": ["cpu"]}`, 2, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := FromSchedulerPlugins(object(t, `{"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup", "metadata": {"name": "g"}, "spec": `+tc.spec+`}`))
			if got.Spec.Minimum.Members != tc.want {
				t.Errorf("the minimum is %d, want %d", got.Spec.Minimum.Members, tc.want)
			}
			if got.IsHalted() != (tc.told != "") || !strings.Contains(got.Spec.Halt.Message, tc.told) {
				t.Errorf("it is halted: %t, by %q, want that %q does not decode", got.IsHalted(), got.Spec.Halt.Message, tc.told)
			}
			if diff := cmp.Diff(Provision{}, got.Spec.Provision); diff != "" {
				t.Errorf("room is to be kept (-want, +got):\n%s", diff)
			}
		})
	}
}

// TestAGroupThatNoPodCanNameIsTold: labels have shorter values than objects have names.
func TestAGroupThatNoPodCanNameIsTold(t *testing.T) {
	for length, want := range map[int]int{63: 0, 64: 1} {
		group := FromSchedulerPlugins(object(t, `{"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup", "metadata": {"name": "`+strings.Repeat("g", length)+`"}}`))
		if len(group.Warnings) != want {
			t.Errorf("a name of %d characters: warnings %v, want %d", length, group.Warnings, want)
		}
	}
}

// TestThePhasesOfSchedulerPlugins, for a group that asks for two.
func TestThePhasesOfSchedulerPlugins(t *testing.T) {
	owner := []metav1.OwnerReference{{Name: "job"}}
	member := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", OwnerReferences: owner}}
	for name, tc := range map[string]struct {
		before Status
		pods   Census
		want   Status
	}{
		"nobody is there":                 {Status{}, Census{}, Status{Phase: PhasePending}},
		"one is missing":                  {Status{}, Census{Exist: 1}, Status{Phase: PhasePending}},
		"all are there":                   {Status{Phase: PhasePending}, Census{Exist: 2}, Status{Phase: PhaseScheduling, OccupiedBy: "ns/job"}},
		"one runs":                        {Status{Phase: PhaseScheduling}, Census{Exist: 2, Running: 1}, Status{Phase: PhaseScheduling, Running: 1, OccupiedBy: "ns/job"}},
		"both run":                        {Status{Phase: PhaseScheduling}, Census{Exist: 2, Running: 2}, Status{Phase: PhaseRunning, Running: 2, OccupiedBy: "ns/job"}},
		"one runs, and one has succeeded": {Status{Phase: PhaseRunning}, Census{Exist: 2, Running: 1, Succeeded: 1}, Status{Phase: PhaseRunning, Running: 1, Succeeded: 1, OccupiedBy: "ns/job"}},
		"one is lost":                     {Status{Phase: PhaseRunning}, Census{Exist: 1, Running: 1}, Status{Phase: PhasePending, Running: 1}},
		"one was replaced":                {Status{Phase: PhaseRunning}, Census{Exist: 2, Running: 1}, Status{Phase: PhaseScheduling, Running: 1, OccupiedBy: "ns/job"}},
		"one has failed":                  {Status{Phase: PhaseRunning}, Census{Exist: 2, Running: 1, Failed: 1}, Status{Phase: PhaseFailed, Running: 1, Failed: 1, OccupiedBy: "ns/job"}},
		"one has failed, and the other is still to start":     {Status{Phase: PhaseScheduling}, Census{Exist: 2, Failed: 1}, Status{Phase: PhaseScheduling, Failed: 1, OccupiedBy: "ns/job"}},
		"all have succeeded":                                  {Status{Phase: PhaseRunning}, Census{Exist: 2, Succeeded: 2}, Status{Phase: PhaseFinished, Succeeded: 2, OccupiedBy: "ns/job"}},
		"enough have succeeded, and one has failed":           {Status{Phase: PhaseRunning}, Census{Exist: 3, Succeeded: 2, Failed: 1}, Status{Phase: PhaseFinished, Succeeded: 2, Failed: 1, OccupiedBy: "ns/job"}},
		"it has finished, and its Pods are gone":              {Status{Phase: PhaseFinished, Succeeded: 2}, Census{}, Status{Phase: PhaseFinished, Succeeded: 2}},
		"it has failed, and others run":                       {Status{Phase: PhaseFailed, Failed: 1}, Census{Exist: 2, Running: 2}, Status{Phase: PhaseFailed, Failed: 1}},
		"somebody has written a phase that nobody writes now": {Status{Phase: "PreScheduling"}, Census{Exist: 2, Running: 2}, Status{Phase: PhaseRunning, Running: 2, OccupiedBy: "ns/job"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, (&Group{Key: Key{Dialect: SchedulerPlugins}, Asked: 2}).NextStatus(tc.before, Facts{Pods: tc.pods, Member: member})); diff != "" {
				t.Errorf("-want, +got:\n%s", diff)
			}
		})
	}
}

// TestAPatchSaysNothingElse: but the status, and of which group as it was when.
func TestAPatchSaysNothingElse(t *testing.T) {
	group := Group{Key: Key{Dialect: SchedulerPlugins}, UID: "u", ResourceVersion: "6"}
	write, err := group.WriteOf(&Status{Phase: PhaseRunning, Running: 2}, "7")
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(write.Body, &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"metadata": map[string]any{"uid": "u", "resourceVersion": "7"},
		"status": map[string]any{"phase": "Running", "running": 2.0, "succeeded": 0.0, "failed": 0.0}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	if write.Type != types.MergePatchType {
		t.Errorf("it is a request of type %s", write.Type)
	}
}

// TestWhichGangAPodNames, with and without the dialect of scheduler-plugins.
func TestWhichGangAPodNames(t *testing.T) {
	own := Key{Dialect: Own, Namespace: "ns", Name: "own"}
	other := Key{Dialect: SchedulerPlugins, Namespace: "ns", Name: "other"}
	labels := words[SchedulerPlugins].labels
	for name, tc := range map[string]struct {
		labels   map[string]string
		off, on  *Key
		wantRole string
	}{
		"no label":                   {labels: map[string]string{"app": "x"}},
		"Lockstep's":                 {labels: map[string]string{schedulingv1alpha1.LabelPodGroup: "own", schedulingv1alpha1.LabelRole: "ps"}, off: &own, on: &own, wantRole: "ps"},
		"that of today":              {labels: map[string]string{labels[0]: "other", schedulingv1alpha1.LabelRole: "ps"}, on: &other},
		"that of 0.24":               {labels: map[string]string{labels[1]: "other"}, on: &other},
		"that of 0.18":               {labels: map[string]string{labels[2]: "other"}, on: &other},
		"that of today before older": {labels: map[string]string{labels[2]: "older", labels[0]: "other"}, on: &other},
		"Lockstep's before others":   {labels: map[string]string{labels[0]: "other", schedulingv1alpha1.LabelPodGroup: "own"}, off: &own, on: &own},
		"an empty label":             {labels: map[string]string{labels[0]: ""}},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Labels: tc.labels}}
			with := &Links{}
			with.TurnOn(SchedulerPlugins)
			for what, try := range map[string]struct {
				links *Links
				want  *Key
			}{"alone": {nil, tc.off}, "off": {&Links{}, tc.off}, "on": {with, tc.on}} {
				got, named := try.links.KeyOf(pod)
				if named != (try.want != nil) || named && got != *try.want {
					t.Errorf("%s: it names %v, %t, want %v", what, got, named, try.want)
				}
				if named && got.RoleOf(pod) != tc.wantRole {
					t.Errorf("%s: the role is %q, want %q", what, got.RoleOf(pod), tc.wantRole)
				}
			}
		})
	}
}

// TestAnObjectKeepsWhoHasWrittenItsPhase, and no other managed fields.
func TestAnObjectKeepsWhoHasWrittenItsPhase(t *testing.T) {
	group := object(t, `{"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup", "metadata": {"name": "g",
		"managedFields": [{"manager": "operator", "fieldsV1": {"f:spec": {"f:minMember": {}}}},
			{"manager": "controller", "subresource": "status", "fieldsV1": {"f:status": {"f:phase": {}}}},
			{"manager": "strange", "fieldsV1": {"f:status": 3}}]}}`)
	Reduce(group)
	if fields := group.GetManagedFields(); len(fields) != 1 || FromSchedulerPlugins(group).PhaseBy != "controller" {
		t.Errorf("the managed fields are %v, want those of the phase", fields)
	}
}
