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

// Labels and annotations of Pods that form a gang without a PodGroup.
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

// word is a function that returns a property of a Pod, "" if the Pod does not have the property.
type word func(*corev1.Pod) string

func label(key string) word      { return func(pod *corev1.Pod) string { return pod.Labels[key] } }
func annotation(key string) word { return func(pod *corev1.Pod) string { return pod.Annotations[key] } }

// either returns a word that reads the label with the given key or, if the Pod does not have that label, the
// annotation.
func either(key string) word {
	return func(pod *corev1.Pod) string {
		if value := pod.Labels[key]; value != "" {
			return value
		}
		return pod.Annotations[key]
	}
}

// controller returns the UID of a Pod's controller if the Pod asks for a gang of all Pods of that controller, else "".
func controller(pod *corev1.Pod) string {
	if owner := metav1.GetControllerOfNoCopy(pod); owner != nil && pod.Annotations[annotationGroupBy] == "owner" {
		return string(owner.UID)
	}
	return ""
}

// rule says which Pods form a gang without a PodGroup.
type rule struct {
	name configv1alpha1.GroupingRule
	// prefix begins the names of the rule's gangs, so that two rules never produce the same name.
	prefix string
	// names are the properties that name the gang; the first that the Pod has counts. A rule does not fit a Pod that
	// has none of them.
	names []word
	// minimum is the number of members, if Pods have that.
	minimum word
	// needs limits the rule to Pods with this word. Nil: all Pods.
	needs word
	// unless excludes a Pod if one of these words is "true".
	unless []word
	// implicit reports that lockstep-controller makes PodGroups for the owners of the Pods. The gang is then that of a
	// PodGroup of Lockstep; see podgroup.ImplicitOf.
	implicit bool
	// dialect is the PodGroup API of the gangs.
	dialect Dialect
	// asked means that the labels serve only to make Pods a gang here.
	asked bool
}

// rules are in the order of precedence.
var rules = []rule{
	{
		name: configv1alpha1.RuleAnnotations, prefix: "group/", dialect: Rules,
		names: []word{annotation(annotationGroup)}, minimum: annotation(annotationMinimum), asked: true,
	}, {
		name: configv1alpha1.RuleAnnotations, prefix: "owner/", dialect: Rules,
		names: []word{controller}, minimum: annotation(annotationMinimum), asked: true,
	}, {
		// Pods of a group with fast admission or of a served workload are created one after the other.
		name: configv1alpha1.RuleKueuePods, prefix: "kueue/", dialect: Rules,
		names: []word{either(kueueGroup)}, minimum: annotation(kueueTotal),
		unless: []word{either(kueueServing), either(kueueFast)},
	}, {
		// A PodGroup with that name takes precedence, so the gang belongs to the PodGroup's API.
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

// fits reports whether a rule applies to a Pod. If so, it also returns the name of the Pod's gang.
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

// maxName is the maximum length of a gang's name, the same as that of objects. Names may come from annotations, which
// may be much longer, and messages contain names.
const maxName = 253

// digested is how many bytes of a name that is too long are hashed, at the beginning and at the end each. The name's
// length is hashed, too. Hashing only a part saves time, because the name of a Pod's gang is computed often.
const digested = 512

// bounded returns prefix and name as one name of at most maxName bytes. A longer one is cut, and a digest is put at its
// end.
func bounded(prefix, name string) string {
	if len(prefix)+len(name) <= maxName {
		return prefix + name
	}
	digest := sha256.Sum256(fmt.Append(nil, len(name), " ", name[:min(len(name), digested)], " ", name[max(0, len(name)-digested):]))
	end := "-" + hex.EncodeToString(digest[:16])
	return text.Cut(prefix+text.Cut(name, maxName), maxName-len(end)) + end
}

// least parses a gang's minimum. The result is at least 1; invalid text gives 1, and a number beyond int32 gives the
// largest int32.
func least(text string) int32 {
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 1
	}
	return int32(min(max(n, 1), math.MaxInt32))
}

// Implied returns the Group for a gang without a PodGroup. minimum is what its members state; created is when its
// oldest member was created.
func Implied(key Key, minimum int32, created time.Time) *Group {
	return &Group{
		Key: key,
		// There is no object. No other gang ever has this key, so the constant identifies the group.
		UID:     ImpliedUID,
		Created: created,
		Spec:    Spec{Minimum: podgroup.Minimum{Members: minimum}, DisruptionMode: schedulingv1alpha1.DisruptGang},
	}
}

// ImpliedUID stands for the UID where there is no PodGroup.
const ImpliedUID = "implied"
