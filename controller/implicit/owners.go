// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package implicit

import (
	"math"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	configv1alpha1 "github.com/lockstep-k8s/lockstep/apis/config/v1alpha1"
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/internal/untyped"
	"github.com/lockstep-k8s/lockstep/podgroup"
)

// ownerKind is a kind of owners with PodGroups for their Pods.
type ownerKind struct {
	rule     configv1alpha1.GroupingRule
	resource schema.GroupVersionResource
	// pods selects the Pods. None is selected for two kinds.
	pods string
	// label is the label of a Pod that names its owner: by UID or, if byName, by name.
	label  string
	byName bool
}

var ownerKinds = []ownerKind{
	{rule: configv1alpha1.RuleJobSets, resource: schema.GroupVersionResource{Group: "jobset.x-k8s.io", Version: "v1alpha2", Resource: "jobsets"},
		pods: podgroup.LabelJobSetUID, label: podgroup.LabelJobSetUID},
	{rule: configv1alpha1.RuleLeaderWorkerSets, resource: schema.GroupVersionResource{Group: "leaderworkerset.x-k8s.io", Version: "v1", Resource: "leaderworkersets"},
		pods: podgroup.LabelLWSGroup + ",!" + podgroup.LabelJobSetUID, label: podgroup.LabelLWSName, byName: true},
	{rule: configv1alpha1.RuleJobs, resource: schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"},
		pods: podgroup.LabelJobUID + ",!" + podgroup.LabelJobSetUID + ",!" + podgroup.LabelLWSGroup, label: podgroup.LabelJobUID},
}

// keyOf returns the index value of an object: how its Pods name it.
func (k *ownerKind) keyOf(object metav1.Object) string {
	if k.byName {
		return object.GetNamespace() + "/" + object.GetName()
	}
	return object.GetNamespace() + "/" + string(object.GetUID())
}

// keyFrom returns the same for the owner that a Pod names.
func (k *ownerKind) keyFrom(pod *corev1.Pod) string {
	return pod.Namespace + "/" + pod.Labels[k.label]
}

// reduce removes from an object what is not read, which is most of it.
func reduce(object *unstructured.Unstructured) {
	object.SetManagedFields(nil)
	for _, path := range [][]string{{"status"}, {"spec", "template"}, {"spec", "selector"}, {"spec", "leaderWorkerTemplate"}} {
		unstructured.RemoveNestedField(object.Object, path...)
	}
	value, _, _ := unstructured.NestedFieldNoCopy(object.Object, "spec", "replicatedJobs")
	jobs, _ := value.([]any)
	for _, item := range jobs {
		if job, ok := item.(map[string]any); ok {
			unstructured.RemoveNestedField(job, "template", "spec", "template")
		}
	}
}

// wants returns how many Pods of a group the owner needs to be placed together, and the policy of the PodGroup.
func wants(s situation) (minimum int32, policy schedulingv1alpha1.SchedulingPolicy) {
	switch s.implicit.Rule {
	case configv1alpha1.RuleJobs:
		return podsOfJob(s.owner.Object, "spec"), schedulingv1alpha1.PolicyGang
	case configv1alpha1.RuleJobSets:
		set := readJobSet(s.owner)
		switch {
		case s.implicit.PerJob:
			return max(1, set.perJob[s.pod.Labels[podgroup.LabelJobSetRole]]), schedulingv1alpha1.PolicyGang
		case set.inOrder:
			return 1, schedulingv1alpha1.PolicyGangPerJob
		default:
			return set.pods, schedulingv1alpha1.PolicyGang
		}
	default:
		if startsWithLeader(s.owner) {
			return 1, schedulingv1alpha1.PolicyBasic
		}
		minimum = 1
		for _, pod := range s.pods {
			minimum = max(minimum, sizeSaidBy(pod))
		}
		return minimum, schedulingv1alpha1.PolicyGang
	}
}

// expectedRuntime returns how long the Pods of an owner probably run: by its annotation, else by the Job's
// activeDeadlineSeconds; nil if unknown. It is an estimate and no limit, because the Job's own controller ends the Job,
// and the user may raise the deadline. A value that is out of range does not count.
func expectedRuntime(owner *unstructured.Unstructured) *int32 {
	var fields podgroup.Runtimes
	if deadline, _, _ := unstructured.NestedFieldNoCopy(owner.Object, "spec", "activeDeadlineSeconds"); untyped.Number(deadline) > 0 {
		fields.Max = ptr.To(untyped.Number(deadline))
	}
	runtimes, _ := podgroup.ReadRuntimes(owner, fields)
	if runtimes.Expected == nil {
		return runtimes.Max
	}
	return runtimes.Expected
}

