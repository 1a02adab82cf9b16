// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	configv1alpha1 "github.com/lockstep-k8s/lockstep/apis/config/v1alpha1"
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/internal/text"
	"github.com/lockstep-k8s/lockstep/podgroup"
)

// Labels and annotations of Pods that are a gang without a PodGroup.
const (
	annotationGroup   = "scheduling.lockstep.dev/group"
	annotationGroupBy = "scheduling.lockstep.dev/group-by"
	annotationMinimum = "scheduling.lockstep.dev/min-member"

	kueueGroup   = "kueue.x-k8s.io/pod-group-name"
	kueueTotal   = "kueue.x-k8s.io/pod-group-total-count"
	kueueServing = "kueue.x-k8s.io/pod-group-serving"
	kueueFast    = "kueue.x-k8s.io/pod-group-fast-admission"

	lightGroup   = "pod-group.scheduling.sigs.k8s.io/name"
	lightMinimum = "pod-group.scheduling.sigs.k8s.io/min-available"
)

// word reads something of a Pod, empty if the Pod does not say it.
type word func(*corev1.Pod) string

func label(key string) word      { return func(pod *corev1.Pod) string { return pod.Labels[key] } }
func annotation(key string) word { return func(pod *corev1.Pod) string { return pod.Annotations[key] } }

// either reads a label or, if there is none, the annotation of that name.
func either(key string) word {
	return func(pod *corev1.Pod) string {
		if value := pod.Labels[key]; value != "" {
			return value
		}
		return pod.Annotations[key]
	}
}

// controller is the UID of a Pod's controller, if the Pod asks for that.
func controller(pod *corev1.Pod) string {
	if owner := metav1.GetControllerOfNoCopy(pod); owner != nil && pod.Annotations[annotationGroupBy] == "owner" {
		return string(owner.UID)
	}
	return ""
}

// rule says which Pods are a gang without a PodGroup.
type rule struct {
	name configv1alpha1.GroupingRule
	// prefix begins the names of the gangs, so that those of two rules never have one name.
	prefix string
	// names are what names the gang: the first word that the Pod says. The rule fits no Pod
	// that says none.
	names []word
	// minimum is the number of members, if Pods say it.
	minimum word
	// needs has the rule fit only Pods that say it. Nil for all.
	needs word
	// unless are the words that have a Pod be none of a gang, if one is "true".
	unless []word
	// implicit says that lockstep-controller makes PodGroups for the owners of the Pods. The gang is one of Own, see
	// podgroup.ImplicitOf.
	implicit bool
	// dialect is that of the gangs.
	dialect Dialect
	// asked says that the words are written into Pods so that they be a gang here, and for nothing
	// else.
	asked bool
}

// rules are by name in the order in which they count.
var rules = []rule{
	{
		name: configv1alpha1.RuleAnnotations, prefix: "group/", dialect: Rules,
		names: []word{annotation(annotationGroup)}, minimum: annotation(annotationMinimum), asked: true,
	}, {
		name: configv1alpha1.RuleAnnotations, prefix: "owner/", dialect: Rules,
		names: []word{controller}, minimum: annotation(annotationMinimum), asked: true,
	}, {
		// Pods of a group that is served or admitted fast come one after the other.
		name: configv1alpha1.RuleKueuePods, prefix: "kueue/", dialect: Rules,
		names: []word{either(kueueGroup)}, minimum: annotation(kueueTotal),
		unless: []word{either(kueueServing), either(kueueFast)},
	}, {
		// A PodGroup of that name counts for more. So the gang is one of its dialect.
		name: configv1alpha1.RuleMinAvailable, dialect: SchedulerPlugins,
		names: []word{label(lightGroup)}, minimum: label(lightMinimum), needs: label(lightMinimum), asked: true,
	}, {
		name: configv1alpha1.RuleJobSets, names: []word{label(podgroup.LabelJobSetUID)}, implicit: true,
	}, {
		name: configv1alpha1.RuleLeaderWorkerSets, names: []word{label(podgroup.LabelLWSGroup)}, implicit: true,
	}, {
		name: configv1alpha1.RuleJobs, names: []word{label(podgroup.LabelJobUID)}, implicit: true,
	},
}

// fits says whether a rule is about a Pod, and the name of its gang.
func (r *rule) fits(pod *corev1.Pod) (name string, ok bool) {
	if r.needs != nil && r.needs(pod) == "" || slices.ContainsFunc(r.unless, func(w word) bool { return w(pod) == "true" }) {
		return "", false
	}
	i := slices.IndexFunc(r.names, func(w word) bool { return w(pod) != "" })
	if i < 0 {
		return "", false
	}
	return bounded(r.prefix, r.names[i](pod)), true
}

// maxName is how long the name of a gang is at most, as those of objects are. An annotation may be much longer,
// and the name is in what others are told.
const maxName = 253

// digested is how many bytes at either end of a name that is too long tell it from others, and its length. The scheduler asks for
// the name of a Pod's gang often.
const digested = 512

// bounded is a name that is not too long. A longer one ends in a digest.
func bounded(prefix, name string) string {
	if len(prefix)+len(name) <= maxName {
		return prefix + name
	}
	digest := sha256.Sum256(fmt.Append(nil, len(name), " ", name[:min(len(name), digested)], " ", name[max(0, len(name)-digested):]))
	end := "-" + hex.EncodeToString(digest[:16])
	return text.Cut(prefix+text.Cut(name, maxName), maxName-len(end)) + end
}

// least is the minimum that a text says, from 1. What can't be read is 1, and what is above all
// numbers is the highest.
func least(text string) int32 {
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 1
	}
	return int32(min(max(n, 1), math.MaxInt32))
}

// Implied is the group of a gang without a PodGroup, whose members tell how many are to be placed
// together. Created is when the oldest of them was created.
func Implied(key Key, minimum int32, created time.Time) *Group {
	return &Group{
		Key: key,
		// There is no object. Another gang never has the key, so this tells it from those.
		UID:     ImpliedUID,
		Created: created,
		Spec:    Spec{Minimum: podgroup.Minimum{Members: minimum}, DisruptionMode: schedulingv1alpha1.DisruptGang},
	}
}

// ImpliedUID stands for the UID of a PodGroup that there is not.
const ImpliedUID = "implied"
