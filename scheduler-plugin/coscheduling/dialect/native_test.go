// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/podgroup"
)

// native is a PodGroup of Kubernetes with a spec, in a version.
func native(t *testing.T, version, metadata, spec, status string) *Group {
	t.Helper()
	return FromNative(object(t, `{"apiVersion": "scheduling.k8s.io/`+version+`", "kind": "PodGroup",
		"metadata": {"namespace": "ns", "name": "jg", "uid": "u", "generation": 3`+metadata+`}, "spec": `+spec+`, "status": {"conditions": [`+status+`]}}`))
}

// TestWhatAPodGroupOfKubernetesAsksFor, in each version that has them.
func TestWhatAPodGroupOfKubernetesAsksFor(t *testing.T) {
	seven, none := int32(7), int32(0)
	gang := func(change func(*Spec)) Spec {
		spec := Spec{Minimum: podgroup.Minimum{Members: 4}, DisruptionMode: schedulingv1alpha1.DisruptPod}
		if change != nil {
			change(&spec)
		}
		return spec
	}
	for name, tc := range map[string]struct {
		version, metadata, spec string
		want                    Spec
	}{
		"a gang": {spec: `{"schedulingPolicy": {"gang": {"minCount": 4}}, "disruptionMode": {"single": {}}, "priority": 0}`,
			want: gang(func(s *Spec) { s.Priority = &none })},
		"a gang that goes as a whole": {spec: `{"schedulingPolicy": {"gang": {"minCount": 4}}, "disruptionMode": {"all": {}}}`,
			want: gang(func(s *Spec) { s.DisruptionMode = schedulingv1alpha1.DisruptGang })},
		"a gang of 1.36 that goes as a whole": {version: "v1alpha2", spec: `{"schedulingPolicy": {"gang": {"minCount": 4}}, "disruptionMode": "PodGroup"}`,
			want: gang(func(s *Spec) { s.DisruptionMode = schedulingv1alpha1.DisruptGang })},
		"a gang of 1.36 that goes by Pods": {version: "v1alpha2", spec: `{"schedulingPolicy": {"gang": {"minCount": 4}}, "disruptionMode": "Pod"}`,
			want: gang(nil)},
		"its priority": {spec: `{"schedulingPolicy": {"gang": {"minCount": 4}}, "priorityClassName": "high", "priority": 7, "preemptionPolicy": "Never"}`,
			want: gang(func(s *Spec) { s.PriorityClassName, s.Priority, s.PreemptsNobody = "high", &seven, true })},
		"one domain": {spec: `{"schedulingPolicy": {"gang": {"minCount": 4}}, "schedulingConstraints": {"topology": [{"key": "rack"}]}}`,
			want: gang(func(s *Spec) {
				s.Topology = []schedulingv1alpha1.TopologyConstraint{{Key: "rack", Mode: schedulingv1alpha1.TopologyRequired}}
			})},
		"nothing": {spec: `{"schedulingPolicy": {"basic": {}}}`,
			want: Spec{Minimum: podgroup.Minimum{Members: 1}, DisruptionMode: schedulingv1alpha1.DisruptPod, Loose: true}},
		"nothing but one domain": {spec: `{"schedulingPolicy": {"basic": {}}, "schedulingConstraints": {"topology": [{"key": "rack"}]}}`,
			want: Spec{Minimum: podgroup.Minimum{Members: 1}, DisruptionMode: schedulingv1alpha1.DisruptPod,
				Topology: []schedulingv1alpha1.TopologyConstraint{{Key: "rack", Mode: schedulingv1alpha1.TopologyRequired}}}},
		"what a later version may say": {spec: `{"schedulingPolicy": {"gang": {"minCount": "four"}}, "disruptionMode": {"some": {}}, "schedulingConstraints": {"topology": ["rack"]}}`,
			want: Spec{Minimum: podgroup.Minimum{Members: 1}, DisruptionMode: schedulingv1alpha1.DisruptPod}},
	} {
		t.Run(name, func(t *testing.T) {
			version := tc.version
			if version == "" {
				version = "v1beta1"
			}
			got := native(t, version, "", tc.spec, "")
			if diff := cmp.Diff(tc.want, got.Spec); diff != "" {
				t.Errorf("-want, +got:\n%s", diff)
			}
			if want := (Key{Dialect: Native, Namespace: "ns", Name: "jg"}); got.Key != want || got.Kind().Version != version {
				t.Errorf("the group is %v of version %s, want %v of %s", got.Key, got.Kind().Version, want, version)
			}
		})
	}
}

