// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"fmt"
	"strings"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/internal/text"
)

// policies says in words what the policies of a Framework's spec mean, in one sentence for each.
func policies(fw *frameworkv1.Framework) []string {
	said := []string{"The Framework " + retries(fw.Spec.RetryPolicy) + "."}
	if gang := fw.Spec.Gang; gang != nil {
		what := "All tasks are placed together, or none."
		if gang.MinMember != nil {
			what = fmt.Sprintf("At least %d tasks are placed together, or none.", *gang.MinMember)
		}
		if gang.ScheduleTimeoutSeconds != nil {
			what += fmt.Sprintf(" An attempt that is not placed within %d s fails.", *gang.ScheduleTimeoutSeconds)
		}
		said = append(said, what)
	}
	for i, role := range fw.Spec.TaskRoles {
		if i == maxRolesInWords {
			said = append(said, fmt.Sprintf("%d more roles are not described here.", len(fw.Spec.TaskRoles)-i))
			break
		}
		said = append(said, fmt.Sprintf("%s: %s; each task %s.", role.Name, completes(role.FrameworkAttemptCompletionPolicy), retries(role.Task.RetryPolicy)))
	}
	return said
}

// maxRolesInWords bounds how many roles are described.
const maxRolesInWords = 16

func retries(p frameworkv1.RetryPolicySpec) string {
	counted := fmt.Sprintf("is retried at most %d times", p.MaxRetryCount)
	switch {
	case p.MaxRetryCount == frameworkv1.AlwaysRetry:
		counted = "is always run again, even after a success"
	case p.MaxRetryCount == frameworkv1.UnlimitedRetry:
		counted = "is retried after every failure"
	case p.MaxRetryCount == 0:
		counted = "is not retried"
	case p.MaxRetryCount == 1:
		counted = "is retried at most once"
	}
	if p.FancyRetryPolicy && p.MaxRetryCount == 0 {
		return "is retried after transient failures alone"
	}
	if p.FancyRetryPolicy {
		return counted + "; after a transient failure always, after a permanent one never"
	}
	return counted
}

func completes(p frameworkv1.CompletionPolicySpec) string {
	var rules []string
	failed, succeeded := int32(1), int32(-1)
	if p.MinFailedTaskCount != nil {
		failed = *p.MinFailedTaskCount
	}
	if p.MinSucceededTaskCount != nil {
		succeeded = *p.MinSucceededTaskCount
	}
	if failed > 0 {
		rules = append(rules, fmt.Sprintf("%d failed %s the attempt", failed, text.Form(int(failed), "task fails", "tasks fail")))
	}
	if succeeded > 0 {
		rules = append(rules, fmt.Sprintf("%d succeeded %s it with success", succeeded, text.Form(int(succeeded), "task ends", "tasks end")))
	}
	if rules == nil {
		return "no number of its tasks ends the attempt early"
	}
	return strings.Join(rules, ", ")
}
