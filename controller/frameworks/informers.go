// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package frameworks

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/cache"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/controller/adapter"
	"github.com/lockstep-k8s/lockstep/controller/engine"
	"github.com/lockstep-k8s/lockstep/controller/jobpods"
	"github.com/lockstep-k8s/lockstep/internal/informing"
	"github.com/lockstep-k8s/lockstep/internal/podend"
)

// newInformers creates the informers of ConfigMaps and Pods of Frameworks. The API server sends only these Pods. The
// history gets the whole Pod at its deletion; the cache keeps only the fields that decisions read.
func (c *Core) newInformers(namespaces informing.Namespaces) (err error) {
	labelled := adapter.Labelled(frameworkv1.KeyFrameworkName)
	c.informers.Namespaces = namespaces
	if c.configMaps, err = c.informers.Objects(&corev1.ConfigMap{}, dropData, nil, func(namespace string) cache.ListerWatcher {
		return informing.ListWatch(c.kube, c.kube.CoreV1().ConfigMaps(namespace), labelled)
	}); err != nil {
		return err
	}
	c.pods, err = c.informers.Objects(&corev1.Pod{}, keepOfPod, engine.OwnerIndex(frameworkv1.KeyFrameworkUID), func(namespace string) cache.ListerWatcher {
		return informing.ListWatch(c.kube, watchedPods{c.kube.CoreV1().Pods(namespace), c.logPodDeletion}, labelled)
	})
	return err
}

// watchedPods lists and watches the Pods of a namespace. It passes on whole Pods at their deletion, before the
// informer's transform drops fields for the cache.
type watchedPods struct {
	typedcorev1.PodInterface
	deleted func(*corev1.Pod)
}

// Watch watches Pods.
func (p watchedPods) Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	events, err := p.PodInterface.Watch(ctx, options)
	if err != nil {
		return nil, err
	}
	passed := make(chan watch.Event)
	handsOn := watch.NewProxyWatcher(passed)
	go func() {
		defer close(passed)
		defer events.Stop()
		for {
			var event watch.Event
			var more bool
			select {
			case event, more = <-events.ResultChan():
			case <-handsOn.StopChan():
			}
			if !more {
				return
			}
			if pod, ok := event.Object.(*corev1.Pod); ok && event.Type == watch.Deleted {
				p.deleted(pod)
			}
			select {
			case passed <- event:
			case <-handsOn.StopChan():
				return
			}
		}
	}()
	return handsOn, nil
}

// dropData reduces a ConfigMap to its metadata. Users may give the label of a Framework to ConfigMaps with a mebibyte
// of data each.
func dropData(object any) (any, error) {
	configMap, ok := object.(*corev1.ConfigMap)
	if !ok {
		return object, nil
	}
	kept := &corev1.ConfigMap{TypeMeta: configMap.TypeMeta, ObjectMeta: configMap.ObjectMeta}
	kept.ManagedFields = nil
	return kept, nil
}

// keepOfPod and reducePod keep of a Pod what decisions read.
var keepOfPod, reducePod = informing.Keep(read)

// read returns the part of a Pod that decisions read. The only annotations are those for the Pod's attempt and task.
func read(pod *corev1.Pod) *corev1.Pod {
	kept := &corev1.Pod{
		TypeMeta: pod.TypeMeta,
		ObjectMeta: jobpods.KeepMetadata(pod,
			frameworkv1.KeyFrameworkName, frameworkv1.KeyFrameworkUID, frameworkv1.KeyFrameworkAttemptID,
			frameworkv1.KeyConfigMapUID, frameworkv1.KeyTaskRoleUID, frameworkv1.KeyTaskUID, frameworkv1.KeyTaskAttemptID),
		Spec: corev1.PodSpec{NodeName: pod.Spec.NodeName, InitContainers: podend.KeepSidecars(pod)},
		Status: corev1.PodStatus{
			Phase:                 pod.Status.Phase,
			Reason:                pod.Status.Reason,
			Message:               pod.Status.Message,
			PodIP:                 pod.Status.PodIP,
			HostIP:                pod.Status.HostIP,
			StartTime:             pod.Status.StartTime,
			InitContainerStatuses: containerStates(pod.Status.InitContainerStatuses),
			ContainerStatuses:     containerStates(pod.Status.ContainerStatuses),
		},
	}
	kept.Labels, kept.OwnerReferences, kept.DeletionGracePeriodSeconds = pod.Labels, pod.OwnerReferences, pod.DeletionGracePeriodSeconds
	for _, condition := range pod.Status.Conditions {
		switch condition.Type {
		case corev1.DisruptionTarget:
			kept.Status.Conditions = append(kept.Status.Conditions, condition)
		case corev1.PodScheduled:
			if condition.Status == corev1.ConditionFalse {
				kept.Status.Conditions = append(kept.Status.Conditions,
					corev1.PodCondition{Type: condition.Type, Status: condition.Status, Reason: condition.Reason})
			}
		}
	}
	return kept
}

// containerStates keeps how containers ended, or for what they wait.
func containerStates(statuses []corev1.ContainerStatus) []corev1.ContainerStatus {
	var states []corev1.ContainerStatus
	for _, status := range statuses {
		state := corev1.ContainerStatus{
			Name:  status.Name,
			State: corev1.ContainerState{Terminated: status.State.Terminated},
		}
		if waiting := status.State.Waiting; waiting != nil {
			state.State.Waiting = &corev1.ContainerStateWaiting{Reason: waiting.Reason}
		}
		states = append(states, state)
	}
	return states
}