// TestNothingIsStartedOfAPodGroupThat is being deleted, or asks for what can't be had.
func TestNothingIsStartedOfAPodGroupThat(t *testing.T) {
	for name, tc := range map[string]struct {
		metadata, spec string
		reason, says   string
	}{
		"is being deleted":   {`, "deletionTimestamp": "2026-01-01T00:00:00Z"`, `{}`, ReasonDeleted, "being deleted"},
		"has a parent":       {"", `{"parentCompositePodGroupName": "p"}`, ReasonNotSupported, "spec.parentCompositePodGroupName"},
		"shares claims":      {"", `{"resourceClaims": [{"name": "c", "resourceClaimName": "c"}]}`, ReasonNotSupported, "spec.resourceClaims"},
		"is not one of them": {"", `{"resourceClaims": []}`, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := native(t, "v1beta1", tc.metadata, tc.spec, "").Spec.Halt
			if got.Reason != tc.reason || !strings.Contains(got.Message, tc.says) {
				t.Errorf("halted for %+v, want the reason %q and %q", got, tc.reason, tc.says)
			}
		})
	}
}

// TestWhatAPodGroupOfKubernetesIsTold, by its conditions.
func TestWhatAPodGroupOfKubernetesIsTold(t *testing.T) {
	const (
		scheduled  = `{"type": "PodGroupInitiallyScheduled", "status": "True", "reason": "Scheduled", "message": "m", "lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": 1}`
		waits      = `{"type": "PodGroupInitiallyScheduled", "status": "False", "reason": "Unschedulable", "message": "NotEnoughTasks: 1 of 4", "lastTransitionTime": "2026-01-01T00:00:00Z"}`
		disrupted  = `{"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler", "message": "m", "lastTransitionTime": "2026-01-01T00:00:00Z"}`
		ofAnother  = `{"type": "Other", "status": "True", "reason": "r", "message": "m", "lastTransitionTime": "2026-01-01T00:00:00Z"}`
		spec       = `{"schedulingPolicy": {"gang": {"minCount": 4}}}`
		noTasks    = schedulingv1alpha1.ReasonNotEnoughTasks
		noRoom     = schedulingv1alpha1.ReasonNotEnoughResources
		isPlaced   = schedulingv1alpha1.ReasonScheduled
		lostAPod   = schedulingv1alpha1.ReasonPodDeleted
		notSupport = ReasonNotSupported
	)
	now := metav1.NewTime(time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC))
	said := func(status metav1.ConditionStatus, reason, message string) []schedulingv1alpha1.PodGroupCondition {
		return []schedulingv1alpha1.PodGroupCondition{{Type: schedulingv1alpha1.ConditionScheduled, Status: status, Reason: reason, Message: message, LastTransitionTime: now}}
	}
	for name, tc := range map[string]struct {
		version, before string
		said            []schedulingv1alpha1.PodGroupCondition
		preempted       bool
		placed          bool
		want            []string
	}{
		"nothing, as long as nothing is known":     {},
		"that it lacks members":                    {said: said(metav1.ConditionFalse, noTasks, "1 of 4"), want: []string{"PodGroupInitiallyScheduled=False Unschedulable NotEnoughTasks: 1 of 4"}},
		"that it lacks room":                       {before: waits, said: said(metav1.ConditionFalse, noRoom, "short of 1 cpu"), want: []string{"PodGroupInitiallyScheduled=False Unschedulable NotEnoughResources: short of 1 cpu"}},
		"that it can't be placed":                  {said: said(metav1.ConditionFalse, notSupport, "no"), want: []string{"PodGroupInitiallyScheduled=False SchedulerError no"}},
		"that it is placed":                        {before: waits, said: said(metav1.ConditionTrue, isPlaced, "yes"), want: []string{"PodGroupInitiallyScheduled=True Scheduled yes"}},
		"the same in 1.36":                         {version: "v1alpha2", said: said(metav1.ConditionTrue, isPlaced, "yes"), want: []string{"PodGroupScheduled=True Scheduled yes"}},
		"nothing else when it has lost a member":   {before: scheduled, said: said(metav1.ConditionFalse, lostAPod, "3 of 4"), want: []string{"PodGroupInitiallyScheduled=True Scheduled m"}},
		"that it was preempted":                    {before: scheduled, preempted: true, want: []string{"PodGroupInitiallyScheduled=True Scheduled m", "DisruptionTarget=True PreemptionByScheduler preempted for Pods of a higher priority"}},
		"that it was preempted, once":              {before: scheduled + "," + disrupted, preempted: true, want: []string{"PodGroupInitiallyScheduled=True Scheduled m", "DisruptionTarget=True PreemptionByScheduler m"}},
		"that it was preempted, after a restart":   {before: scheduled + "," + disrupted, want: []string{"PodGroupInitiallyScheduled=True Scheduled m", "DisruptionTarget=True PreemptionByScheduler m"}},
		"that it is not preempted any more":        {before: scheduled + "," + disrupted, placed: true, want: []string{"PodGroupInitiallyScheduled=True Scheduled m"}},
		"nothing about the conditions of somebody": {before: ofAnother, said: said(metav1.ConditionTrue, isPlaced, "yes"), want: []string{"PodGroupInitiallyScheduled=True Scheduled yes"}},
	} {
		t.Run(name, func(t *testing.T) {
			version := tc.version
			if version == "" {
				version = "v1beta1"
			}
			group := native(t, version, "", spec, tc.before)
			facts := Facts{Conditions: tc.said, Preempted: tc.preempted, Placed: tc.placed, Now: now.Time}
			next := group.NextStatus(*group.Status, facts)
			if again := group.NextStatus(next, facts); !again.SaysTheSameAs(&next) {
				t.Errorf("told the same, it says %+v and then %+v", next, again)
			}
			write, err := group.WriteOf(&next, "7")
			if err != nil || write.Type != types.ApplyPatchType {
				t.Errorf("it is written by %+v (%v), want an apply to the status", write, err)
			}
			applied := object(t, string(write.Body))
			conditions, _ := applied.Object["status"].(map[string]any)["conditions"].([]any)
			var got []string
			for _, c := range conditions {
				c := c.(map[string]any)
				got = append(got, c["type"].(string)+"="+c["status"].(string)+" "+c["reason"].(string)+" "+c["message"].(string))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want, +got:\n%s", diff)
			}
			if applied.GetResourceVersion() != "7" {
				t.Errorf("it is applied to version %q, want that on which it rests: a scheduler whose watch is late takes back what another one told", applied.GetResourceVersion())
			}
			if applied.GetUID() != "u" || applied.GetAPIVersion() != "scheduling.k8s.io/"+version || applied.GetName() != "jg" || applied.GetNamespace() != "ns" {
				t.Errorf("it is applied to %v", applied.Object["metadata"])
			}
		})
	}
}

