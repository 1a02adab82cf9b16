// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/maintenance"
)

// watchMaintenance keeps windows up to date with the annotations of nodes, and calls changed after a node's window has
// changed. A node gets an event if the annotation is no time.
func watchMaintenance(informers informers.SharedInformerFactory, windows *maintenance.Windows, recorder events.EventRecorder, changed func(*corev1.Node)) error {
	set := func(node *corev1.Node) {
		from, err := maintenance.From(node)
		if err != nil {
			recorder.Eventf(node, nil, corev1.EventTypeWarning, maintenance.ReasonInvalidMaintenance, "Scheduling", "%v", err)
		}
		windows.Set(node.Name, from)
	}
	_, err := informers.Core().V1().Nodes().Informer().AddEventHandler(handlers(set, func(before, after *corev1.Node) {
		if maintenance.Changed(before, after) {
			set(after)
			changed(after)
		}
	}, func(node *corev1.Node) { windows.Set(node.Name, time.Time{}) }))
	if err != nil {
		return fmt.Errorf("watching nodes for maintenance: %w", err)
	}
	return nil
}

// retryUnmaintained is the queueing hint for an ordinary Pod after a change of a node's annotations. watchMaintenance
// wakes gangs.
func retryUnmaintained(_ klog.Logger, _ *corev1.Pod, before, after any) (fwk.QueueingHint, error) {
	was, ok1 := before.(*corev1.Node)
	is, ok2 := after.(*corev1.Node)
	if ok1 && ok2 && !maintenance.Changed(was, is) {
		return fwk.QueueSkip, nil
	}
	return fwk.Queue, nil
}
