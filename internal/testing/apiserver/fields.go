// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
)

// hasField reports whether objects can be selected by a field.
func (r *resource) hasField(name string) bool {
	object := r.newObject()
	return fieldsOf(newRevision(object)).Has(name)
}

// fieldsOf returns those fields of an object that field selectors of lists and watches may name.
func fieldsOf(r *revision) fields.Set {
	set := fields.Set{"metadata.name": r.meta.Name, "metadata.namespace": r.meta.Namespace}
	switch object := r.object.(type) {
	case *corev1.Pod:
		set["spec.nodeName"] = object.Spec.NodeName
		set["spec.schedulerName"] = object.Spec.SchedulerName
		set["spec.restartPolicy"] = string(object.Spec.RestartPolicy)
		set["spec.serviceAccountName"] = object.Spec.ServiceAccountName
		set["status.phase"] = string(object.Status.Phase)
		set["status.podIP"] = object.Status.PodIP
		set["status.nominatedNodeName"] = object.Status.NominatedNodeName
	case *corev1.Event:
		set["involvedObject.kind"] = object.InvolvedObject.Kind
		set["involvedObject.namespace"] = object.InvolvedObject.Namespace
		set["involvedObject.name"] = object.InvolvedObject.Name
		set["involvedObject.uid"] = string(object.InvolvedObject.UID)
		set["reason"] = object.Reason
		set["type"] = object.Type
	case *corev1.Node:
		if object.Spec.Unschedulable {
			set["spec.unschedulable"] = "true"
		} else {
			set["spec.unschedulable"] = "false"
		}
	}
	return set
}