// TestASchedulerKnowsWhatTheOneBeforeHasTold: it reads the conditions of PodGroups of Kubernetes
// as those of Lockstep.
func TestASchedulerKnowsWhatTheOneBeforeHasTold(t *testing.T) {
	for name, tc := range map[string]struct {
		by, condition             string
		status                    metav1.ConditionStatus
		wantReason, wantedMessage string
	}{
		"the gang is placed": {"lockstep-scheduler", `"status": "True", "reason": "Scheduled", "message": "m"`, metav1.ConditionTrue, schedulingv1alpha1.ReasonScheduled, "m"},
		"members are missing": {"lockstep-scheduler", `"status": "False", "reason": "Unschedulable", "message": "NotEnoughTasks: 1: 2"`, metav1.ConditionFalse,
			schedulingv1alpha1.ReasonNotEnoughTasks, "1: 2"},
		"kube-scheduler has told it": {"kube-scheduler", `"status": "False", "reason": "Unschedulable", "message": "0/3 nodes are available: 3 full"`, metav1.ConditionFalse,
			schedulingv1alpha1.ReasonNotEnoughResources, "0/3 nodes are available: 3 full"},
		"it is not supported": {"lockstep-scheduler", `"status": "False", "reason": "SchedulerError", "message": "no: never"`, metav1.ConditionFalse, ReasonNotSupported, "no: never"},
	} {
		t.Run(name, func(t *testing.T) {
			metadata := `, "managedFields": [{"manager": "` + tc.by + `", "fieldsV1": {"f:status": {"f:conditions": {"k:{\"type\":\"PodGroupInitiallyScheduled\"}": {}}}}}]`
			group := native(t, "v1beta1", metadata, `{}`, `{"type": "PodGroupInitiallyScheduled", "lastTransitionTime": "2026-01-01T00:00:00Z", `+tc.condition+`}`)
			if group.PhaseBy != tc.by {
				t.Errorf("%q has written it, want %q", group.PhaseBy, tc.by)
			}
			if len(group.Conditions) != 2 {
				t.Fatalf("it has the conditions %+v, want two", group.Conditions)
			}
			first := group.Conditions[0]
			if first.Status != tc.status || first.Reason != tc.wantReason || first.Message != tc.wantedMessage ||
				!first.LastTransitionTime.Equal(&metav1.Time{Time: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}) {
				t.Errorf("it says %+v", first)
			}
			// So the scheduler after it writes nothing, of its own.
			next := group.NextStatus(*group.Status, Facts{Conditions: group.Conditions})
			if group.PhaseBy == "lockstep-scheduler" && !next.SaysTheSameAs(group.Status) {
				t.Errorf("it would say %+v, and it says %+v", next.Native.Scheduled, group.Status.Native.Scheduled)
			}
		})
	}
}
