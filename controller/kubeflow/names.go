// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeflow

import (
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	kubeflowv1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v1"
	"github.com/lockstep-k8s/lockstep/controller/jobpods"
)

// Annotations that the core itself writes and reads.
const (
	// KeyStart is an annotation of Pods, Services and PodGroups. Its value is the number of the start for which the
	// object was created.
	KeyStart = "kubeflow.lockstep.dev/start"
	// KeyCreatedAs is an annotation of Services and PodGroups. Its value is the API version by whose rules the job is
	// run. It takes precedence over the version that the job's spec names, which another product's CRD would drop.
	KeyCreatedAs = "kubeflow.lockstep.dev/created-as"
	// KeyMinResources and KeyScheduleTimeout are on PodGroups, and record what the
	// schedulingPolicy says.
	KeyMinResources    = "kubeflow.lockstep.dev/min-resources"
	KeyScheduleTimeout = "kubeflow.lockstep.dev/schedule-timeout-seconds"
	// KeyContent is on a HorizontalPodAutoscaler: a digest of what it was made from.
	KeyContent = "kubeflow.lockstep.dev/content"
)

// uidLength is how many digits of the job's UID the names of Pods and Services of v1alpha2 contain. With the whole UID,
// a job's name could have only 17 characters.
const uidLength = 8

// objectName returns the name of the Pod of an index, and of its Service.
func (k *kind) objectName(job *Job, t string, index int32) string {
	prefix := job.Name + "-" + lower(t) + "-"
	if k.isUnnumbered(t) {
		return job.Name + "-" + lower(t)
	}
	if k.designed {
		return prefix + strconv.Itoa(int(index)+1) + "-" + shortUID(job.UID)
	}
	return prefix + strconv.Itoa(int(index))
}

// placeNamed returns the type and the index in the name of a Pod or Service. placeNamed does not use labels, because
// users may remove them. The type is "" if no object of the job can have that name.
func (k *kind) placeNamed(job *Job, name string) (t string, index int32) {
	rest, isOurs := strings.CutPrefix(name, job.Name+"-")
	if !isOurs {
		return "", 0
	}
	for _, t := range k.types {
		if k.isUnnumbered(t) && rest == lower(t) {
			return t, 0
		}
		number, isOfType := strings.CutPrefix(rest, lower(t)+"-")
		if !isOfType {
			continue
		}
		number, _, _ = strings.Cut(number, "-")
		n, err := strconv.ParseInt(number, 10, 32)
		if k.designed {
			n--
		}
		if err == nil && n >= 0 && n < kubeflowv1.MaxReplicas && k.objectName(job, t, int32(n)) == name {
			return t, int32(n)
		}
	}
	return "", 0
}

// isUnnumbered reports whether the name of a type's only Pod has no index. That is so for the launcher of MPI, whose
// name is also its host name.
func (k *kind) isUnnumbered(t string) bool { return k.launches && t == kubeflowv1.ReplicaLauncher }

// shortUID returns the first hexadecimal digits of a UID.
func shortUID(uid types.UID) string {
	digits := strings.Map(func(r rune) rune {
		if strings.ContainsRune("0123456789abcdef", r) {
			return r
		}
		return -1
	}, strings.ToLower(string(uid)))
	return digits[:min(uidLength, len(digits))]
}

// groupName returns the name of the PodGroup of a start.
func (k *kind) groupName(job *Job, start int32) string {
	return jobpods.GroupName(job.Name, strings.ToLower(k.gvk.Kind), start)
}

// reason returns the reason of a condition or an event: the kind, followed by what has happened.
func (k *kind) reason(what string) string { return k.gvk.Kind + what }

// lower returns a type as used in names and labels.
func lower(t string) string { return strings.ToLower(t) }

// GroupOf returns the group of the actions that create Pods of a type.
func GroupOf(t string) string { return lower(t) }

// versionName returns how an annotation says by which rules a job lives.
func (k *kind) versionName() string {
	if k.designed {
		return kubeflowv1.CreatedAsV1alpha2
	}
	return kubeflowv1.SchemeGroupVersion.Version
}
