// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/lockstep-k8s/lockstep/internal/reading"
	"github.com/lockstep-k8s/lockstep/internal/terminal"
	"github.com/lockstep-k8s/lockstep/internal/view"
)

// podMetrics are those fields of metrics.k8s.io that top reads.
type podMetrics struct {
	Items []struct {
		Metadata   struct{ Name string }
		Containers []struct{ Usage corev1.ResourceList }
	}
}

func newTop(s *session) *cobra.Command {
	return &cobra.Command{
		Use:   "top NAME",
		Short: "Show what each role requests and, where metrics are served, uses",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := s.connect()
			if err != nil {
				return err
			}
			t, err := c.named(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			pods, err := c.podsOf(cmd.Context(), t)
			if err != nil {
				return err
			}
			used, err := c.usage(cmd.Context(), t)
			switch {
			case err == nil:
			case explain(err).code == exitNotFound:
				s.note("Usage can't be shown: the cluster serves no metrics (metrics.k8s.io).")
			default:
				s.note("%s.", reading.Unread("Usage", err))
			}
			fmt.Fprint(s.out, s.style.Table(topRows(pods, used)))
			return nil
		},
	}
}

// podsOf returns the Pods of a target.
func (c *cluster) podsOf(ctx context.Context, t target) ([]corev1.Pod, error) {
	if t.fw == nil {
		return c.reader.JobPods(ctx, t.job)
	}
	return c.reader.Pods(ctx, t.fw)
}

// usage returns what the target's Pods use, by Pod name; nil if the cluster has no metrics API.
func (c *cluster) usage(ctx context.Context, t target) (map[string]corev1.ResourceList, error) {
	var selector string
	if t.fw != nil {
		selector = reading.PodSelector(t.fw.Name)
	} else {
		selector = t.job.PodSelector()
	}
	// The client would rather have protobuf, which metrics-server has, too.
	data, err := c.reader.Kube.CoreV1().RESTClient().Get().AbsPath("/apis/metrics.k8s.io/v1beta1/namespaces", t.object().GetNamespace(), "pods").
		SetHeader("Accept", runtime.ContentTypeJSON).Param("labelSelector", selector).DoRaw(ctx)
	if err != nil {
		return nil, err
	}
	var metrics podMetrics
	if err := json.Unmarshal(data, &metrics); err != nil {
		return nil, err
	}
	used := map[string]corev1.ResourceList{}
	for _, item := range metrics.Items {
		sum := corev1.ResourceList{}
		for _, container := range item.Containers {
			add(sum, container.Usage)
		}
		used[item.Metadata.Name] = sum
	}
	return used, nil
}

func add(sum, more corev1.ResourceList) {
	for name, quantity := range more {
		total := sum[name]
		total.Add(quantity)
		sum[name] = total
	}
}

// topRows returns a row for each role and resource. Pods that have ended are not counted.
func topRows(pods []corev1.Pod, used map[string]corev1.ResourceList) [][]terminal.Cell {
	type totals struct {
		pods            int
		requested, used corev1.ResourceList
	}
	roles := map[string]*totals{}
	for i := range pods {
		pod := &pods[i]
		if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			continue
		}
		name, _ := view.TaskOf(pod)
		name = cmp.Or(name, "-")
		if roles[name] == nil {
			roles[name] = &totals{requested: corev1.ResourceList{}, used: corev1.ResourceList{}}
		}
		role := roles[name]
		role.pods++
		add(role.used, used[pod.Name])
		add(role.requested, resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{}))
	}
	rows := [][]terminal.Cell{{{Text: "ROLE", Colour: terminal.Bold}, {Text: "PODS", Colour: terminal.Bold}, {Text: "RESOURCE", Colour: terminal.Bold}, {Text: "REQUESTED", Colour: terminal.Bold}, {Text: "USED", Colour: terminal.Bold}}}
	for _, name := range slices.Sorted(maps.Keys(roles)) {
		role := roles[name]
		all := maps.Clone(role.requested)
		add(all, role.used)
		if len(all) == 0 {
			all[corev1.ResourceCPU] = resource.Quantity{}
		}
		for _, kind := range slices.Sorted(maps.Keys(all)) {
			rows = append(rows, []terminal.Cell{{Text: name}, {Text: fmt.Sprint(role.pods)}, {Text: string(kind)}, amount(role.requested, kind), amount(role.used, kind)})
		}
	}
	return rows
}

func amount(list corev1.ResourceList, kind corev1.ResourceName) terminal.Cell {
	if quantity, known := list[kind]; known {
		return terminal.Cell{Text: quantity.String()}
	}
	return terminal.Cell{Text: "-"}
}
