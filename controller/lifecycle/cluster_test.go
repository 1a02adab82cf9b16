// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/controller/engine/plan"
	"github.com/lockstep-k8s/lockstep/internal/controlled"
	"github.com/lockstep-k8s/lockstep/internal/testing/jobworld"
)

// act is the API server's side of an action.
func (w *world) act(action Action) (Outcome, bool) {
	outcome := Outcome{Action: action}
	switch action.Does() {
	case CreateConfigMap:
		if w.configMap != nil {
			w.cache.configMap = w.configMap.DeepCopy()
			return outcome, true
		}
		created := action.Object.(*corev1.ConfigMap).DeepCopy()
		created.UID = w.NewUID()
		w.configMap = &created.ObjectMeta
		w.configMapChanged()
		outcome.UID = created.UID
	case DeleteConfigMap:
		if w.configMap != nil && w.configMap.UID == action.UID {
			w.deleteConfigMap()
		}
	case ConfirmNoConfigMap:
		if w.configMap != nil {
			w.cache.configMap = w.configMap.DeepCopy()
		}
	case CreatePodGroup:
		if w.podGroup != nil {
			return outcome, false
		}
		w.podGroup = action.Object.(*schedulingv1alpha1.PodGroup).DeepCopy()
		w.podGroup.UID = w.NewUID()
		w.podGroup.CreationTimestamp = metav1.NewTime(w.now.Add(w.skew))
		w.podGroupChanged()
	case UpdatePodGroup:
		if w.podGroup == nil || w.podGroup.UID != action.UID {
			return outcome, false
		}
		w.podGroup, _ = jobworld.Patch(w.t, w.podGroup, action.Patch)
		w.podGroupChanged()
	case CreatePod:
		return w.createPod(outcome)
	case DeletePod:
		if pod := w.pods[action.Name]; pod != nil && pod.UID == action.UID {
			w.deletePod(pod.Name, 30)
		}
	case ConfirmNoPod:
		if pod := w.pods[action.Name]; pod != nil {
			w.cache.pods[action.Name] = pod.DeepCopy()
		}
	case ForceDeletePod:
		if pod := w.pods[action.Name]; pod != nil && pod.UID == action.UID {
			w.podRemoved(action.Name)
		}
	case DeleteFramework:
		w.deleteFramework()
	case LookForConfigMap:
		if w.configMap != nil && w.configMap.UID == action.UID {
			w.cache.configMap = w.configMap.DeepCopy()
		} else {
			w.controller.gone[action.UID] = true
			if w.configMap != nil && controlled.By(action.Owner, w.configMap) {
				w.cache.configMap = w.configMap.DeepCopy()
			}
		}
	case LookForPod:
		pod := w.pods[action.Name]
		if pod == nil || pod.UID != action.UID {
			w.controller.gone[action.UID] = true
		}
		if pod != nil && (pod.UID == action.UID || controlled.By(action.Owner, pod)) {
			w.show(pod)
		}
	case ListPods:
		for name, pod := range w.cache.pods {
			if live := w.pods[name]; controlled.By(action.Owner, pod) && (live == nil || live.UID != pod.UID) {
				w.controller.gone[pod.UID] = true
			}
		}
		for _, pod := range w.pods {
			if controlled.By(action.Owner, pod) {
				w.show(pod)
				w.controller.listed[pod.Name] = &listedPod{pod.DeepCopy(), len(w.behind[podKind])}
			}
		}
	}
	return outcome, true
}

// show shows the controller a Pod that a live look has found, until its cache does.
func (w *world) show(pod *corev1.Pod) {
	w.controller.strays[pod.Name] = pod.DeepCopy()
}

func (w *world) createPod(outcome Outcome) (Outcome, bool) {
	object, err := outcome.Action.Build()
	if err != nil {
		outcome.Refused = err
		return outcome, true
	}
	pod := object.(*corev1.Pod)
	if w.refuse != nil {
		if err := w.refuse(pod); err != nil {
			if PodRefusal(err) != nil {
				outcome.Refused = err
			}
			if role := outcome.Action.Group; outcome.Refused == nil {
				w.controller.blocked[role] = Block{Group: role, Reason: plan.BlockReason(err), Message: "Pod " + pod.Name + ": " + err.Error()}
			}
			if present := w.pods[pod.Name]; present != nil && outcome.Refused != nil {
				w.cache.pods[pod.Name] = present.DeepCopy() // A live look has found it.
				outcome.Refused = nil
				return outcome, true
			}
			return outcome, outcome.Refused != nil
		}
	}
	if present := w.pods[pod.Name]; present != nil {
		w.cache.pods[pod.Name] = present.DeepCopy() // A live look has found it.
		return outcome, true
	}
	if w.configMap == nil {
		return outcome, false
	}
	pod.UID = w.NewUID()
	pod.Status.Phase = corev1.PodPending
	w.pods[pod.Name] = pod
	w.podChanged(pod)
	delete(w.controller.blocked, outcome.Action.Group)
	outcome.UID = pod.UID
	return outcome, true
}

