// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeflow

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	kubeflowv1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v1"
	"github.com/lockstep-k8s/lockstep/controller/jobpods"
	"github.com/lockstep-k8s/lockstep/internal/text"
)

// Validate returns what is wrong with a job. Lockstep's CRDs refuse such a job, except for errors that show only when a
// template is decoded. A CRD of another product may accept anything.
//
// Validate does not check that immutable fields are unchanged, which needs the earlier job.
func Validate(job *Job) field.ErrorList {
	_, errs := validate(job, kindOf(job, job.Spec.CreatedAs))
	return errs
}

// templates are the decoded templates of replicas, by type as the user has written it. No other job shares these
// templates, so they may be changed.
type templates map[string]*corev1.PodTemplateSpec

// validate is Validate for a job of a given kind. validate also returns the templates that it has decoded, because
// decoding takes long; for a valid job they are complete.
func validate(job *Job, k *kind) (templates, field.ErrorList) {
	if k == nil {
		return nil, field.ErrorList{field.NotSupported(field.NewPath("kind"), job.Kind, kindNames())}
	}
	errs := validateName(job, k)
	path := field.NewPath("spec")
	decoded, problems := validateReplicas(job, k, path.Child(k.field))
	errs = append(errs, problems...)
	errs = append(errs, validateRunPolicy(&job.Spec.RunPolicy, k.freeManager(), path.Child("runPolicy"))...)
	if k.validate != nil {
		errs = append(errs, k.validate(&job.Spec, path)...)
	}
	return decoded, errs
}

// kindNames are those of all kinds.
func kindNames() []string {
	var names []string
	for _, k := range allKinds() {
		names = append(names, k.gvk.Kind)
	}
	return names
}

// validateName asks for names of Pods and Services that can be had.
func validateName(job *Job, k *kind) field.ErrorList {
	var errs field.ErrorList
	path := field.NewPath("metadata", "name")
	if len(validation.IsDNS1035Label(job.Name)) > 0 {
		errs = append(errs, field.Invalid(path, job.Name, "metadata.name must begin with a lower-case letter, have only such letters, digits and hyphens, and end with a letter or digit, because Services are named by it"))
	}
	for name, spec := range job.Spec.Replicas {
		highest := replicasOf(&spec)
		rest := len(strconv.Itoa(int(highest))) + 2
		if k.designed {
			rest += uidLength + 1
		} else {
			rest = len(strconv.Itoa(int(max(0, highest-1)))) + 2
		}
		if k.isUnnumbered(name) {
			rest = 1
		}
		if len(job.Name)+len(name)+rest > validation.DNS1035LabelMaxLength {
			return append(errs, field.Invalid(path, job.Name, "metadata.name must be so short that the names of Pods and Services, which have the type and the index behind it, have at most 63 characters"))
		}
	}
	return errs
}

// replicasOf returns how many replicas a type has.
func replicasOf(spec *kubeflowv1.ReplicaSpec) int32 { return ptr.Deref(spec.Replicas, 1) }

