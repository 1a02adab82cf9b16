// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
)

// CoschedulingArgsKind is the kind of CoschedulingArgs.
const CoschedulingArgsKind = "CoschedulingArgs"

// maxCoschedulingBackoff bounds the back-offs of CoschedulingArgs.
const maxCoschedulingBackoff = time.Hour

// SetDefaultsCoschedulingArgs fills in what is not set.
func SetDefaultsCoschedulingArgs(args *CoschedulingArgs) {
	setDuration := func(d **metav1.Duration, value time.Duration) {
		if *d == nil {
			*d = &metav1.Duration{Duration: value}
		}
	}
	setDuration(&args.InitialBackoff, time.Second)
	// An initial back-off above the default maximum raises the maximum.
	setDuration(&args.MaxBackoff, max(10*time.Second, args.InitialBackoff.Duration))
	setDuration(&args.CycleTimeout, 2*time.Second)
	if args.BindParallelism == nil {
		args.BindParallelism = ptr.To[int32](64)
	}
	if args.BindRetries == nil {
		args.BindRetries = ptr.To[int32](3)
	}
	for _, mode := range []*PodGroupAPIMode{&args.PodGroupAPIs.SchedulerPlugins.Mode, &args.PodGroupAPIs.Native.Mode, &args.PodGroupAPIs.Volcano.Mode} {
		if *mode == "" {
			*mode = PodGroupAPIAuto
		}
	}
	if args.PodGroupAPIs.Volcano.Claim == "" {
		args.PodGroupAPIs.Volcano.Claim = ClaimAll
	}
	if args.PodGroupAPIs.Volcano.UnlinkedPods == "" {
		args.PodGroupAPIs.Volcano.UnlinkedPods = UnlinkedSchedule
	}
	setReservationsDefaults(&args.Reservations)
	setDefault(&args.Backfill.Estimates, true)
	setDefault(&args.Backfill.PreemptOverrun, false)
	setDefault(&args.Preemption.MinRuntimeSeconds, 0)
	setDuration(&args.ExpectedStarts.Interval, time.Minute)
}

// ValidateCoschedulingArgs says what is out of range in arguments whose defaults
// are set.
func ValidateCoschedulingArgs(args *CoschedulingArgs) field.ErrorList {
	var errs field.ErrorList
	durationIn := func(name string, d, least, most time.Duration) {
		if d < least || d > most {
			errs = append(errs, field.Invalid(field.NewPath(name), d.String(), fmt.Sprintf("must be from %s to %s", least, most)))
		}
	}
	numberIn := func(name string, n, least, most int32) {
		if n < least || n > most {
			errs = append(errs, field.Invalid(field.NewPath(name), n, fmt.Sprintf("must be from %d to %d", least, most)))
		}
	}
	durationIn("initialBackoff", args.InitialBackoff.Duration, 0, maxCoschedulingBackoff)
	durationIn("maxBackoff", args.MaxBackoff.Duration, max(0, args.InitialBackoff.Duration), maxCoschedulingBackoff)
	durationIn("cycleTimeout", args.CycleTimeout.Duration, 100*time.Millisecond, time.Minute)
	numberIn("bindParallelism", *args.BindParallelism, 1, 1000)
	numberIn("bindRetries", *args.BindRetries, 0, 10)
	numberIn("preemption.minRuntimeSeconds", *args.Preemption.MinRuntimeSeconds, 0, schedulingv1alpha1.MaxRuntimeSeconds)
	if interval := args.ExpectedStarts.Interval.Duration; interval != 0 {
		durationIn("expectedStarts.interval", interval, 10*time.Second, time.Hour)
	}
	errs = append(errs, validatePodGroupAPIs(&args.PodGroupAPIs, field.NewPath("podGroupAPIs"))...)
	errs = append(errs, validateRules(args.GroupingRules, field.NewPath("groupingRules"))...)
	return append(errs, validateReservations(&args.Reservations, field.NewPath("reservations"))...)
}

