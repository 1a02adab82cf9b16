// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
)

var watches = map[string]func(*env){
	"a watch shows what is done after a version": func(e *env) {
		first := e.createPod(newPod("first"))
		e.createPod(newPod("second"))
		events := e.record(e.pods().Watch(e.ctx, metav1.ListOptions{ResourceVersion: first.ResourceVersion}))
		pod, err := e.pods().Get(e.ctx, "first", metav1.GetOptions{})
		e.must(err)
		pod.Labels = map[string]string{"a": "b"}
		_, err = e.pods().Update(e.ctx, pod, metav1.UpdateOptions{})
		e.must(err)
		events.shows("ADDED second", "MODIFIED first")
	},
	"a watch without a version begins with what there is": func(e *env) {
		e.createPodGroup(newPodGroup("old"))
		events := e.record(e.podGroups().Watch(e.ctx, metav1.ListOptions{}))
		events.shows("ADDED old")
		e.createPodGroup(newPodGroup("new"))
		events.shows("ADDED old", "ADDED new")
	},
	"a watch tells where initial events end": func(e *env) {
		e.createPod(newPod("old"))
		events := e.record(e.pods().Watch(e.ctx, metav1.ListOptions{
			SendInitialEvents: ptr.To(true), AllowWatchBookmarks: true, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan}))
		events.shows("ADDED old", "BOOKMARK initial-events-end=true")
		e.createPod(newPod("new"))
		events.shows("ADDED old", "BOOKMARK initial-events-end=true", "ADDED new")
	},
	"a watch of custom resources tells where initial events end": func(e *env) {
		events := e.record(e.podGroups().Watch(e.ctx, metav1.ListOptions{
			SendInitialEvents: ptr.To(true), AllowWatchBookmarks: true, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan}))
		events.shows("BOOKMARK initial-events-end=true")
	},
	"initial events without bookmarks are refused": func(e *env) {
		_, err := e.pods().Watch(e.ctx, metav1.ListOptions{SendInitialEvents: ptr.To(true)})
		e.refused(err, func(err error) bool { return apierrors.IsInvalid(err) || apierrors.IsForbidden(err) }, anyError)
	},
	"what stops being selected is seen as deleted, and what begins to be as added": func(e *env) {
		pod := newPod("a")
		pod.Labels = map[string]string{"gang": "one"}
		pod = e.createPod(pod)
		one := e.record(e.pods().Watch(e.ctx, metav1.ListOptions{ResourceVersion: pod.ResourceVersion, LabelSelector: "gang=one"}))
		two := e.record(e.pods().Watch(e.ctx, metav1.ListOptions{ResourceVersion: pod.ResourceVersion, LabelSelector: "gang=two"}))
		running := e.record(e.pods().Watch(e.ctx, metav1.ListOptions{ResourceVersion: pod.ResourceVersion, FieldSelector: "status.phase=Running"}))
		pod.Labels["gang"] = "two"
		pod, err := e.pods().Update(e.ctx, pod, metav1.UpdateOptions{})
		e.must(err)
		pod.Status.Phase = corev1.PodRunning
		_, err = e.pods().UpdateStatus(e.ctx, pod, metav1.UpdateOptions{})
		e.must(err)
		one.shows("DELETED a")
		two.shows("ADDED a", "MODIFIED a")
		running.shows("ADDED a")
	},
	"what stops being selected is shown as it was, in the version in which it stopped": func(e *env) {
		pod := newPod("a")
		pod.Labels = map[string]string{"gang": "one"}
		pod = e.createPod(pod)
		w, err := e.pods().Watch(e.ctx, metav1.ListOptions{ResourceVersion: pod.ResourceVersion, LabelSelector: "gang=one"})
		e.must(err)
		defer w.Stop()
		pod.Labels = nil
		changed, err := e.pods().Update(e.ctx, pod, metav1.UpdateOptions{})
		e.must(err)
		event := <-w.ResultChan()
		if seen := event.Object.(*corev1.Pod); seen.Labels["gang"] != "one" || seen.ResourceVersion != changed.ResourceVersion {
			e.Errorf("%s shows %+v, the version is %s", event.Type, seen.ObjectMeta, changed.ResourceVersion)
		}
	},
	"metadata can be watched alone": func(e *env) {
		events := e.record(e.metadata.Resource(frameworkv1.SchemeGroupVersion.WithResource(frameworkv1.FrameworkPlural)).
			Namespace(e.namespace).Watch(e.ctx, metav1.ListOptions{}))
		_, err := e.frameworks().Create(e.ctx, newFramework("a"), metav1.CreateOptions{})
		e.must(err)
		events.shows("ADDED a")
	},
	"a list can't be newer than what there is": func(e *env) {
		// At once, without the client's retries: the server lets each of these wait for seconds.
		err := e.kube.CoreV1().RESTClient().Get().Namespace(e.namespace).Resource("pods").
			VersionedParams(&metav1.ListOptions{ResourceVersion: "1000000000"}, scheme.ParameterCodec).
			MaxRetries(0).Do(e.ctx).Error()
		e.refused(err, apierrors.IsTimeout, "Too large resource version")
	},
}
