// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"fmt"
	"strings"
	"time"
	"unicode"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Bounds of KubeflowJobs.
const (
	maxJobNamespaces   = 1000
	maxImage           = 1024
	maxInitCommand     = 16
	maxInitArgument    = 4096
	maxInitTries       = 1_000_000
	minReconcilePeriod = time.Second
	maxReconcilePeriod = 5 * time.Minute
)

func validateKubeflowJobs(c *ControllerConfiguration, path *field.Path) field.ErrorList {
	jobs := c.KubeflowJobs
	errs := oneOf(path.Child("takeJobs"), jobs.TakeJobs, TakeJobsManaged, TakeJobsScheduler, TakeJobsAll)
	errs = append(errs, oneOf(path.Child("gang"), jobs.Gang, GangAuto, GangAlways)...)
	errs = append(errs, oneOf(path.Child("services"), jobs.Services, ServicesPerReplica, ServicesPerJob)...)
	errs = append(errs, validateSchedulerNames(c, path.Child("schedulerNames"), jobs.SchedulerNames, !orNone)...)
	errs = append(errs, validateNamespaces(path.Child("namespaces"), jobs.Namespaces, maxJobNamespaces)...)
	if domain := jobs.CustomClusterDomain; domain != nil && *domain != "" {
		for _, problem := range validation.IsDNS1123Subdomain(*domain) {
			errs = append(errs, field.Invalid(path.Child("customClusterDomain"), *domain, problem))
		}
	}
	if image := jobs.PyTorchInitImage; image != nil && (*image == "" || len(*image) > maxImage || strings.ContainsFunc(*image, unicode.IsSpace)) {
		errs = append(errs, field.Invalid(path.Child("pytorchInitImage"), *image,
			fmt.Sprintf("must have from 1 to %d characters, none of them a space", maxImage)))
	}
	command := path.Child("pytorchInitCommand")
	if n := len(jobs.PyTorchInitCommand); n > maxInitCommand {
		errs = append(errs, field.TooMany(command, n, maxInitCommand))
	}
	for i, argument := range jobs.PyTorchInitCommand {
		if len(argument) > maxInitArgument {
			errs = append(errs, field.TooLong(command.Index(i), "", maxInitArgument))
		}
	}
	errs = append(errs, within(path.Child("pytorchInitMaxTries"), jobs.PyTorchInitMaxTries, 1, maxInitTries)...)
	if period := jobs.ReconcilerSyncLoopPeriod; period != nil && (period.Duration < minReconcilePeriod || period.Duration > maxReconcilePeriod) {
		errs = append(errs, field.Invalid(path.Child("reconcilerSyncLoopPeriod"), period.Duration.String(), "must be from 1s to 5m"))
	}
	return errs
}
