// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package volcano

import (
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
	busv1alpha1 "github.com/lockstep-k8s/lockstep/apis/bus/v1alpha1"
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/controller/engine/plan"
	"github.com/lockstep-k8s/lockstep/controller/jobpods"
)

// Snapshot is the whole input of a decision about one Job. Decide does not change it.
type Snapshot struct {
	// Job gives metadata and spec. Its status is not looked at.
	Job *batchv1alpha1.Job
	// Unreadable says why the spec can't be decoded, in which case the Job's spec is empty; "" if it can.
	Unreadable string
	plan.Known[batchv1alpha1.JobStatus]
	// Memory is the Memory that the last decision returned. It may be empty.
	Memory Memory

	// Pods are the Pods that the Job controls, by name.
	Pods map[string]*corev1.Pod
	// PodGroups are the PodGroups that the Job controls, by name.
	PodGroups map[string]*schedulingv1alpha1.PodGroup
	// Objects are the other objects that the Job controls: Services, ConfigMaps,
	// Secrets, NetworkPolicies, PersistentVolumeClaims.
	Objects map[ObjectKey]metav1.Object
	// Claims says which PersistentVolumeClaims of the Job exist.
	Claims map[string]bool
	// Commands are the Commands of the Job's namespace with the Job's name as target.
	Commands []*busv1alpha1.Command
	// ForeignGroup is a PodGroup of Volcano that the Job controls, "" if none.
	ForeignGroup string

	Options Options
}

// ObjectKey is a kind and a name.
type ObjectKey struct{ Kind, Name string }

// Options are the controller's settings that decisions depend on.
type Options struct {
	// GangSchedulerName is the scheduler that places PodGroups.
	GangSchedulerName string
	// SchedulerNames are the scheduler names of Jobs that this controller runs. "" stands for a Job that names no
	// scheduler.
	SchedulerNames []string
	// Manager is the name under which the controller writes statuses.
	Manager string
	// Tiers maps tiers of the network, by number or name, to labels of nodes.
	Tiers map[string]string
	// Keys makes the keys of plugin ssh.
	Keys jobpods.KeyMaker
}

// Memory keeps reports about a Job from being repeated, and holds facts that no object shows. It is empty when a
// controller starts.
type Memory struct {
	// Told are the reported events that still hold.
	Told plan.Told
	// Since is when something was first seen that still holds.
	Since map[string]time.Time
	// InSight has, by name, the UIDs of Pods that are recorded as missing but were seen.
	InSight map[string]types.UID
	// reading is what the spec means.
	reading *reading
	// keys are those of the Secret of plugin ssh, until the Secret exists.
	keys jobpods.KeyMaker
}

// with merges this memory with the memory of an earlier round. `last` is the last stage that ran in this round, -1 if
// none did. Entries that belong to later stages come from `other`.
func (m Memory) with(other Memory, last int) Memory {
	return Memory{
		Told:    m.Told.And(other.Told, last),
		Since:   jobpods.With(maps.Clone(other.Since), m.Since),
		InSight: jobpods.With(maps.Clone(other.InSight), m.InSight),
		reading: m.reading,
		keys:    other.keys,
	}
}