// sizeSaidBy returns the number of Pods in a replica of a LeaderWorkerSet, from the annotation of one of its Pods; 0
// if the annotation is missing.
func sizeSaidBy(pod *corev1.Pod) int32 {
	n, err := strconv.ParseInt(pod.Annotations[podgroup.AnnotationLWSSize], 10, 32)
	if err != nil {
		return 0
	}
	return int32(n)
}

// podsOfJob returns how many Pods of a Job run at the same time: parallelism, or completions if that is less, but at
// least 1.
func podsOfJob(object map[string]any, path ...string) int32 {
	spec, _, _ := unstructured.NestedMap(object, path...)
	pods := int32(1)
	if _, says := spec["parallelism"]; says {
		pods = untyped.Number(spec["parallelism"])
	}
	if _, says := spec["completions"]; says {
		pods = min(pods, untyped.Number(spec["completions"]))
	}
	return max(1, pods)
}

// jobSet is what a JobSet says of its Pods.
type jobSet struct {
	// inOrder says that some of its Jobs start only after others.
	inOrder bool
	// pods is how many Pods all Jobs of the JobSet run at the same time, and perJob how many each Job of a role does.
	pods   int32
	perJob map[string]int32
}

func readJobSet(object *unstructured.Unstructured) jobSet {
	set := jobSet{perJob: map[string]int32{}}
	order, _, _ := unstructured.NestedString(object.Object, "spec", "startupPolicy", "startupPolicyOrder")
	set.inOrder = order == "InOrder"
	jobs, _, _ := unstructured.NestedSlice(object.Object, "spec", "replicatedJobs")
	var total int64
	for _, item := range jobs {
		job, ok := item.(map[string]any)
		if !ok {
			continue
		}
		after, _, _ := unstructured.NestedSlice(job, "dependsOn")
		set.inOrder = set.inOrder || len(after) > 0
		replicas := int32(1)
		if _, says := job["replicas"]; says {
			replicas = untyped.Number(job["replicas"])
		}
		name, _, _ := unstructured.NestedString(job, "name")
		set.perJob[name] = podsOfJob(job, "template", "spec")
		total = min(total+int64(replicas)*int64(set.perJob[name]), math.MaxInt32)
	}
	set.pods = int32(max(1, total))
	return set
}

// startsWithLeader reports whether a LeaderWorkerSet creates its workers only when their leader is ready or has a
// node. Then a gang of leader and workers could never start.
func startsWithLeader(set *unstructured.Unstructured) bool {
	policy, _, _ := unstructured.NestedString(set.Object, "spec", "startupPolicy")
	annotations := set.GetAnnotations()
	return policy == "LeaderReady" || annotations["leaderworkerset.sigs.k8s.io/exclusive-topology"] != "" ||
		annotations["leaderworkerset.sigs.k8s.io/subgroup-exclusive-topology"] != ""
}

// strip removes all fields of a Pod that neither this package nor the controller of PodGroups reads.
func strip(object any) (any, error) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return object, nil
	}
	kept := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion,
			DeletionTimestamp: pod.DeletionTimestamp, Labels: map[string]string{}},
		Spec:   corev1.PodSpec{NodeName: pod.Spec.NodeName},
		Status: corev1.PodStatus{Phase: pod.Status.Phase},
	}
	for _, label := range []string{schedulingv1alpha1.LabelPodGroup, schedulingv1alpha1.LabelRole, podgroup.LabelJobUID, podgroup.LabelJobSetUID,
		podgroup.LabelJobSetAttempt, podgroup.LabelJobSetRole, podgroup.LabelJobSetJob, podgroup.LabelLWSName, podgroup.LabelLWSGroup, podgroup.LabelLWSRevision} {
		if value, says := pod.Labels[label]; says {
			kept.Labels[label] = value
		}
	}
	if size := pod.Annotations[podgroup.AnnotationLWSSize]; size != "" {
		kept.Annotations = map[string]string{podgroup.AnnotationLWSSize: size}
	}
	if controller := metav1.GetControllerOf(pod); controller != nil {
		kept.OwnerReferences = []metav1.OwnerReference{*controller}
	}
	return kept, nil
}
