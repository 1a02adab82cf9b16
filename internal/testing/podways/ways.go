// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package podways

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/lockstep-k8s/lockstep/internal/podend"
)

// Way is a way in which a Pod ends.
type Way struct {
	// Name says in a few words what happens.
	Name string
	// Source is the place in Kubernetes' source, or the document, that describes these signs.
	Source string
	// End gives a Pod the signs of this end. It fills in the statuses of the containers in the Pod's spec, as the
	// kubelet does.
	End func(end Ending)
	// Cause is what the signs mean.
	Cause podend.Cause
	// Uncertain says that the signs allow another reading.
	Uncertain bool
	// Framework, Volcano and Kubeflow are the results for each kind of job.
	Framework Framework
	Volcano   Volcano
	Kubeflow  Kubeflow
}

// Deletes reports whether the first step is a request to delete the Pod.
func (w Way) Deletes() bool {
	pod := &corev1.Pod{}
	w.End(Ending{Pod: pod})
	return pod.DeletionTimestamp != nil
}

// Happen puts the signs of its end into a Pod, except the deletion.
func (w Way) Happen(pod *corev1.Pod, at time.Time) {
	deletion, grace := pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds
	w.End(Ending{Pod: pod, At: metav1.NewTime(at.Truncate(time.Second))})
	pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = deletion, grace
}

// Framework is the result of a Pod's end for a Framework, with the shipped podFailureSpec.
type Framework struct {
	// Code is the completion code. Unlisted is the completion code if the configuration has a podFailureSpec without
	// patterns. 0 means success.
	Code, Unlisted int32
	// Type is Transient, Permanent, or empty for neither.
	Type string
	// Disruption stands beside the code. Empty for none.
	Disruption string
}

// Volcano is the event that a Volcano Job's policies get; "" for a success.
type Volcano string

// Kubeflow is the result for a training job under each restartPolicy.
type Kubeflow struct {
	Never, OnFailure, ExitCode KubeflowEnd
	// Counts reports whether a recreated Pod counts against backoffLimit.
	Counts bool
}

// KubeflowEnd is what becomes of a training job, or its Pod.
type KubeflowEnd string

// Ends of Pods of training jobs.
const (
	Succeeds KubeflowEnd = "succeeds"
	Fails    KubeflowEnd = "the job fails"
	Again    KubeflowEnd = "made anew"
)

// Events of Volcano.
const (
	PodFailed  Volcano = "PodFailed"
	PodEvicted Volcano = "PodEvicted"
)

// Ending is a Pod to which something happens, at a time.
type Ending struct {
	Pod *corev1.Pod
	At  metav1.Time
}

// fail makes the Pod Failed.
func (e Ending) fail(reason, message string) {
	e.Pod.Status.Phase, e.Pod.Status.Reason, e.Pod.Status.Message = corev1.PodFailed, reason, message
}

// exit ends all app containers with a code.
func (e Ending) exit(code int32, reason string) {
	e.Pod.Status.ContainerStatuses = e.statuses(e.Pod.Spec.Containers, code, reason)
	e.Pod.Status.InitContainerStatuses = e.statuses(e.Pod.Spec.InitContainers, 0, "Completed")
}

func (e Ending) statuses(containers []corev1.Container, code int32, reason string) []corev1.ContainerStatus {
	var statuses []corev1.ContainerStatus
	for _, container := range containers {
		statuses = append(statuses, corev1.ContainerStatus{Name: container.Name, State: corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason, FinishedAt: e.At},
		}})
	}
	return statuses
}

// disrupt sets the condition DisruptionTarget.
func (e Ending) disrupt(reason, message string) {
	e.Pod.Status.Conditions = append(e.Pod.Status.Conditions, corev1.PodCondition{
		Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: reason, Message: message, LastTransitionTime: e.At,
	})
}

// delete asks the API server to delete the Pod.
func (e Ending) delete() {
	e.Pod.DeletionTimestamp = ptr.To(metav1.NewTime(e.At.Add(30 * time.Second)))
	e.Pod.DeletionGracePeriodSeconds = ptr.To[int64](30)
}

// refuse is the kubelet that does not admit the Pod.
func (e Ending) refuse(reason, message string) {
	e.fail(reason, "Pod was rejected: "+message)
	e.Pod.Status.ContainerStatuses, e.Pod.Status.InitContainerStatuses = nil, nil
}
