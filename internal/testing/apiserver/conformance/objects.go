// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
)

const anyError = ""

var objects = map[string]func(*env){
	"a name that is taken is refused": func(e *env) {
		e.createConfigMap(newConfigMap("a"))
		_, err := e.configMaps().Create(e.ctx, newConfigMap("a"), metav1.CreateOptions{})
		e.refused(err, apierrors.IsAlreadyExists, `configmaps "a" already exists`)
	},
	"what is not there is not found": func(e *env) {
		_, err := e.pods().Get(e.ctx, "a", metav1.GetOptions{})
		e.refused(err, apierrors.IsNotFound, `pods "a" not found`)
		_, err = e.podGroups().Update(e.ctx, newPodGroup("a"), metav1.UpdateOptions{})
		e.refused(err, apierrors.IsNotFound, "not found")
		e.refused(e.pods().Delete(e.ctx, "a", metav1.DeleteOptions{}), apierrors.IsNotFound, `pods "a" not found`)
	},
	"a resource that there is not is not found": func(e *env) {
		err := e.kube.CoreV1().RESTClient().Get().Namespace(e.namespace).Resource("gangs").Do(e.ctx).Error()
		e.refused(err, apierrors.IsNotFound, "the server could not find the requested resource")
		err = e.lockstep.SchedulingV1alpha1().RESTClient().Get().Namespace(e.namespace).Resource("podgroups").Name("a").SubResource("scale").Do(e.ctx).Error()
		e.refused(err, apierrors.IsNotFound, `podgroups.scheduling.lockstep.dev "a" not found`)
	},
	"a new object has a UID, a version and a time": func(e *env) {
		pod := e.createPod(newPod("a"))
		if pod.UID == "" || pod.ResourceVersion == "" || pod.CreationTimestamp.IsZero() || pod.Generation != 1 {
			e.Errorf("the new Pod has %+v", pod.ObjectMeta)
		}
		again := e.createConfigMap(newConfigMap("a"))
		if again.UID == pod.UID || again.Generation != 0 {
			e.Errorf("the new ConfigMap has %+v", again.ObjectMeta)
		}
	},
	"a new Pod is pending whatever it says, and has what it does not say": func(e *env) {
		pod := newPod("a")
		pod.Status.Phase = corev1.PodRunning
		pod = e.createPod(pod)
		if pod.Status.Phase != corev1.PodPending {
			e.Errorf("the phase is %s", pod.Status.Phase)
		}
		if ptr.Deref(pod.Spec.TerminationGracePeriodSeconds, 0) != 30 || pod.Spec.RestartPolicy != corev1.RestartPolicyAlways ||
			ptr.Deref(pod.Spec.Priority, 1) != 0 {
			e.Errorf("the spec is %+v", pod.Spec)
		}
	},
	"a new object of a custom resource has no status": func(e *env) {
		group := newPodGroup("a")
		group.Status.Members = 7
		if group = e.createPodGroup(group); group.Status.Members != 0 || group.Generation != 1 {
			e.Errorf("the PodGroup is %+v", group)
		}
	},
	"the server makes up a name with a prefix": func(e *env) {
		pod := newPod("")
		pod.GenerateName = "a-"
		if name := e.createPod(pod).Name; !strings.HasPrefix(name, "a-") || name == "a-" {
			e.Errorf("the name is %q", name)
		}
	},
	"what is malformed is invalid": func(e *env) {
		_, err := e.configMaps().Create(e.ctx, newConfigMap("UPPER"), metav1.CreateOptions{})
		e.refused(err, apierrors.IsInvalid, "metadata.name")
		pod := newPod("a")
		pod.Labels = map[string]string{"group": strings.Repeat("a", 64)}
		_, err = e.pods().Create(e.ctx, pod, metav1.CreateOptions{})
		e.refused(err, apierrors.IsInvalid, "metadata.labels")
		group := newPodGroup("a")
		group.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "owner"}}
		_, err = e.podGroups().Create(e.ctx, group, metav1.CreateOptions{})
		e.refused(err, apierrors.IsInvalid, "metadata.ownerReferences")
		configMap := newConfigMap("a")
		configMap.ResourceVersion = "1"
		_, err = e.configMaps().Create(e.ctx, configMap, metav1.CreateOptions{})
		e.refused(err, func(error) bool { return true }, "resourceVersion should not be set on objects to be created")
	},
	"an update of an old version is a conflict": func(e *env) {
		group := e.createPodGroup(newPodGroup("a"))
		newer := group.DeepCopy()
		newer.Spec.MinMember = 3
		_, err := e.podGroups().Update(e.ctx, newer, metav1.UpdateOptions{})
		e.must(err)
		group.Spec.MinMember = 4
		_, err = e.podGroups().Update(e.ctx, group, metav1.UpdateOptions{})
		e.refused(err, apierrors.IsConflict, "the object has been modified; please apply your changes to the latest version and try again")
		_, err = e.podGroups().UpdateStatus(e.ctx, group, metav1.UpdateOptions{})
		e.refused(err, apierrors.IsConflict, "the object has been modified")
	},
	"an update of another object of the name is a conflict": func(e *env) {
		group := e.createPodGroup(newPodGroup("a"))
		group.UID = "00000000-1111-2222-3333-444444444444"
		_, err := e.podGroups().Update(e.ctx, group, metav1.UpdateOptions{})
		e.refused(err, apierrors.IsConflict, "UID")
		_, err = e.podGroups().UpdateStatus(e.ctx, group, metav1.UpdateOptions{})
		e.refused(err, apierrors.IsConflict, "UID")
	},
	"an update without a version is invalid of custom resources, and of others overwrites": func(e *env) {
		group := e.createPodGroup(newPodGroup("a"))
		group.ResourceVersion = ""
		_, err := e.podGroups().Update(e.ctx, group, metav1.UpdateOptions{})
		e.refused(err, apierrors.IsInvalid, "metadata.resourceVersion")
		configMap := e.createConfigMap(newConfigMap("a"))
		configMap.ResourceVersion = ""
		configMap.Data = map[string]string{"a": "b"}
		_, err = e.configMaps().Update(e.ctx, configMap, metav1.UpdateOptions{})
		e.must(err)
	},
	"an update that changes nothing is no new version": func(e *env) {
		group := e.createPodGroup(newPodGroup("a"))
		same, err := e.podGroups().Update(e.ctx, group, metav1.UpdateOptions{})
		e.must(err)
		if same.ResourceVersion != group.ResourceVersion {
			e.Errorf("the version went from %s to %s", group.ResourceVersion, same.ResourceVersion)
		}
		pod := e.createPod(newPod("a"))
		samePod, err := e.pods().UpdateStatus(e.ctx, pod, metav1.UpdateOptions{})
		e.must(err)
		if samePod.ResourceVersion != pod.ResourceVersion {
			e.Errorf("the version of the Pod went from %s to %s", pod.ResourceVersion, samePod.ResourceVersion)
		}
	},
	"the generation counts changes of the spec only": func(e *env) {
		group := e.createPodGroup(newPodGroup("a"))
		group.Labels = map[string]string{"a": "b"}
		group, err := e.podGroups().Update(e.ctx, group, metav1.UpdateOptions{})
		e.must(err)
		group.Status = schedulingv1alpha1.PodGroupStatus{Phase: schedulingv1alpha1.PodGroupPending, Members: 1}
		group, err = e.podGroups().UpdateStatus(e.ctx, group, metav1.UpdateOptions{})
		e.must(err)
		if group.Generation != 1 {
			e.Errorf("the generation is %d after a label and a status", group.Generation)
		}
		group.Spec.MinMember = 3
		group, err = e.podGroups().Update(e.ctx, group, metav1.UpdateOptions{})
		e.must(err)
		if group.Generation != 2 {
			e.Errorf("the generation is %d after a change of the spec", group.Generation)
		}
	},
	"an update of the status changes nothing else, and one of the rest not the status": func(e *env) {
		framework, err := e.frameworks().Create(e.ctx, newFramework("a"), metav1.CreateOptions{})
		e.must(err)
		framework.Labels = map[string]string{"a": "b"}
		framework.Spec.TaskRoles[0].TaskNumber = 5
		framework.Status = &frameworkv1.FrameworkStatus{State: frameworkv1.FrameworkAttemptCreationPending}
		framework.Status.StartTime = metav1.Now().Rfc3339Copy()
		framework.Status.TransitionTime = framework.Status.StartTime
		framework, err = e.frameworks().UpdateStatus(e.ctx, framework, metav1.UpdateOptions{})
		e.must(err)
		if framework.Labels["a"] != "" || framework.Spec.TaskRoles[0].TaskNumber != 1 ||
			framework.Status == nil || framework.Status.State != frameworkv1.FrameworkAttemptCreationPending {
			e.Errorf("after an update of the status the Framework is %+v", framework)
		}
		framework.Spec.TaskRoles[0].TaskNumber = 5
		framework.Status = nil
		framework, err = e.frameworks().Update(e.ctx, framework, metav1.UpdateOptions{})
		e.must(err)
		if framework.Spec.TaskRoles[0].TaskNumber != 5 || framework.Status == nil {
			e.Errorf("after an update of the spec the Framework is %+v", framework)
		}
	},
	"the metadata of an object can be had alone": func(e *env) {
		framework, err := e.frameworks().Create(e.ctx, newFramework("a"), metav1.CreateOptions{})
		e.must(err)
		frameworks := e.metadata.Resource(frameworkv1.SchemeGroupVersion.WithResource(frameworkv1.FrameworkPlural)).Namespace(e.namespace)
		metadata, err := frameworks.Get(e.ctx, "a", metav1.GetOptions{})
		e.must(err)
		if metadata.UID != framework.UID || metadata.ResourceVersion != framework.ResourceVersion {
			e.Errorf("the metadata is %+v", metadata)
		}
		list, err := frameworks.List(e.ctx, metav1.ListOptions{})
		e.must(err)
		if len(list.Items) != 1 || list.Items[0].UID != framework.UID || list.ResourceVersion == "" {
			e.Errorf("the list is %+v", list)
		}
		e.must(frameworks.Delete(e.ctx, "a", uidPrecondition(framework.UID)))
	},
	"lists are selected by labels and fields": func(e *env) {
		for _, name := range []string{"c", "a", "b"} {
			pod := newPod(name)
			pod.Labels = map[string]string{"name": name}
			e.createPod(pod)
		}
		list := func(options metav1.ListOptions) string {
			pods, err := e.pods().List(e.ctx, options)
			e.must(err)
			var names []string
			for _, pod := range pods.Items {
				names = append(names, pod.Name)
			}
			return strings.Join(names, " ")
		}
		for want, options := range map[string]metav1.ListOptions{
			"a b c": {},
			"b":     {LabelSelector: "name=b"},
			"a c":   {LabelSelector: "name,name!=b"},
			"c":     {FieldSelector: "metadata.name=c"},
			"":      {FieldSelector: "status.phase=Running"},
		} {
			if got := list(options); got != want {
				e.Errorf("selected by %q and %q are %q, want %q", options.LabelSelector, options.FieldSelector, got, want)
			}
		}
		_, err := e.pods().List(e.ctx, metav1.ListOptions{FieldSelector: "spec.containers=a"})
		e.refused(err, apierrors.IsBadRequest, "field label not supported")
	},
	"a Pod is bound once": func(e *env) {
		e.createPod(newPod("a"))
		e.must(e.bind("a"))
		pod, err := e.pods().Get(e.ctx, "a", metav1.GetOptions{})
		e.must(err)
		if pod.Spec.NodeName != "nowhere" || len(pod.Status.Conditions) == 0 || pod.Status.Conditions[0].Type != corev1.PodScheduled {
			e.Errorf("the Pod is %+v", pod)
		}
		e.refused(e.bind("a"), apierrors.IsConflict, `is already assigned to node "nowhere"`)
		e.refused(e.bind("b"), apierrors.IsNotFound, anyError)
	},
	"a Pod of an unknown class is forbidden": func(e *env) {
		pod := newPod("a")
		pod.Spec.PriorityClassName = "no-such-class"
		_, err := e.pods().Create(e.ctx, pod, metav1.CreateOptions{})
		e.refused(err, apierrors.IsForbidden, `pods "a" is forbidden: no PriorityClass with name no-such-class was found`)
		pod.Spec.PriorityClassName = "system-node-critical"
		if priority := ptr.Deref(e.createPod(pod).Spec.Priority, 0); priority != 2_000_001_000 {
			e.Errorf("the priority is %d", priority)
		}
	},
}

func newFramework(name string) *frameworkv1.Framework {
	return &frameworkv1.Framework{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: frameworkv1.FrameworkSpec{
			ExecutionType: frameworkv1.ExecutionCreate,
			TaskRoles: []frameworkv1.TaskRoleSpec{{
				Name: "w", TaskNumber: 1,
				Task: frameworkv1.TaskSpec{Pod: runtime.RawExtension{Raw: []byte(`{"spec":{"containers":[{"name":"main","image":"busybox"}]}}`)}},
			}},
		},
	}
}