// validateReplicas looks at the types, together and each by itself.
func validateReplicas(job *Job, k *kind, path *field.Path) (templates, field.ErrorList) {
	if len(job.Spec.Replicas) == 0 {
		return nil, field.ErrorList{field.Required(path, "at least one type is needed")}
	}
	invalid := func(format string, args ...any) field.ErrorList {
		return field.ErrorList{field.Invalid(path, nil, fmt.Sprintf(format, args...))}
	}
	var errs field.ErrorList
	total := int64(0)
	given, decoded := map[string]int32{}, templates{}
	unnamed := false
	for _, name := range jobpods.SortedKeys(job.Spec.Replicas) {
		spec := job.Spec.Replicas[name]
		t := k.typeOf(name)
		switch _, twice := given[t]; {
		case t == "" && k.designed:
			return nil, invalid("types of v1alpha2 must be PS, Worker or Local")
		case t == "" && k == tfJob:
			return nil, invalid("types must be PS, Worker, Chief, Master or Evaluator")
		case t == "":
			return nil, invalid("types must be %s", strings.Join(k.types, " or "))
		case twice:
			return nil, invalid("types must differ in more than upper and lower case")
		}
		given[t] = replicasOf(&spec)
		total += int64(max(0, given[t]))
		errs = append(errs, jobpods.AtLeast(path.Child(name, "replicas"), int64(given[t]), 0)...)
		errs = append(errs, jobpods.OneOf(path.Child(name, "restartPolicy"), spec.RestartPolicy,
			"", kubeflowv1.RestartAlways, kubeflowv1.RestartOnFailure, kubeflowv1.RestartNever, kubeflowv1.RestartExitCode)...)
		template, problems := validateTemplate(spec.Template.Raw, path.Child(name, "template"))
		errs = append(errs, problems...)
		decoded[name] = template
		unnamed = unnamed || len(problems) == 0 && k.container != "" && k.namedContainer(&template.Spec) < 0 && !k.designed
	}
	if unnamed {
		errs = append(errs, invalid("every template needs a container named %s", k.container)...)
	}
	if total > kubeflowv1.MaxReplicas {
		errs = append(errs, invalid("must have at most %d replicas, which is their sum over all types", kubeflowv1.MaxReplicas)...)
	}
	if len(errs) == 0 {
		errs = validateDecider(job, k, given, invalid)
	}
	return decoded, errs
}

// validateDecider wants a type that decides when the job succeeds.
func validateDecider(job *Job, k *kind, given map[string]int32, invalid func(string, ...any) field.ErrorList) field.ErrorList {
	for _, t := range k.required {
		if _, isThere := given[t]; !isThere {
			return invalid("%s decides when the job succeeds, and has to be there", t)
		}
	}
	for _, t := range k.lone {
		n, isThere := given[t]
		switch isWritten := job.Spec.Replicas[t].Replicas != nil; {
		case isThere && n != 1 && k.launches:
			return invalid("%s needs replicas: 1", t)
		case isThere && (n != 1 || !isWritten) && !k.launches:
			return invalid("%s needs replicas: 1, written out", t)
		}
	}
	worker, hasWorker := given[kubeflowv1.ReplicaWorker]
	if (k == pyTorchJob || k.launches) && hasWorker && worker < 1 {
		return invalid("Worker needs at least 1 replica")
	}
	leads, sum := 0, int32(0)
	for t, n := range given {
		sum += n
		if !slices.Contains(k.leaders, t) {
			continue
		}
		if n < 1 {
			return invalid("%s decides when the job succeeds, and needs at least 1 replica", strings.Join(k.leaders, " or "))
		}
		leads++
	}
	switch {
	case leads > 1:
		return invalid("at most one of %s may be there", strings.Join(k.leaders, " and "))
	case leads == 0 && hasWorker && worker < 1 && !k.designed:
		return invalid("Worker decides when the job succeeds, and needs at least 1 replica")
	case sum < 1:
		return invalid("at least 1 replica is needed")
	}
	return nil
}

// validateTemplate looks at what Pods are made of. Without errors there is a template.
func validateTemplate(raw []byte, path *field.Path) (template *corev1.PodTemplateSpec, errs field.ErrorList) {
	if len(raw) == 0 {
		return nil, field.ErrorList{field.Required(path, "a template of Pods is needed")}
	}
	template, err := jobpods.DecodeTemplate(raw)
	if err != nil {
		return nil, field.ErrorList{field.Invalid(path, nil, err.Error())}
	}
	containers := path.Child("spec", "containers")
	if n := len(template.Spec.Containers); n > kubeflowv1.MaxContainers {
		errs = append(errs, field.TooMany(containers, n, kubeflowv1.MaxContainers))
	}
	for i, c := range template.Spec.Containers {
		if c.Image == "" {
			errs = append(errs, field.Required(containers.Index(i).Child("image"), "every container needs an image"))
		}
	}
	return template, errs
}

