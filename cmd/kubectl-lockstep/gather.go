// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/internal/view"
)

// maxEvents is how many events one request asks for.
const maxEvents = 200

// framework reads a Framework of the session's namespace.
func (c *cluster) framework(ctx context.Context, name string) (*frameworkv1.Framework, error) {
	return c.lockstep.FrameworkcontrollerV1().Frameworks(c.namespace).Get(ctx, name, metav1.GetOptions{})
}

// gather reads a Framework and what belongs to it. Only the Framework has to be readable.
func (c *cluster) gather(ctx context.Context, name string) (view.Objects, error) {
	var o view.Objects
	var err error
	if o.Framework, err = c.framework(ctx, name); err != nil {
		return o, err
	}
	if o.Pods, err = c.pods(ctx, o.Framework); err != nil {
		o.Unread = append(o.Unread, unread("Pods", err))
	}
	about := []string{string(o.Framework.UID)}
	if group := podGroupName(o.Framework); group != "" {
		o.PodGroup, err = c.lockstep.SchedulingV1alpha1().PodGroups(c.namespace).Get(ctx, group, metav1.GetOptions{})
		switch {
		case err == nil:
			about = append(about, string(o.PodGroup.UID))
		case explain(err).code != exitNotFound:
			o.Unread = append(o.Unread, unread("PodGroups", err))
			fallthrough
		default:
			o.PodGroup = nil
		}
	}
	for _, uid := range about {
		events, err := c.kube.CoreV1().Events(c.namespace).List(ctx, metav1.ListOptions{
			FieldSelector: fields.OneTermEqualSelector("involvedObject.uid", uid).String(), Limit: maxEvents,
		})
		if err != nil {
			o.Unread = append(o.Unread, unread("Events", err))
			break
		}
		o.Events = append(o.Events, events.Items...)
	}
	return o, nil
}

// podGroupName is that of the current attempt's PodGroup, or empty.
func podGroupName(fw *frameworkv1.Framework) string {
	if fw.Status == nil || fw.Status.AttemptStatus.PodGroup == nil {
		return ""
	}
	return fw.Status.AttemptStatus.PodGroup.Name
}

// podSelector chooses the Pods that have the name of a Framework.
func podSelector(framework string) string {
	return labels.Set{frameworkv1.KeyFrameworkName: framework}.String()
}

// pods are those of the Framework, of all its attempts that have any left.
func (c *cluster) pods(ctx context.Context, fw *frameworkv1.Framework) ([]corev1.Pod, error) {
	var own []corev1.Pod
	options := metav1.ListOptions{LabelSelector: podSelector(fw.Name), Limit: pageSize}
	for {
		page, err := c.kube.CoreV1().Pods(fw.Namespace).List(ctx, options)
		if err != nil {
			return nil, err
		}
		for i := range page.Items {
			if view.IsPodOf(fw, &page.Items[i]) {
				own = append(own, page.Items[i])
			}
		}
		if options.Continue = page.Continue; page.Continue == "" {
			return own, nil
		}
	}
}
