// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package podgroup

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	configv1alpha1 "github.com/lockstep-k8s/lockstep/apis/config/v1alpha1"
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
)

// Labels and annotations that Kubernetes, JobSet and LeaderWorkerSet write into their Pods.
const (
	LabelJobUID = "batch.kubernetes.io/controller-uid"

	LabelJobSetUID     = "jobset.sigs.k8s.io/jobset-uid"
	LabelJobSetAttempt = "jobset.sigs.k8s.io/restart-attempt"
	LabelJobSetRole    = "jobset.sigs.k8s.io/replicatedjob-name"
	LabelJobSetJob     = "jobset.sigs.k8s.io/job-key"

	LabelLWSName      = "leaderworkerset.sigs.k8s.io/name"
	LabelLWSGroup     = "leaderworkerset.sigs.k8s.io/group-key"
	LabelLWSRevision  = "leaderworkerset.sigs.k8s.io/template-revision-hash"
	AnnotationLWSSize = "leaderworkerset.sigs.k8s.io/size"
)

// Implicit derives a PodGroup that lockstep-controller makes for an object of another project from labels of that
// object's Pods. The scheduler derives the name of a Pod's group in the same way, before the group exists.
type Implicit struct {
	// Rule names the kind of the object.
	Rule configv1alpha1.GroupingRule
	// PerJob says that the group is one of a Job of a JobSet that has a group for each of its Jobs.
	PerJob bool
	prefix string
	// labels are the labels that all members have with the same values. A Pod without the first one is no member.
	labels []string
}

// The groups of Pods by the labels of their tools. Those of a JobSet come before those of its Jobs.
var (
	ofJobSet          = Implicit{Rule: configv1alpha1.RuleJobSets, prefix: "jobset", labels: []string{LabelJobSetUID, LabelJobSetAttempt}}
	ofJobOfJobSet     = Implicit{Rule: configv1alpha1.RuleJobSets, PerJob: true, prefix: "jobset", labels: []string{LabelJobSetUID, LabelJobSetAttempt, LabelJobSetJob}}
	ofLeaderWorkerSet = Implicit{Rule: configv1alpha1.RuleLeaderWorkerSets, prefix: "lws", labels: []string{LabelLWSGroup, LabelLWSRevision}}
	ofJob             = Implicit{Rule: configv1alpha1.RuleJobs, prefix: "job", labels: []string{LabelJobUID}}
)

// ImplicitOf returns how the implicit group of a Pod follows from its labels, and the second one of a Pod of a JobSet,
// which counts if the first one has the policy GangPerJob. Both are nil if the Pod can't have any.
func ImplicitOf(pod *corev1.Pod) (first, perJob *Implicit) {
	switch labels := pod.Labels; {
	case labels[LabelJobSetUID] != "":
		return &ofJobSet, &ofJobOfJobSet
	case labels[LabelLWSGroup] != "":
		return &ofLeaderWorkerSet, nil
	case labels[LabelJobUID] != "":
		return &ofJob, nil
	default:
		return nil, nil
	}
}

// Name returns the name of a Pod's PodGroup. The name has a digest if the values of the labels make no name, or a too
// long one.
func (i *Implicit) Name(pod *corev1.Pod) string {
	parts := make([]string, 1, 1+len(i.labels))
	parts[0] = i.prefix
	for _, label := range i.labels {
		if value := pod.Labels[label]; value != "" {
			parts = append(parts, value)
		}
	}
	name := strings.Join(parts, "-")
	if isName(name) {
		return name
	}
	digest := sha256.Sum256([]byte(strings.Join(parts, "/")))
	return i.prefix + "-" + hex.EncodeToString(digest[:20])
}

// isName reports whether a text may be the name of a PodGroup. It is a faster validation.IsDNS1123Label, since the
// scheduler looks up the group of a Pod often.
func isName(text string) bool {
	for i := range len(text) {
		if c := text[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return len(text) <= validation.DNS1123LabelMaxLength && !strings.HasSuffix(text, "-")
}

// MemberLabels returns the labels that all members of a Pod's PodGroup have.
func (i *Implicit) MemberLabels(pod *corev1.Pod) map[string]string {
	labels := make(map[string]string, len(i.labels))
	for _, label := range i.labels {
		if value := pod.Labels[label]; value != "" {
			labels[label] = value
		}
	}
	return labels
}

// IsLinked reports whether a Pod has the labels by which Pods are members of a group: the labels of its memberLabels
// or, if it has none, the label that names a group.
func IsLinked(memberLabels map[string]string, pod *corev1.Pod) bool {
	if len(memberLabels) == 0 {
		return pod.Labels[schedulingv1alpha1.LabelPodGroup] != ""
	}
	for label, value := range memberLabels {
		if pod.Labels[label] != value {
			return false
		}
	}
	return true
}

// GroupsOf returns the names of the groups that a Pod may be a member of, by its labels: the group that the Pod names
// or, if none, the groups that lockstep-controller may create for its tool.
func GroupsOf(pod *corev1.Pod) []string {
	if name, named := GroupOf(pod); named {
		return []string{name.Name}
	}
	var names []string
	first, perJob := ImplicitOf(pod)
	for _, implicit := range []*Implicit{first, perJob} {
		if implicit != nil {
			names = append(names, implicit.Name(pod))
		}
	}
	return names
}