// freeManager returns the value of managedBy with which this controller runs a job of the kind. The controller also
// runs jobs without managedBy.
func (k *kind) freeManager() string {
	if k.launches {
		return kubeflowv1.ManagedByMPIOperator
	}
	return kubeflowv1.ManagedByTrainingOperator
}

func validateRunPolicy(policy *kubeflowv1.RunPolicy, freeManager string, path *field.Path) field.ErrorList {
	errs := jobpods.OneOf(path.Child("cleanPodPolicy"), ptr.Deref(policy.CleanPodPolicy, ""),
		"", kubeflowv1.CleanPodPolicyAll, kubeflowv1.CleanPodPolicyRunning, kubeflowv1.CleanPodPolicyNone)
	errs = append(errs, jobpods.OneOf(path.Child("managedBy"), ptr.Deref(policy.ManagedBy, ""),
		"", kubeflowv1.ManagedByLockstep, freeManager, kubeflowv1.ManagedByMultiKueue)...)
	errs = append(errs, jobpods.AtLeastIfSet(path.Child("ttlSecondsAfterFinished"), policy.TTLSecondsAfterFinished, 0)...)
	if n := policy.ActiveDeadlineSeconds; n != nil {
		errs = append(errs, jobpods.AtLeast(path.Child("activeDeadlineSeconds"), *n, 0)...)
		if *n > maxDeadlineSeconds {
			errs = append(errs, field.Invalid(path.Child("activeDeadlineSeconds"), *n, fmt.Sprintf("must be at most %d", int64(maxDeadlineSeconds))))
		}
	}
	errs = append(errs, jobpods.AtLeastIfSet(path.Child("backoffLimit"), policy.BackoffLimit, 0)...)
	if scheduling := policy.SchedulingPolicy; scheduling != nil {
		path := path.Child("schedulingPolicy")
		errs = append(errs, jobpods.AtLeastIfSet(path.Child("minAvailable"), scheduling.MinAvailable, 1)...)
		errs = append(errs, jobpods.AtLeastIfSet(path.Child("scheduleTimeoutSeconds"), scheduling.ScheduleTimeoutSeconds, 0)...)
		errs = append(errs, validateAmounts(scheduling.MinResources, path.Child("minResources"))...)
		errs = append(errs, jobpods.Subdomain(path.Child("queue"), scheduling.Queue)...)
		errs = append(errs, jobpods.Subdomain(path.Child("priorityClass"), scheduling.PriorityClass)...)
	}
	return errs
}

// amountPattern is the pattern of amounts in the CRDs. maxAmount bounds an amount, and maxAmounts their number.
var amountPattern = regexp.MustCompile(`^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]{1,3})?$`)

const (
	maxAmount  = 64
	maxAmounts = 64
)

// validateAmounts checks quantities without parsing them.
func validateAmounts(amounts map[corev1.ResourceName]kubeflowv1.Amount, path *field.Path) field.ErrorList {
	if n := len(amounts); n > maxAmounts {
		return field.ErrorList{field.TooMany(path, n, maxAmounts)}
	}
	var errs field.ErrorList
	for _, name := range jobpods.SortedKeys(amounts) {
		if amount := string(amounts[name]); len(amount) > maxAmount || !amountPattern.MatchString(amount) {
			errs = append(errs, field.Invalid(path.Child(string(name)), text.Cut(amount, maxAmount),
				"must be a quantity of at most 64 characters, with an exponent from -999 to 999"))
		}
	}
	return errs
}

// maxDeadlineSeconds is the longest span of time that there is a number for.
const maxDeadlineSeconds = 9223372036

var nprocPerNode = regexp.MustCompile(`^(auto|gpu|cpu|[1-9][0-9]*)$`)

// validateSuccessPolicy looks at what only TFJobs have.
func validateSuccessPolicy(spec *Spec, path *field.Path) field.ErrorList {
	return jobpods.OneOf(path.Child("successPolicy"), spec.SuccessPolicy, kubeflowv1.SuccessPolicyDefault, kubeflowv1.SuccessPolicyAllWorkers)
}

