// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	applyschedulingv1alpha1 "github.com/lockstep-k8s/lockstep/client/applyconfiguration/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/controller/pacing"
	"github.com/lockstep-k8s/lockstep/internal/fair"
	"github.com/lockstep-k8s/lockstep/podgroup"
)

// fieldManager owns phase and counters. It never owns a condition.
const fieldManager = "lockstep-controller"

// sync updates the phase and the counters of one group, if its Pods are known.
func (c *Controller) sync(ctx context.Context, key cache.ObjectName) error {
	group, err := c.group(key)
	if err != nil || group == nil || group.DeletionTimestamp != nil {
		return err
	}
	if c.unread.Has(key.Namespace) {
		return nil // It is synced when they are.
	}
	if len(group.Spec.MemberLabels) > 0 && slices.ContainsFunc(c.implicit, func(pods cache.SharedIndexInformer) bool { return !pods.HasSynced() }) {
		c.loop.AddAfter(fair.Key{ObjectName: key}, implicitWindow)
		return nil
	}
	members, err := c.membersOf(group)
	if err != nil {
		return err
	}

	counts := podgroup.Count(members)
	want := statusOf(podgroup.NextPhase(group.Status.Phase, &group.Spec, counts), counts)
	if want.equals(&group.Status) {
		return nil
	}
	written, err := c.apply(ctx, group, want)
	if apierrors.IsNotFound(err) {
		return nil // The group is gone, and what there was to keep with it.
	}
	if err != nil {
		return err
	}
	if want.phase != group.Status.Phase {
		klog.FromContext(ctx).V(2).Info("PodGroup changed phase", "podGroup", klog.KObj(group),
			"from", group.Status.Phase, "to", want.phase, "running", want.running, "succeeded", want.succeeded, "minMember", group.Spec.MinMember)
	}
	c.groups.Mutation(written)
	if podgroup.NextPhase(want.phase, &group.Spec, counts) != want.phase {
		c.loop.Add(fair.Key{ObjectName: key}) // Legal steps are written one by one.
	}
	return nil
}

// group returns the group with a name, nil if none.
func (c *Controller) group(key cache.ObjectName) (*schedulingv1alpha1.PodGroup, error) {
	obj, exists, err := c.groups.GetByKey(key.String())
	if err != nil || !exists {
		return nil, err
	}
	group, ok := obj.(*schedulingv1alpha1.PodGroup)
	if !ok {
		return nil, fmt.Errorf("reading PodGroup %s: got a %T", key, obj)
	}
	return group, nil
}

// apply writes the part of the status that is ours. The UID makes it fail with a
// conflict for another group of the same name.
func (c *Controller) apply(ctx context.Context, group *schedulingv1alpha1.PodGroup, want ownStatus) (*schedulingv1alpha1.PodGroup, error) {
	ctx, cancel := context.WithTimeout(ctx, pacing.RequestTime)
	defer cancel()
	config := applyschedulingv1alpha1.PodGroup(group.Name, group.Namespace).
		WithUID(group.UID).
		WithResourceVersion(group.ResourceVersion).
		WithStatus(want.applyConfiguration())
	written, err := c.client.SchedulingV1alpha1().PodGroups(group.Namespace).
		ApplyStatus(ctx, config, metav1.ApplyOptions{FieldManager: fieldManager, Force: true})
	if err != nil {
		return nil, fmt.Errorf("writing the status: %w", err)
	}
	return written, nil
}
