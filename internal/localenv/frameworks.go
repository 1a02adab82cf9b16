// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package localenv

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
)

// PodsOf lists the Pods of a Framework.
func (c *Cluster) PodsOf(ctx context.Context, namespace, framework string) ([]corev1.Pod, error) {
	pods, err := c.Kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: frameworkv1.KeyFrameworkName + "=" + framework})
	if err != nil {
		return nil, err
	}
	return pods.Items, nil
}

// DescribeFramework says in a line where a Framework is.
func DescribeFramework(fw *frameworkv1.Framework) string {
	s := fw.Status
	if s == nil {
		return fw.Name + ": no status yet"
	}
	line := fmt.Sprintf("%s: %s, attempt %d, retries %d (%d accountable)", fw.Name, s.State, s.AttemptStatus.ID,
		s.RetryPolicyStatus.TotalRetriedCount, s.RetryPolicyStatus.AccountableRetriedCount)
	if s.Tasks != nil {
		line += fmt.Sprintf(", tasks %+v", *s.Tasks)
	}
	if done := s.AttemptStatus.CompletionStatus; done != nil {
		line += fmt.Sprintf(", completion %d %s: %s", done.Code, done.Phrase, done.Diagnostics)
	}
	if group := s.AttemptStatus.PodGroup; group != nil {
		line += fmt.Sprintf(", PodGroup %s %d/%d", group.Phase, group.Scheduled, group.MinMember)
		if group.Unschedulable != nil {
			line += " (" + group.Unschedulable.Reason + ": " + group.Unschedulable.Message + ")"
		}
	}
	return line
}
