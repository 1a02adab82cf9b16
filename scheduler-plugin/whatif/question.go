// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package whatif

import (
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

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

// Assumption is in what a cluster is to be other than it is.
type Assumption struct {
	// AddNodes are nodes beside those that are there, and Without are gangs that have ended.
	AddNodes []Added
	Without  []dialect.Key
	// Gang is the one that is asked for, if it is not there yet.
	Gang *NewGang
}

// NewGang is a gang that is not there yet: a group of Lockstep's and its Pods. The Pods get the priority
// that the API server would give them.
type NewGang struct {
	Group *schedulingv1alpha1.PodGroup
	Pods  []*corev1.Pod
}

// Assume says where a gang would go. The error says what is wrong with the question; ErrNotFound is among them.
func Assume(s *Snapshot, key dialect.Key, assume *Assumption) (answers.Simulation, error) {
	changed, err := s.Without(assume.Without...)
	if err != nil {
		return answers.Simulation{}, err
	}
	if changed, err = changed.WithNodes(assume.AddNodes); err != nil {
		return answers.Simulation{}, err
	}
	if assume.Gang != nil {
		pods := make([]*corev1.Pod, len(assume.Gang.Pods))
		for i, pod := range assume.Gang.Pods {
			pods[i] = s.admitted(pod)
		}
		if changed, err = changed.WithGang(dialect.FromOwn(assume.Gang.Group), pods); err != nil {
			return answers.Simulation{}, err
		}
	}
	answer, found := Simulate(changed, key)
	if !found {
		return answer, fmt.Errorf("%w: %s", ErrNotFound, key)
	}
	return answer, nil
}
