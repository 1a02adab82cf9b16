// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

var deletions = map[string]func(*env){
	"a deletion is of the object that it names": func(e *env) {
		e.createConfigMap(newConfigMap("a"))
		e.refused(e.configMaps().Delete(e.ctx, "a", uidPrecondition(otherUID)), apierrors.IsConflict, "UID")
		version := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: ptr.To("1")}}
		e.refused(e.configMaps().Delete(e.ctx, "a", version), apierrors.IsConflict, "ResourceVersion")
	},
	"a ConfigMap goes at once, and is not seen being deleted": func(e *env) {
		configMap := e.createConfigMap(newConfigMap("a"))
		events := e.record(e.configMaps().Watch(e.ctx, metav1.ListOptions{ResourceVersion: configMap.ResourceVersion, FieldSelector: "metadata.name=a"}))
		e.must(e.configMaps().Delete(e.ctx, "a", uidPrecondition(configMap.UID)))
		events.shows("DELETED a")
	},
	"a Pod without a node goes at once, but is seen being deleted": func(e *env) {
		pod := e.createPod(newPod("a"))
		events := e.record(e.pods().Watch(e.ctx, metav1.ListOptions{ResourceVersion: pod.ResourceVersion}))
		e.must(e.pods().Delete(e.ctx, "a", metav1.DeleteOptions{}))
		events.shows("MODIFIED a deleting", "DELETED a deleting")
	},
	"a Pod that has ended goes at once": func(e *env) {
		pod := newPod("a")
		pod.Spec.NodeName = "nowhere"
		pod = e.createPod(pod)
		pod.Status.Phase = corev1.PodSucceeded
		pod, err := e.pods().UpdateStatus(e.ctx, pod, metav1.UpdateOptions{})
		e.must(err)
		events := e.record(e.pods().Watch(e.ctx, metav1.ListOptions{ResourceVersion: pod.ResourceVersion}))
		e.must(e.pods().Delete(e.ctx, "a", metav1.DeleteOptions{}))
		events.shows("MODIFIED a deleting", "DELETED a deleting")
	},
	"a Pod on a node has its time to end, which can only be shortened": func(e *env) {
		e.createPod(newPod("a"))
		e.must(e.bind("a"))
		before := time.Now()
		var events *recording
		for _, step := range []struct{ ask, want int64 }{{-1, 30}, {60, 30}, {10, 10}, {20, 10}} {
			options := metav1.DeleteOptions{}
			if step.ask >= 0 {
				options.GracePeriodSeconds = &step.ask
			}
			e.must(e.pods().Delete(e.ctx, "a", options))
			pod, err := e.pods().Get(e.ctx, "a", metav1.GetOptions{})
			e.must(err)
			end := pod.DeletionTimestamp.Sub(before)
			want := time.Duration(step.want) * time.Second
			if got := ptr.Deref(pod.DeletionGracePeriodSeconds, -1); got != step.want || end < want-3*time.Second || end > want+3*time.Second {
				e.Errorf("asked for %d, it has %d s and ends after %v, want %d", step.ask, got, end, step.want)
			}
			if pod.Generation != 2 {
				e.Errorf("the generation is %d", pod.Generation)
			}
			if events == nil {
				events = e.record(e.pods().Watch(e.ctx, metav1.ListOptions{ResourceVersion: pod.ResourceVersion}))
			}
		}
		e.must(e.pods().Delete(e.ctx, "a", metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}))
		events.shows("MODIFIED a deleting", "MODIFIED a deleting", "DELETED a deleting")
	},
	"finalizers hold what is deleted": func(e *env) {
		configMap := newConfigMap("a")
		configMap.Finalizers = []string{"test.dev/hold"}
		configMap = e.createConfigMap(configMap)
		events := e.record(e.configMaps().Watch(e.ctx, metav1.ListOptions{ResourceVersion: configMap.ResourceVersion, FieldSelector: "metadata.name=a"}))
		e.must(e.configMaps().Delete(e.ctx, "a", metav1.DeleteOptions{}))
		e.must(e.configMaps().Delete(e.ctx, "a", metav1.DeleteOptions{}))
		_, err := e.configMaps().Create(e.ctx, newConfigMap("a"), metav1.CreateOptions{})
		e.refused(err, apierrors.IsAlreadyExists, "object is being deleted: ")
		configMap, err = e.configMaps().Get(e.ctx, "a", metav1.GetOptions{})
		e.must(err)
		configMap.Finalizers = nil
		_, err = e.configMaps().Update(e.ctx, configMap, metav1.UpdateOptions{})
		e.must(err)
		events.shows("MODIFIED a deleting", "DELETED a deleting")
	},
	"a Pod with a finalizer is being deleted until it is taken": func(e *env) {
		pod := newPod("a")
		pod.Finalizers = []string{"test.dev/hold"}
		pod = e.createPod(pod)
		events := e.record(e.pods().Watch(e.ctx, metav1.ListOptions{ResourceVersion: pod.ResourceVersion}))
		e.must(e.pods().Delete(e.ctx, "a", metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}))
		pod, err := e.pods().Get(e.ctx, "a", metav1.GetOptions{})
		e.must(err)
		if pod.DeletionTimestamp == nil || ptr.Deref(pod.DeletionGracePeriodSeconds, -1) != 0 {
			e.Errorf("the Pod is %+v", pod.ObjectMeta)
		}
		pod.Finalizers = nil
		_, err = e.pods().Update(e.ctx, pod, metav1.UpdateOptions{})
		e.must(err)
		events.shows("MODIFIED a deleting", "DELETED a deleting")
	},
	"a deletion of a custom object counts as a change of what is desired": func(e *env) {
		group := newPodGroup("a")
		group.Finalizers = []string{"test.dev/hold"}
		e.createPodGroup(group)
		e.must(e.podGroups().Delete(e.ctx, "a", metav1.DeleteOptions{}))
		group, err := e.podGroups().Get(e.ctx, "a", metav1.GetOptions{})
		e.must(err)
		if group.Generation != 2 || group.DeletionTimestamp == nil || ptr.Deref(group.DeletionGracePeriodSeconds, -1) != 0 {
			e.Errorf("the metadata is %+v", group.ObjectMeta)
		}
		group.Finalizers = nil
		_, err = e.podGroups().Update(e.ctx, group, metav1.UpdateOptions{})
		e.must(err)
		_, err = e.podGroups().Get(e.ctx, "a", metav1.GetOptions{})
		e.refused(err, apierrors.IsNotFound, anyError)
	},
	"a deletion in the foreground waits for dependents": func(e *env) {
		owner, pod := e.ownerOfPod()
		e.must(e.configMaps().Delete(e.ctx, "owner", propagation(metav1.DeletePropagationForeground)))
		owner, err := e.configMaps().Get(e.ctx, owner.Name, metav1.GetOptions{})
		e.must(err)
		if owner.DeletionTimestamp == nil || !slices.Contains(owner.Finalizers, metav1.FinalizerDeleteDependents) {
			e.Errorf("the owner is %+v", owner.ObjectMeta)
		}
		e.eventually("the dependent is being deleted", func() bool {
			pod, err = e.pods().Get(e.ctx, "dependent", metav1.GetOptions{})
			e.must(err)
			return pod.DeletionTimestamp != nil
		})
		_, err = e.configMaps().Get(e.ctx, "owner", metav1.GetOptions{})
		e.must(err)
		e.must(e.pods().Delete(e.ctx, "dependent", metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}))
		e.eventually("the owner is gone", func() bool {
			_, err := e.configMaps().Get(e.ctx, "owner", metav1.GetOptions{})
			return apierrors.IsNotFound(err)
		})
	},
	"a deletion in the background overrides one in the foreground": func(e *env) {
		e.ownerOfPod()
		e.must(e.configMaps().Delete(e.ctx, "owner", propagation(metav1.DeletePropagationForeground)))
		e.must(e.configMaps().Delete(e.ctx, "owner", propagation(metav1.DeletePropagationBackground)))
		_, err := e.configMaps().Get(e.ctx, "owner", metav1.GetOptions{})
		e.refused(err, apierrors.IsNotFound, anyError)
		_, err = e.pods().Get(e.ctx, "dependent", metav1.GetOptions{})
		e.must(err)
	},
	"a deletion that says nothing leaves one in the foreground as it is": func(e *env) {
		e.ownerOfPod()
		e.must(e.configMaps().Delete(e.ctx, "owner", propagation(metav1.DeletePropagationForeground)))
		e.must(e.configMaps().Delete(e.ctx, "owner", metav1.DeleteOptions{}))
		_, err := e.configMaps().Get(e.ctx, "owner", metav1.GetOptions{})
		e.must(err)
	},
	"dependents go after an owner that was deleted in the background": func(e *env) {
		e.ownerOfPod()
		e.must(e.configMaps().Delete(e.ctx, "owner", propagation(metav1.DeletePropagationBackground)))
		_, err := e.configMaps().Get(e.ctx, "owner", metav1.GetOptions{})
		e.refused(err, apierrors.IsNotFound, anyError)
		e.eventually("the dependent is being deleted", func() bool {
			pod, err := e.pods().Get(e.ctx, "dependent", metav1.GetOptions{})
			e.must(err)
			return pod.DeletionTimestamp != nil
		})
	},
	"dependents outlive an owner that orphans them": func(e *env) {
		e.ownerOfPod()
		e.must(e.configMaps().Delete(e.ctx, "owner", propagation(metav1.DeletePropagationOrphan)))
		e.eventually("the owner is gone", func() bool {
			_, err := e.configMaps().Get(e.ctx, "owner", metav1.GetOptions{})
			return apierrors.IsNotFound(err)
		})
		pod, err := e.pods().Get(e.ctx, "dependent", metav1.GetOptions{})
		e.must(err)
		if len(pod.OwnerReferences) != 0 || pod.DeletionTimestamp != nil {
			e.Errorf("the dependent is %+v", pod.ObjectMeta)
		}
	},
	"a dependent of an owner that never was goes": func(e *env) {
		group := newPodGroup("dependent")
		missing := newConfigMap("owner")
		missing.UID = otherUID
		ownedBy(group, "ConfigMap", missing)
		e.createPodGroup(group)
		e.eventually("the dependent is gone", func() bool {
			_, err := e.podGroups().Get(e.ctx, "dependent", metav1.GetOptions{})
			return apierrors.IsNotFound(err)
		})
	},
	"a dependent with dependents goes in the foreground with its owner": func(e *env) {
		framework, err := e.frameworks().Create(e.ctx, newFramework("top"), metav1.CreateOptions{})
		e.must(err)
		middle := newConfigMap("middle")
		ownedBy(middle, "Framework", framework)
		middle.OwnerReferences[0].APIVersion = "frameworkcontroller.microsoft.com/v1"
		middle = e.createConfigMap(middle)
		pod := newPod("bottom")
		pod.Spec.NodeName = "nowhere"
		ownedBy(pod, "ConfigMap", middle)
		e.createPod(pod)
		time.Sleep(time.Second) // A garbage collector has to have seen them.
		e.must(e.frameworks().Delete(e.ctx, "top", propagation(metav1.DeletePropagationForeground)))
		e.eventually("the Pod is being deleted", func() bool {
			pod, err := e.pods().Get(e.ctx, "bottom", metav1.GetOptions{})
			e.must(err)
			return pod.DeletionTimestamp != nil
		})
		middle, err = e.configMaps().Get(e.ctx, "middle", metav1.GetOptions{})
		e.must(err)
		if !slices.Contains(middle.Finalizers, metav1.FinalizerDeleteDependents) {
			e.Errorf("the one in the middle is %+v", middle.ObjectMeta)
		}
		e.must(e.pods().Delete(e.ctx, "bottom", metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}))
		e.eventually("all are gone", func() bool {
			_, err := e.frameworks().Get(e.ctx, "top", metav1.GetOptions{})
			return apierrors.IsNotFound(err)
		})
	},
	"a collection is deleted as it is selected": func(e *env) {
		for _, name := range []string{"a", "b"} {
			configMap := newConfigMap(name)
			configMap.Labels = map[string]string{"name": name}
			e.createConfigMap(configMap)
		}
		e.must(e.configMaps().DeleteCollection(e.ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "name=a"}))
		_, err := e.configMaps().Get(e.ctx, "a", metav1.GetOptions{})
		e.refused(err, apierrors.IsNotFound, anyError)
		_, err = e.configMaps().Get(e.ctx, "b", metav1.GetOptions{})
		e.must(err)
	},
}

// ownerOfPod makes a ConfigMap that owns a Pod on a node.
func (e *env) ownerOfPod() (*corev1.ConfigMap, *corev1.Pod) {
	e.Helper()
	owner := e.createConfigMap(newConfigMap("owner"))
	pod := newPod("dependent")
	pod.Spec.NodeName = "nowhere"
	ownedBy(pod, "ConfigMap", owner)
	pod = e.createPod(pod)
	time.Sleep(time.Second) // A garbage collector has to have seen them.
	return owner, pod
}
