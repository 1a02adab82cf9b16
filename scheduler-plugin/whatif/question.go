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

// ErrNotFound is the error of a question about a PodGroup that does not exist.
var ErrNotFound = errors.New("there is no such PodGroup")

// KeyOf returns the key of a PodGroup of Lockstep. name is either a name in the given namespace, or has the form
// namespace/name.
func KeyOf(namespace, name string) dialect.Key {
	if of, rest, found := strings.Cut(name, "/"); found {
		namespace, name = of, rest
	}
	return dialect.Key{Namespace: namespace, Name: name}
}

// Assumption is how the cluster is assumed to differ from the Snapshot.
type Assumption struct {
	// AddNodes are additional nodes. Without are gangs that are assumed to have ended.
	AddNodes []Added
	Without  []dialect.Key
	// Gang is the gang in question, if it does not exist yet.
	Gang *NewGang
}

// NewGang is a gang that does not exist yet: a PodGroup of Lockstep and its Pods. The Pods get the priority that the
// API server would set.
type NewGang struct {
	Group *schedulingv1alpha1.PodGroup
	Pods  []*corev1.Pod
}

// Assume returns where a gang would go under an assumption. It returns an error for an invalid question, such as
// ErrNotFound.
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