// validatePodGroupAPIs returns what is wrong with podGroupAPIs.
func validatePodGroupAPIs(apis *PodGroupAPIs, path *field.Path) field.ErrorList {
	volcano := path.Child("volcano")
	return slices.Concat(
		oneOf(path.Child("schedulerPlugins", "mode"), &apis.SchedulerPlugins.Mode, PodGroupAPIAuto, PodGroupAPIOn, PodGroupAPIOff),
		oneOf(path.Child("native", "mode"), &apis.Native.Mode, PodGroupAPIAuto, PodGroupAPIOn, PodGroupAPIOff),
		oneOf(volcano.Child("mode"), &apis.Volcano.Mode, PodGroupAPIAuto, PodGroupAPIOn, PodGroupAPIOff),
		oneOf(volcano.Child("claim"), &apis.Volcano.Claim, ClaimAll, ClaimNone),
		oneOf(volcano.Child("unlinkedPods"), &apis.Volcano.UnlinkedPods, UnlinkedSchedule, UnlinkedWait),
		validateTiers(apis.Volcano.Tiers, volcano.Child("tiers")),
	)
}

// maxTiers bounds the tiers of a network topology.
const maxTiers = 16

// validateTiers says what is wrong with tiers: each has a number of its own, and a label.
func validateTiers(tiers []Tier, path *field.Path) field.ErrorList {
	if len(tiers) > maxTiers {
		return field.ErrorList{field.TooMany(path, len(tiers), maxTiers)}
	}
	var errs field.ErrorList
	numbers, names := sets.New[int32](), sets.New[string]()
	for i, tier := range tiers {
		at := path.Index(i)
		errs = append(errs, atLeast(at.Child("tier"), &tier.Tier, 0)...)
		if numbers.Has(tier.Tier) {
			errs = append(errs, field.Duplicate(at.Child("tier"), tier.Tier))
		}
		if tier.Name != "" && names.Has(tier.Name) {
			errs = append(errs, field.Duplicate(at.Child("name"), tier.Name))
		}
		numbers.Insert(tier.Tier)
		names.Insert(tier.Name)
		for _, problem := range validation.IsQualifiedName(tier.Key) {
			errs = append(errs, field.Invalid(at.Child("key"), tier.Key, problem))
		}
	}
	return errs
}

// validateRules says which rules there are not, and which are there twice.
func validateRules(rules []GroupingRule, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, rule := range rules {
		switch {
		case !slices.Contains(GroupingRules(), rule):
			errs = append(errs, field.NotSupported(path.Index(i), rule, GroupingRules()))
		case slices.Contains(rules[:i], rule):
			errs = append(errs, field.Duplicate(path.Index(i), rule))
		}
	}
	return errs
}

// DecodeCoschedulingArgs reads the arguments that a scheduler hands to its
// plugin: nil for none, the typed arguments, or their JSON. It returns a copy
// with defaults set. An unknown field, a value of the wrong type and one that is
// out of range are errors that name the field.
func DecodeCoschedulingArgs(obj runtime.Object) (*CoschedulingArgs, error) {
	args := &CoschedulingArgs{}
	switch given := obj.(type) {
	case nil:
	case *CoschedulingArgs:
		args = given.DeepCopy()
	case *runtime.Unknown:
		if err := renamedFields(given.Raw); err != nil {
			return nil, err
		}
		if err := yaml.UnmarshalStrict(given.Raw, args); err != nil {
			return nil, fmt.Errorf("reading %s: %w", CoschedulingArgsKind, err)
		}
	default:
		return nil, fmt.Errorf("want arguments of kind %s, got %T", CoschedulingArgsKind, obj)
	}
	if args.Kind != "" && args.Kind != CoschedulingArgsKind {
		return nil, fmt.Errorf("want arguments of kind %s, got %q", CoschedulingArgsKind, args.Kind)
	}
	if args.APIVersion != "" && args.APIVersion != SchemeGroupVersion.String() &&
		args.APIVersion != kubeSchedulerConfigurationV1 {
		return nil, fmt.Errorf("want arguments of apiVersion %s, got %q", SchemeGroupVersion, args.APIVersion)
	}
	SetDefaultsCoschedulingArgs(args)
	if errs := ValidateCoschedulingArgs(args); len(errs) > 0 {
		return nil, errs.ToAggregate()
	}
	return args, nil
}

// kubeSchedulerConfigurationV1 is the apiVersion of the file around the
// arguments, which people write in them too, and which the scheduler itself
// fills in when it is missing.
const kubeSchedulerConfigurationV1 = "kubescheduler.config.k8s.io/v1"
