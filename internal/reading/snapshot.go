// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package reading

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	configv1alpha1 "github.com/lockstep-k8s/lockstep/apis/config/v1alpha1"
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
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

// Snapshot returns what the user may read of the cluster, for questions about gangs. If the user may not read all
// namespaces, the Snapshot covers only the namespaces `own` and `others`. Snapshot also lists what the user may not
// read.
func (r *Reader) Snapshot(ctx context.Context, own string, others ...string) (*whatif.Snapshot, error) {
	some := []string{own}
	for _, other := range others {
		if !slices.Contains(some, other) {
			some = append(some, other)
		}
	}
	s := &whatif.Snapshot{Now: time.Now(), Links: &dialect.Links{}, LacksOf: make(map[dialect.Key][]string)}
	// A Job has a PodGroup where lockstep-controller has made one.
	s.Links.TurnOnRule(configv1alpha1.RuleJobs)
	s.Links.TurnOnRule(configv1alpha1.RuleLeaderWorkerSets)
	err := r.Nodes(ctx, func(node *corev1.Node) { s.Nodes = append(s.Nodes, node) })
	if err != nil && !apierrors.IsForbidden(err) {
		return nil, err
	}
	if s.NoNodes = err != nil; s.NoNodes {
		s.Lacks = append(s.Lacks, "you may not list nodes")
	}
	if err := r.addPods(ctx, some, s); err != nil {
		return nil, err
	}
	if err := r.addGroups(ctx, some, s); err != nil {
		return nil, err
	}
	listed, err := mayList(ctx, "", func(ctx context.Context, _ string, options metav1.ListOptions) (string, error) {
		page, err := r.Kube.SchedulingV1().PriorityClasses().List(ctx, options)
		if err != nil {
			return "", err
		}
		for i := range page.Items {
			s.AddClass(&page.Items[i])
		}
		return page.Continue, nil
	})
	if !listed && err == nil {
		s.Lacks = append(s.Lacks, "you may not list PriorityClasses: gangs may rank lower than shown")
	}
	return s, err
}

// Nodes reads all nodes.
func (r *Reader) Nodes(ctx context.Context, each func(*corev1.Node)) error {
	return pages(ctx, "", func(ctx context.Context, _ string, options metav1.ListOptions) (string, error) {
		page, err := r.Kube.CoreV1().Nodes().List(ctx, options)
		if err != nil {
			return "", err
		}
		for i := range page.Items {
			each(&page.Items[i])
		}
		return page.Continue, nil
	})
}

// mayList lists all pages, and says whether the user may.
func mayList(ctx context.Context, namespace string, page pager) (bool, error) {
	err := pages(ctx, namespace, page)
	if apierrors.IsForbidden(err) {
		return false, nil
	}
	return err == nil, err
}

// everywhereOrHere lists all namespaces, or only those in `some` if the user may not list all. `unread` are the
// namespaces in `some` that the user may not list either.
func everywhereOrHere(ctx context.Context, some []string, page pager) (everywhere bool, unread []string, err error) {
	everywhere, err = mayList(ctx, metav1.NamespaceAll, page)
	if everywhere || err != nil {
		return everywhere, nil, err
	}
	for _, namespace := range some {
		listed, err := mayList(ctx, namespace, page)
		if err != nil {
			return false, nil, err
		}
		if !listed {
			unread = append(unread, namespace)
		}
	}
	return false, unread, nil
}

// lack says that the objects of some namespaces may not be listed.
func lack(s *whatif.Snapshot, objects string, unread []string) {
	for _, namespace := range unread {
		s.Lacks = append(s.Lacks, fmt.Sprintf("you may not list %s of namespace %s", objects, namespace))
	}
}

func (r *Reader) addPods(ctx context.Context, some []string, s *whatif.Snapshot) error {
	everywhere, unread, err := everywhereOrHere(ctx, some, func(ctx context.Context, namespace string, options metav1.ListOptions) (string, error) {
		page, err := r.Kube.CoreV1().Pods(namespace).List(ctx, options)
		if err != nil {
			return "", err
		}
		for i := range page.Items {
			s.Pods = append(s.Pods, &page.Items[i])
		}
		return page.Continue, nil
	})
	s.NoPods = slices.Contains(unread, some[0])
	lack(s, "Pods", unread)
	if s.SomePods = !everywhere; s.SomePods {
		s.Lacks = append(s.Lacks, "you may not list Pods of all namespaces: nodes look emptier than they are")
	}
	return err
}

