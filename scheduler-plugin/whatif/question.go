// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package whatif

import (
	"errors"
	"fmt"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/answers"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
)

// ErrNotFound is of a question about a PodGroup that is not there.
var ErrNotFound = errors.New("there is no such PodGroup")

// KeyOf is the key of a PodGroup of Lockstep's that is named as namespace/name, or by the name of one
// in a namespace.
func KeyOf(namespace, name string) dialect.Key {
	if of, rest, found := strings.Cut(name, "/"); found {
		namespace, name = of, rest
	}
	return dialect.Key{Namespace: namespace, Name: name}
}

// Ask answers a question about gangs of Lockstep's PodGroups. The error says what is wrong with it; ErrNotFound is
// among them.
func Ask(s *Snapshot, question *answers.Question) (answers.Simulation, error) {
	key, assume := dialect.Key{Namespace: question.Namespace, Name: question.Name}, Assumption{AddNodes: question.AddNodes}
	if len(question.Without) > answers.MaxChanges {
		return answers.Simulation{}, errTooManyChanges
	}
	for _, name := range question.Without {
		assume.Without = append(assume.Without, KeyOf(question.Namespace, name))
	}
	if question.Gang != nil {
		var err error
		if assume.Gang, err = newGang(key, question.Gang); err != nil {
			return answers.Simulation{}, err
		}
	}
	return Assume(s, key, &assume)
}

// errTooManyChanges is of a question that assumes too much.
var errTooManyChanges = fmt.Errorf("a question has at most %d changes of a kind", answers.MaxChanges)

// Assumption is in what a cluster is to be other than it is.
type Assumption struct {
	// AddNodes are nodes beside those that are there, and Without are gangs that have ended.
	AddNodes []answers.AddNodes
	Without  []dialect.Key
	// Gang is the one that is asked for, if it is not there yet.
	Gang *NewGang
}

// NewGang is a gang that is not there yet: a group of Lockstep's and its Pods. The Pods get the priority
// that the API server would give them.
type NewGang struct {
	Group *schedulingv1alpha1.PodGroup
	Pods  []*corev1.Pod
	// templates says for each Pod from which template it is made; nil if that is not known.
	templates []int
}

// Assume says where a gang would go. The error says what is wrong with the question; ErrNotFound is among them.
func Assume(s *Snapshot, key dialect.Key, assume *Assumption) (answers.Simulation, error) {
	if len(assume.AddNodes) > answers.MaxChanges || len(assume.Without) > answers.MaxChanges {
		return answers.Simulation{}, errTooManyChanges
	}
	changed, err := s.Without(assume.Without...)
	if err != nil {
		return answers.Simulation{}, err
	}
	var added []Added
	for _, nodes := range assume.AddNodes {
		added = append(added, Added{Like: nodes.Like, Count: nodes.Count})
	}
	if changed, err = changed.WithNodes(added); err != nil {
		return answers.Simulation{}, err
	}
	if assume.Gang != nil {
		pods := make([]*corev1.Pod, len(assume.Gang.Pods))
		templates := make(map[*corev1.Pod]int, len(assume.Gang.templates))
		for i, pod := range assume.Gang.Pods {
			// Each needs to be a Pod of its own, by which it is known.
			own := *s.admitted(pod)
			if pods[i] = &own; i < len(assume.Gang.templates) {
				templates[&own] = assume.Gang.templates[i]
			}
		}
		if changed, err = changed.WithGang(dialect.FromOwn(assume.Gang.Group), pods); err != nil {
			return answers.Simulation{}, err
		}
		changed.templates = templates
	}
	answer, found := Simulate(changed, key)
	if !found {
		return answer, fmt.Errorf("%w: %s", ErrNotFound, key)
	}
	return answer, nil
}

// newGang is the gang of a question that is not there yet.
func newGang(key dialect.Key, gang *answers.Gang) (*NewGang, error) {
	if err := checkGang(key, gang); err != nil {
		return nil, err
	}
	var pods []*corev1.Pod
	var templates []int
	for i := range gang.Roles {
		role := &gang.Roles[i]
		if role.Count < 0 || role.Count > answers.MaxPods-len(pods) {
			return nil, fmt.Errorf("a gang has from 0 to %d Pods", answers.MaxPods)
		}
		spec := role.Template.Spec.DeepCopy()
		spec.NodeName = ""
		labels := maps.Clone(role.Template.Labels)
		if labels == nil {
			labels = make(map[string]string)
		}
		labels[schedulingv1alpha1.LabelPodGroup] = key.Name
		if role.Name != "" {
			labels[schedulingv1alpha1.LabelRole] = role.Name
		}
		for n := range role.Count {
			name := fmt.Sprintf("%s-%s-%d", key.Name, role.Name, n)
			templates = append(templates, i)
			pods = append(pods, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: name, UID: types.UID("new-" + name), Labels: labels},
				Spec: *spec, Status: corev1.PodStatus{Phase: corev1.PodPending}})
		}
	}
	group := &schedulingv1alpha1.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, UID: "new"}, Spec: gang.Spec}
	return &NewGang{Group: group, Pods: pods, templates: templates}, nil
}
