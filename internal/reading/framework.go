// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package reading

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/internal/view"
)

// maxEvents is how many events one request asks for.
const maxEvents = 200

// Framework reads a Framework.
func (r *Reader) Framework(ctx context.Context, namespace, name string) (*frameworkv1.Framework, error) {
	return r.Lockstep.FrameworkcontrollerV1().Frameworks(namespace).Get(ctx, name, metav1.GetOptions{})
}

// Objects reads a Framework and what belongs to it. Only the Framework has to be readable.
func (r *Reader) Objects(ctx context.Context, namespace, name string) (view.Objects, error) {
	var o view.Objects
	var err error
	if o.Framework, err = r.Framework(ctx, namespace, name); err != nil {
		return o, err
	}
	if o.Pods, err = r.Pods(ctx, o.Framework); err != nil {
		o.Unread = append(o.Unread, Unread("Pods", err))
	}
	about := []string{string(o.Framework.UID)}
	if group := podGroupName(o.Framework); group != "" {
		o.PodGroup, err = r.Lockstep.SchedulingV1alpha1().PodGroups(namespace).Get(ctx, group, metav1.GetOptions{})
		switch {
		case err == nil:
			about = append(about, string(o.PodGroup.UID))
		case !apierrors.IsNotFound(err):
			o.Unread = append(o.Unread, Unread("PodGroups", err))
			fallthrough
		default:
			o.PodGroup = nil
		}
	}
	for _, uid := range about {
		events, err := r.Kube.CoreV1().Events(namespace).List(ctx, metav1.ListOptions{
			FieldSelector: fields.OneTermEqualSelector("involvedObject.uid", uid).String(), Limit: maxEvents,
		})
		if err != nil {
			o.Unread = append(o.Unread, Unread("Events", err))
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

// PodSelector chooses the Pods that have the name of a Framework.
func PodSelector(framework string) string {
	return labels.Set{frameworkv1.KeyFrameworkName: framework}.String()
}

// Pods are those of the Framework, of all its attempts that have any left.
func (r *Reader) Pods(ctx context.Context, fw *frameworkv1.Framework) ([]corev1.Pod, error) {
	var own []corev1.Pod
	options := metav1.ListOptions{LabelSelector: PodSelector(fw.Name), Limit: pageSize}
	for {
		page, err := r.Kube.CoreV1().Pods(fw.Namespace).List(ctx, options)
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