// validateTorch looks at what only PyTorchJobs have, and at their elasticPolicy.
func validateTorch(spec *Spec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if n := spec.NprocPerNode; n != nil && (len(*n) > 10 || !nprocPerNode.MatchString(*n)) {
		errs = append(errs, field.Invalid(path.Child("nprocPerNode"), *n, "must be auto, gpu, cpu or a number"))
	}
	if policy := spec.ElasticPolicy; policy != nil && spec.NprocPerNode != nil && policy.NProcPerNode != nil {
		errs = append(errs, field.Invalid(path.Child("nprocPerNode"), *spec.NprocPerNode, "must not be set together with elasticPolicy.nProcPerNode"))
	}
	return append(errs, validateElasticity(spec, path)...)
}

// validateElasticity looks at the elasticPolicy of any kind, if there is one.
func validateElasticity(spec *Spec, path *field.Path) field.ErrorList {
	policy := spec.ElasticPolicy
	if policy == nil {
		return nil
	}
	var errs field.ErrorList
	if _, ok := spec.Replicas[kubeflowv1.ReplicaWorker]; !ok {
		errs = append(errs, field.Invalid(path.Child("elasticPolicy"), nil, "needs the type Worker"))
	}
	path = path.Child("elasticPolicy")
	errs = append(errs, jobpods.AtLeastIfSet(path.Child("minReplicas"), policy.MinReplicas, 1)...)
	errs = append(errs, jobpods.AtLeastIfSet(path.Child("maxReplicas"), policy.MaxReplicas, 1)...)
	errs = append(errs, jobpods.AtLeastIfSet(path.Child("nProcPerNode"), policy.NProcPerNode, 1)...)
	errs = append(errs, jobpods.AtLeastIfSet(path.Child("rdzvPort"), policy.RDZVPort, 1)...)
	errs = append(errs, jobpods.AtLeastIfSet(path.Child("maxRestarts"), policy.MaxRestarts, 0)...)
	if policy.MinReplicas != nil && policy.MaxReplicas != nil && *policy.MinReplicas > *policy.MaxReplicas {
		errs = append(errs, field.Invalid(path.Child("minReplicas"), *policy.MinReplicas, "must be at most maxReplicas"))
	}
	errs = append(errs, jobpods.OneOf(path.Child("rdzvBackend"), ptr.Deref(policy.RDZVBackend, kubeflowv1.RDZVBackendC10D),
		kubeflowv1.RDZVBackendC10D, kubeflowv1.RDZVBackendETCD, kubeflowv1.RDZVBackendETCDV2)...)
	errs = append(errs, validateRendezvous(policy, path)...)
	if _, err := metricsOf(policy); err != nil {
		errs = append(errs, field.Invalid(path.Child("metrics"), nil, err.Error()))
	}
	return errs
}

// Bounds of the rendezvous texts, as in the CRD.
const (
	maxRendezvousHost = validation.DNS1123SubdomainMaxLength
	maxRendezvousText = 1024
	maxRendezvousConf = 64
)

// validateRendezvous checks texts that every container of every Pod gets.
func validateRendezvous(policy *kubeflowv1.ElasticPolicy, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	atMost := func(path *field.Path, value *string, most int) {
		if value != nil && len(*value) > most {
			errs = append(errs, field.TooLong(path, "", most))
		}
	}
	atMost(path.Child("rdzvHost"), policy.RDZVHost, maxRendezvousHost)
	atMost(path.Child("rdzvId"), policy.RDZVID, maxRendezvousText)
	conf := path.Child("rdzvConf")
	if n := len(policy.RDZVConf); n > maxRendezvousConf {
		return append(errs, field.TooMany(conf, n, maxRendezvousConf))
	}
	for i := range policy.RDZVConf {
		atMost(conf.Index(i).Child("key"), &policy.RDZVConf[i].Key, maxRendezvousText)
		atMost(conf.Index(i).Child("value"), &policy.RDZVConf[i].Value, maxRendezvousText)
	}
	return errs
}