// deletePod begins the deletion of a Pod.
func (w *world) deletePod(name string, graceSeconds int64) {
	pod := w.pods[name]
	if pod == nil || pod.DeletionTimestamp != nil {
		return
	}
	if w.pendingGoAtOnce && pod.Spec.NodeName == "" {
		w.podRemoved(name)
		return
	}
	at := metav1.NewTime(w.now.Add(time.Duration(graceSeconds) * time.Second))
	pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &at, &graceSeconds
	w.podChanged(pod)
}

// endPod is the kubelet that confirms the end of a deleted Pod.
func (w *world) endPod(name string) {
	if pod := w.pods[name]; pod != nil && pod.DeletionTimestamp != nil {
		w.podRemoved(name)
	}
}

// deleteConfigMap begins the deletion of the ConfigMap, which waits for its Pods
// only if its finalizer says so.
func (w *world) deleteConfigMap() {
	if w.configMap == nil || w.configMap.DeletionTimestamp != nil {
		return
	}
	if !slices.Contains(w.configMap.Finalizers, metav1.FinalizerDeleteDependents) {
		w.configMap = nil
		w.configMapChanged()
		return
	}
	at := metav1.NewTime(w.now)
	w.configMap.DeletionTimestamp = &at
	w.configMapChanged()
}

// deleteConfigMapInBackground is kubectl delete: it takes the finalizer away, so the
// ConfigMap does not wait for its Pods.
func (w *world) deleteConfigMapInBackground() {
	w.configMap = nil
	w.configMapChanged()
}

// edit is a user who changes the Framework.
func (w *world) edit(change func(*frameworkv1.Framework)) {
	if w.deleted {
		return
	}
	edited := w.framework.DeepCopy()
	change(edited)
	edited.Generation++
	if w.cache.framework == nil {
		w.cache.framework = w.framework
	}
	w.framework = edited
	w.changed(frameworkKind, func(c *cache) { c.framework = edited })
}

// deleteFramework begins the deletion of the Framework in the foreground.
func (w *world) deleteFramework() {
	if w.framework.DeletionTimestamp == nil {
		at := metav1.NewTime(w.now)
		w.edit(func(f *frameworkv1.Framework) { f.DeletionTimestamp = &at })
	}
}

// collectGarbage deletes what a deleted object owns, and then the object: a
// Framework waits for its ConfigMap, and that for its Pods.
func (w *world) collectGarbage() {
	if w.framework.DeletionTimestamp != nil {
		w.deleteConfigMap()
	}
	w.collectConfigMap()
	if w.framework.DeletionTimestamp != nil && w.configMap == nil && !w.deleted {
		w.deleted = true
		w.changed(frameworkKind, func(c *cache) { c.gone = true })
	}
}

func (w *world) collectConfigMap() {
	for _, name := range w.podNames() {
		if owner := metav1.GetControllerOf(w.pods[name]); w.configMap == nil || w.configMap.UID != owner.UID {
			w.deletePod(name, 30)
		}
	}
	if w.configMap == nil || w.configMap.DeletionTimestamp == nil {
		return
	}
	if w.podGroup != nil {
		w.podGroup = nil
		w.podGroupChanged()
	}
	for _, name := range w.podNames() {
		w.deletePod(name, 30)
	}
	if len(w.pods) == 0 {
		w.configMap = nil
		w.configMapChanged()
	}
}

func (w *world) podNames() []string {
	names := make([]string, 0, len(w.pods))
	for name := range w.pods {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// setPhase is the kubelet that runs a Pod.
func (w *world) setPhase(name string, phase corev1.PodPhase, exitCode int32) {
	pod := w.pods[name]
	if pod == nil {
		w.t.Fatalf("there is no Pod %s", name)
	}
	pod.Status.Phase = phase
	if phase == corev1.PodSucceeded || phase == corev1.PodFailed {
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{ExitCode: exitCode, FinishedAt: metav1.NewTime(w.now)},
		}}}
	}
	w.podChanged(pod)
}
