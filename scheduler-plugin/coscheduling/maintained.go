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

// watchMaintenance keeps windows up to date with the annotations of nodes. A node gets an event if its annotation is
// not a valid time.
func watchMaintenance(informers informers.SharedInformerFactory, windows *maintenance.Windows, recorder events.EventRecorder) error {
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
		}
	}, func(node *corev1.Node) { windows.Set(node.Name, time.Time{}) }))
	if err != nil {
		return fmt.Errorf("watching nodes for maintenance: %w", err)
	}
	return nil
}

// ofMaintenance is the event of a change of a node's annotations. The event helps Pods and gangs only if the node's
// maintenance window has changed.
var ofMaintenance = fwk.ClusterEvent{Resource: fwk.Node, ActionType: fwk.UpdateNodeAnnotation}

// isIdle reports whether an event is a change of a node's annotations that leaves the node's window as it was.
func isIdle(event fwk.ClusterEvent, before, after any) bool {
	if event.Resource != ofMaintenance.Resource || event.ActionType != ofMaintenance.ActionType {
		return false
	}
	was, ok1 := before.(*corev1.Node)
	is, ok2 := after.(*corev1.Node)
	return ok1 && ok2 && !maintenance.Changed(was, is)
}

// retryUnmaintained is the queueing hint for an ordinary Pod after a change of a node's annotations. The Pod is retried
// if the node's maintenance window has changed.
func retryUnmaintained(_ klog.Logger, _ *corev1.Pod, before, after any) (fwk.QueueingHint, error) {
	if isIdle(ofMaintenance, before, after) {
		return fwk.QueueSkip, nil
	}
	return fwk.Queue, nil
}
