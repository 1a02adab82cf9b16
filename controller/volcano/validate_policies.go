// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package volcano

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
	busv1alpha1 "github.com/lockstep-k8s/lockstep/apis/bus/v1alpha1"
	"github.com/lockstep-k8s/lockstep/controller/jobpods"
)

// policyActions are what policies may ask for, policyEvents what they may act on.
var (
	policyActions = []busv1alpha1.Action{
		busv1alpha1.ActionAbortJob, busv1alpha1.ActionRestartJob, busv1alpha1.ActionTerminateJob, busv1alpha1.ActionCompleteJob,
		busv1alpha1.ActionResumeJob, busv1alpha1.ActionRestartTask, busv1alpha1.ActionRestartPod, busv1alpha1.ActionRestartPartition,
	}
	policyEvents = []busv1alpha1.Event{
		busv1alpha1.EventAny, busv1alpha1.EventPodFailed, busv1alpha1.EventPodEvicted, busv1alpha1.EventPodPending,
		busv1alpha1.EventTaskCompleted, busv1alpha1.EventTaskFailed, busv1alpha1.EventUnknown, busv1alpha1.EventJobUpdated,
	}
)

// eventsOf returns the events of a policy: the one and the several.
func eventsOf(policy *batchv1alpha1.LifecyclePolicy) sets.Set[busv1alpha1.Event] {
	events := sets.New(policy.Events...)
	if policy.Event != "" {
		events.Insert(policy.Event)
	}
	return events
}

// validatePolicies finds what is wrong with a list of policies.
func validatePolicies(policies []batchv1alpha1.LifecyclePolicy, path *field.Path) field.ErrorList {
	if errs := tooMany(path, len(policies), maxPolicies); len(errs) > 0 {
		return errs
	}
	var errs field.ErrorList
	codes, events := map[int32]int{}, map[busv1alpha1.Event]int{}
	for i := range policies {
		policy := &policies[i]
		if problems := tooMany(path.Index(i).Child("events"), len(policy.Events), maxEvents); len(problems) > 0 {
			errs = append(errs, problems...)
			continue // To look at each of them would take too long.
		}
		errs = append(errs, validatePolicy(policy, path.Index(i))...)
		if policy.ExitCode != nil {
			codes[*policy.ExitCode]++
		}
		for event := range eventsOf(policy) {
			events[event]++
		}
	}
	if mostOf(codes) > 1 {
		errs = append(errs, field.Invalid(path, field.OmitValueType{}, "duplicate exitCode: every policy needs codes and events of its own"))
	}
	if mostOf(events) > 1 {
		errs = append(errs, field.Invalid(path, field.OmitValueType{}, "duplicate event: every policy needs codes and events of its own"))
	}
	if events[busv1alpha1.EventAny] > 0 && len(events) > 1 {
		errs = append(errs, field.Invalid(path, field.OmitValueType{}, "if there's * here, no other policy should be here"))
	}
	return errs
}

func mostOf[K comparable](counts map[K]int) int {
	most := 0
	for _, n := range counts {
		most = max(most, n)
	}
	return most
}

func validatePolicy(policy *batchv1alpha1.LifecyclePolicy, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if !slices.Contains(policyActions, policy.Action) {
		errs = append(errs, field.Invalid(path, policy.Action,
			"invalid policy action: must be AbortJob, RestartJob, TerminateJob, CompleteJob, ResumeJob, RestartTask, RestartPod or RestartPartition"))
	}
	events := eventsOf(policy)
	switch {
	case policy.ExitCode != nil && len(events) > 0:
		errs = append(errs, field.Invalid(path, *policy.ExitCode, "must not specify event and exitCode simultaneously"))
	case policy.ExitCode == nil && len(events) == 0:
		errs = append(errs, field.Invalid(path, nil, "either event and exitCode should be specified"))
	}
	if policy.ExitCode != nil && *policy.ExitCode == 0 {
		errs = append(errs, field.Invalid(path.Child("exitCode"), 0, "0 is not a valid error code"))
	}
	if policy.Event != "" {
		errs = append(errs, jobpods.OneOf(path.Child("event"), policy.Event, policyEvents...)...)
	}
	for i, event := range policy.Events {
		errs = append(errs, jobpods.OneOf(path.Child("events").Index(i), event, policyEvents...)...)
	}
	if policy.Timeout != nil {
		errs = append(errs, validateDuration(*policy.Timeout, path.Child("timeout"))...)
	}
	return errs
}

// validateDuration finds what is wrong with a span of time.
func validateDuration(duration batchv1alpha1.Duration, path *field.Path) field.ErrorList {
	if errs := tooLong(path, string(duration), maxDuration); len(errs) > 0 {
		return errs
	}
	if d, err := time.ParseDuration(string(duration)); err != nil || d < 0 {
		return field.ErrorList{field.Invalid(path, duration, "must be a span of time like 1h30m or 90s, not negative and of at most 290 years")}
	}
	return nil
}
