// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package whatif

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
)

// MaxAddedNodes is how many nodes one question may add.
const MaxAddedNodes = 5000

// Added is a number of empty nodes like an existing one.
type Added struct {
	// Like is the name of an existing node. The new nodes have that node's labels, taints and capacity, but names of
	// their own, and are not cordoned.
	Like  string
	Count int
}

// WithNodes returns a Snapshot with more nodes. It returns an error if the node named by Like does not exist, or if
// there would be more than MaxAddedNodes new nodes.
func (s *Snapshot) WithNodes(added []Added) (*Snapshot, error) {
	changed := *s
	changed.Nodes = slices.Clip(s.Nodes)
	total := 0
	for _, a := range added {
		at := slices.IndexFunc(s.Nodes, func(node *corev1.Node) bool { return node.Name == a.Like })
		switch {
		case a.Count < 1:
			return nil, errors.New("the number of nodes to add is at least 1")
		case at < 0:
			return nil, fmt.Errorf("there is no node %q for the new ones to be like", a.Like)
		case a.Count > MaxAddedNodes-total:
			return nil, fmt.Errorf("at most %d nodes can be added", MaxAddedNodes)
		}
		total += a.Count
		for i := range a.Count {
			changed.Nodes = append(changed.Nodes, likeness(s.Nodes[at], fmt.Sprintf("new-%s-%d", a.Like, i+1)))
		}
	}
	return &changed, nil
}

// likeness returns a new node with another node's properties. The new node is not cordoned, and has no taints that
// describe a present problem of the other node.
func likeness(of *corev1.Node, name string) *corev1.Node {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Labels: maps.Clone(of.Labels)},
		Status: corev1.NodeStatus{Allocatable: of.Status.Allocatable}}
	if _, has := node.Labels[corev1.LabelHostname]; has {
		node.Labels[corev1.LabelHostname] = name
	}
	passing := []string{corev1.TaintNodeUnschedulable, corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable,
		corev1.TaintNodeMemoryPressure, corev1.TaintNodeDiskPressure, corev1.TaintNodePIDPressure, corev1.TaintNodeNetworkUnavailable}
	for _, taint := range of.Spec.Taints {
		if !slices.Contains(passing, taint.Key) {
			node.Spec.Taints = append(node.Spec.Taints, taint)
		}
	}
	return node
}

// Without returns a Snapshot in which the given gangs have ended: their Pods are gone, and their reservations are free.
// It returns an error if a gang does not exist.
func (s *Snapshot) Without(keys ...dialect.Key) (*Snapshot, error) {
	for _, key := range keys {
		if s.Group(key) == nil {
			return nil, fmt.Errorf("%w: %s, to do without", ErrNotFound, key)
		}
	}
	changed := *s
	gone := func(key dialect.Key) bool { return slices.Contains(keys, key) }
	changed.Pods = slices.DeleteFunc(slices.Clone(s.Pods), func(pod *corev1.Pod) bool {
		key, named := s.Links.KeyOf(pod)
		return named && gone(key) && s.Group(key).HasMember(pod)
	})
	changed.Groups = slices.DeleteFunc(slices.Clone(s.Groups), func(group *dialect.Group) bool { return gone(group.Key) })
	return &changed, nil
}

// WithGang returns a Snapshot with an additional gang, the last of its priority in the queue. It returns an error if a
// group with that key exists.
func (s *Snapshot) WithGang(group *dialect.Group, pods []*corev1.Pod) (*Snapshot, error) {
	if s.Group(group.Key) != nil {
		return nil, fmt.Errorf("there is a PodGroup %s already", group.Key)
	}
	changed := *s
	if added := *group; added.Created.IsZero() {
		added.Created = s.Now
		group = &added
	}
	changed.Groups = append(slices.Clip(s.Groups), group)
	changed.Pods = append(slices.Clip(s.Pods), pods...)
	return &changed, nil
}
