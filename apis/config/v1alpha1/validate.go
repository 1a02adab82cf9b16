// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Validate checks every value that is set against its legal range, and returns
// all that is wrong with key, value and range. Legal ranges are those of
// FrameworkController's configuration and, for Lockstep's own keys, those at the
// fields.
func Validate(c *ControllerConfiguration) field.ErrorList {
	errs := validateClient(c)
	errs = append(errs, validateTimes(c)...)
	errs = append(errs, validateGang(c)...)
	errs = append(errs, validateNamespaces(field.NewPath("namespaces"), c.Namespaces, maxNamespaces)...)
	errs = append(errs, validateVolcanoJobs(c, field.NewPath("volcanoJobs"))...)
	errs = append(errs, validateKubeflowJobs(c, field.NewPath("kubeflowJobs"))...)
	errs = append(errs, validateTracing(c.Tracing, field.NewPath("tracing"))...)
	errs = append(errs, validateMaskEnv(c.LogObjectSnapshot.MaskEnv, field.NewPath("logObjectSnapshot", "maskEnv"))...)
	errs = append(errs, validatePodFailureSpec(c.PodFailureSpec, field.NewPath("podFailureSpec"))...)
	return errs
}

func validateClient(c *ControllerConfiguration) field.ErrorList {
	var errs field.ErrorList
	if address := c.KubeAPIServerAddress; address != nil && *address != "" && !isServerAddress(*address) {
		errs = append(errs, field.Invalid(field.NewPath("kubeApiServerAddress"), *address, "must be http://host:port or https://host:port"))
	}
	if qps := c.KubeClientQPS; qps != nil && (*qps <= 0 || *qps > 10000) {
		errs = append(errs, field.Invalid(field.NewPath("kubeClientQps"), *qps, "must be more than 0 and at most 10000"))
	}
	errs = append(errs, within(field.NewPath("kubeClientBurst"), c.KubeClientBurst, 0, 10000)...)
	errs = append(errs, atLeast(field.NewPath("workerNumber"), c.WorkerNumber, 1)...)
	return errs
}

func validateTimes(c *ControllerConfiguration) field.ErrorList {
	minDelay := c.FrameworkMinRetryDelaySecForTransientConflictFailed
	maxDelay := c.FrameworkMaxRetryDelaySecForTransientConflictFailed
	maxDelayPath := field.NewPath("frameworkMaxRetryDelaySecForTransientConflictFailed")

	errs := within(field.NewPath("frameworkHistoryLimit"), c.FrameworkHistoryLimit, 0, 20)
	errs = append(errs, atLeast(field.NewPath("crdEstablishedCheckIntervalSec"), c.CRDEstablishedCheckIntervalSec, 1)...)
	errs = append(errs, atLeast(field.NewPath("crdEstablishedCheckTimeoutSec"), c.CRDEstablishedCheckTimeoutSec, 10)...)
	errs = append(errs, atLeast(field.NewPath("objectLocalCacheCreationTimeoutSec"), c.ObjectLocalCacheCreationTimeoutSec, 60)...)
	errs = append(errs, atLeast(field.NewPath("frameworkMinRetryDelaySecForTransientConflictFailed"), minDelay, 0)...)
	switch {
	case maxDelay == nil:
	case minDelay != nil && *minDelay >= 0 && *maxDelay < *minDelay:
		errs = append(errs, field.Invalid(maxDelayPath, *maxDelay,
			fmt.Sprintf("must be at least frameworkMinRetryDelaySecForTransientConflictFailed, which is %d", *minDelay)))
	default:
		errs = append(errs, atLeast(maxDelayPath, maxDelay, 0)...)
	}
	if window := c.StatusCoalesceWindow; window != nil && (window.Duration < 0 || window.Duration > time.Minute) {
		errs = append(errs, field.Invalid(field.NewPath("statusCoalesceWindow"), window.Duration.String(), "must be from 0s to 1m"))
	}
	return errs
}

func validateGang(c *ControllerConfiguration) field.ErrorList {
	errs := within(field.NewPath("podBatchSize"), c.PodBatchSize, 1, 1000)
	errs = append(errs, oneOf(field.NewPath("unknownFields"), c.UnknownFields, UnknownFieldsWarn, UnknownFieldsRefuse)...)
	names := []struct {
		path  *field.Path
		value *string
		check func(string) []string
	}{
		{field.NewPath("gangSchedulerName"), c.GangSchedulerName, validation.IsDNS1123Subdomain},
		{field.NewPath("leaderElection", "namespace"), c.LeaderElection.Namespace, validation.IsDNS1123Label},
		{field.NewPath("leaderElection", "name"), c.LeaderElection.Name, validation.IsDNS1123Subdomain},
	}
	for _, name := range names {
		if name.value == nil {
			continue
		}
		for _, problem := range name.check(*name.value) {
			errs = append(errs, field.Invalid(name.path, *name.value, problem))
		}
	}
	return errs
}

// isServerAddress says whether an address is a scheme, a host and a port, and
// nothing else.
func isServerAddress(address string) bool {
	u, err := url.Parse(address)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "" {
		return false
	}
	port, err := strconv.ParseUint(u.Port(), 10, 16)
	return err == nil && port > 0 && address == u.Scheme+"://"+u.Host
}

func atLeast[T cmp.Ordered](path *field.Path, value *T, least T) field.ErrorList {
	if value == nil || *value >= least {
		return nil
	}
	return field.ErrorList{field.Invalid(path, *value, fmt.Sprintf("must be at least %v", least))}
}

func within[T cmp.Ordered](path *field.Path, value *T, least, most T) field.ErrorList {
	if value == nil || (*value >= least && *value <= most) {
		return nil
	}
	return field.ErrorList{field.Invalid(path, *value, fmt.Sprintf("must be from %v to %v", least, most))}
}

// oneOf wants a value that is set to be one of those that there are.
func oneOf[T ~string](path *field.Path, value *T, values ...T) field.ErrorList {
	if value == nil || slices.Contains(values, *value) {
		return nil
	}
	return field.ErrorList{field.NotSupported(path, *value, values)}
}
