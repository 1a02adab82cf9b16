// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/whatif"
)

// pager lists one page, and says where the next one begins.
type pager func(ctx context.Context, namespace string, options metav1.ListOptions) (next string, err error)

// pages lists all pages of a namespace.
func pages(ctx context.Context, namespace string, page pager) error {
	options := metav1.ListOptions{Limit: pageSize}
	for {
		next, err := page(ctx, namespace, options)
		if err != nil || next == "" {
			return err
		}
		options.Continue = next
	}
}

// snapshot is what the user may read of the cluster, for questions about gangs. What he may not is said in it.
func (c *cluster) snapshot(ctx context.Context) (*whatif.Snapshot, error) {
	s := &whatif.Snapshot{Now: now(), Priorities: make(map[string]int32)}
	listed, err := c.mayList(ctx, "", func(ctx context.Context, _ string, options metav1.ListOptions) (string, error) {
		page, err := c.kube.CoreV1().Nodes().List(ctx, options)
		if err != nil {
			return "", err
		}
		for i := range page.Items {
			s.Nodes = append(s.Nodes, &page.Items[i])
		}
		return page.Continue, nil
	})
	if err != nil {
		return nil, err
	}
	if s.NoNodes = !listed; s.NoNodes {
		s.Lacks = append(s.Lacks, "you may not list nodes")
	}
	if err := c.addPods(ctx, s); err != nil {
		return nil, err
	}
	if err := c.addGroups(ctx, s); err != nil {
		return nil, err
	}
	listed, err = c.mayList(ctx, "", func(ctx context.Context, _ string, options metav1.ListOptions) (string, error) {
		page, err := c.kube.SchedulingV1().PriorityClasses().List(ctx, options)
		if err != nil {
			return "", err
		}
		for i := range page.Items {
			s.Priorities[page.Items[i].Name] = page.Items[i].Value
		}
		return page.Continue, nil
	})
	if !listed && err == nil {
		s.Lacks = append(s.Lacks, "you may not list PriorityClasses: gangs may rank lower than is told")
	}
	return s, err
}

// mayList lists all pages, and says whether the user may.
func (c *cluster) mayList(ctx context.Context, namespace string, page pager) (bool, error) {
	err := pages(ctx, namespace, page)
	if apierrors.IsForbidden(err) {
		return false, nil
	}
	return err == nil, err
}

// everywhereOrHere lists all namespaces or, if the user may not, his own.
func (c *cluster) everywhereOrHere(ctx context.Context, page pager) (everywhere bool, err error) {
	everywhere, err = c.mayList(ctx, metav1.NamespaceAll, page)
	if everywhere || err != nil {
		return everywhere, err
	}
	return false, pages(ctx, c.namespace, page)
}

func (c *cluster) addPods(ctx context.Context, s *whatif.Snapshot) error {
	everywhere, err := c.everywhereOrHere(ctx, func(ctx context.Context, namespace string, options metav1.ListOptions) (string, error) {
		page, err := c.kube.CoreV1().Pods(namespace).List(ctx, options)
		if err != nil {
			return "", err
		}
		for i := range page.Items {
			s.Pods = append(s.Pods, &page.Items[i])
		}
		return page.Continue, nil
	})
	if s.SomePods = !everywhere; s.SomePods {
		s.Lacks = append(s.Lacks, "you may not list Pods of all namespaces: nodes look emptier than they are")
	}
	return err
}

func (c *cluster) addGroups(ctx context.Context, s *whatif.Snapshot) error {
	everywhere, err := c.everywhereOrHere(ctx, func(ctx context.Context, namespace string, options metav1.ListOptions) (string, error) {
		page, err := c.lockstep.SchedulingV1alpha1().PodGroups(namespace).List(ctx, options)
		if err != nil {
			return "", err
		}
		for i := range page.Items {
			s.Groups = append(s.Groups, dialect.FromOwn(&page.Items[i]))
		}
		return page.Continue, nil
	})
	if !everywhere {
		s.Lacks = append(s.Lacks, "you may not list PodGroups of all namespaces: the line may be longer than is told")
	}
	return err
}

// gangNamed is the key of the gang of a Framework of a name or, if it has none, of the PodGroup of that
// name. The name may have its namespace in front: ns/name.
func gangNamed(s *whatif.Snapshot, namespace, name string) dialect.Key {
	key := whatif.KeyOf(namespace, name)
	ofFramework := key
	ofFramework.Name = frameworkv1.PodGroupName(key.Name)
	if s.Group(ofFramework) != nil || s.Group(key) == nil {
		return ofFramework
	}
	return key
}