func (r *Reader) addGroups(ctx context.Context, some []string, s *whatif.Snapshot) error {
	everywhere, unread, err := everywhereOrHere(ctx, some, func(ctx context.Context, namespace string, options metav1.ListOptions) (string, error) {
		page, err := r.Lockstep.SchedulingV1alpha1().PodGroups(namespace).List(ctx, options)
		if err != nil {
			return "", err
		}
		for i := range page.Items {
			group := dialect.FromOwn(&page.Items[i])
			s.Links.SetImplicit(group)
			s.Groups = append(s.Groups, group)
		}
		return page.Continue, nil
	})
	if err != nil {
		return err
	}
	s.NoGroups = slices.Contains(unread, some[0])
	lack(s, "PodGroups", unread)
	for _, d := range othersAPIs {
		all, err := r.addGroupsOf(ctx, some, s, d)
		if err != nil {
			return err
		}
		everywhere = everywhere && all
	}
	if !everywhere {
		s.Lacks = append(s.Lacks, "you may not list PodGroups of all namespaces: the queue may be longer than shown")
	}
	return nil
}

// Refused returns an error if a Snapshot is useless because the user may not list Pods or PodGroups of his own
// namespace; else nil.
func Refused(s *whatif.Snapshot) error {
	switch {
	case s.NoPods:
		return apierrors.NewForbidden(corev1.Resource("pods"), "", errors.New("you may not list them"))
	case s.NoGroups:
		return apierrors.NewForbidden(schedulingv1alpha1.Resource(schedulingv1alpha1.PodGroupPlural), "", errors.New("you may not list them"))
	default:
		return nil
	}
}

// othersAPIs are the PodGroup APIs of other tools.
var othersAPIs = []dialect.Dialect{dialect.Native, dialect.SchedulerPlugins, dialect.Volcano}

// addGroupsOf adds the PodGroups of a PodGroup API, if the API server serves it. `everywhere` reports that the user may
// list them in all namespaces. If the user may list them nowhere, addGroupsOf adds none.
func (r *Reader) addGroupsOf(ctx context.Context, some []string, s *whatif.Snapshot, d dialect.Dialect) (everywhere bool, err error) {
	read := map[dialect.Dialect]func(*unstructured.Unstructured) *dialect.Group{
		dialect.Native: dialect.FromNative, dialect.SchedulerPlugins: dialect.FromSchedulerPlugins,
		dialect.Volcano: func(object *unstructured.Unstructured) *dialect.Group {
			group, asksForTiers := dialect.FromVolcanoWithoutTiers(object)
			if asksForTiers {
				s.LacksOf[group.Key] = append(s.LacksOf[group.Key], "the networkTopology of the group is not checked: which node labels stand for its tiers is in the scheduler's configuration")
			}
			return group
		},
	}[d]
	for _, resource := range d.Resources() {
		var unread []string
		everywhere, unread, err = everywhereOrHere(ctx, some, func(ctx context.Context, namespace string, options metav1.ListOptions) (string, error) {
			page, err := r.Dynamic.Resource(resource).Namespace(namespace).List(ctx, options)
			if err != nil {
				return "", err
			}
			for i := range page.Items {
				s.Groups = append(s.Groups, read(&page.Items[i]))
			}
			return page.GetContinue(), nil
		})
		switch {
		case err == nil && len(unread) < len(some):
			s.Links.TurnOn(d)
			return everywhere, nil
		case err == nil && !r.isUnserved(ctx, resource):
			return false, nil
		case err == nil:
			// An API server also refuses what is not served.
		case ctx.Err() != nil:
			return false, err
		case !IsUnserved(err):
			// A missing right for another tool's kind must not prevent an answer.
			s.Lacks = append(s.Lacks, Unread("PodGroups of "+resource.Group, err))
			return true, nil
		}
	}
	return true, nil
}
