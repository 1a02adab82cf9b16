// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package whatif

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/resource"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/podclass"
)

// maxClasses is the largest number of kinds of members in a simulated gang. The cost of an answer grows with the number
// of kinds.
const maxClasses = 64

var errKinds = fmt.Errorf("the members are of more than %d kinds: that is too many to simulate", maxClasses)

// class is a set of members with the same needs of a node.
type class struct {
	// text is equal for classes with the same needs.
	text     string
	role     string
	members  []*corev1.Pod
	requests corev1.ResourceList
	ports    []podclass.HostPort
	wants    podclass.Wants
}

// classify groups the waiting members of a gang by their needs, and keeps their order. The error says why the members
// can't be simulated.
func classify(g *gang) ([]*class, error) {
	kinds, keys := make(map[string]*class), make([]string, len(g.waiting))
	for i, pod := range g.waiting {
		kind := &class{role: g.group.Key.RoleOf(pod), requests: requestsOf(pod), ports: portsOf(pod)}
		keys[i] = kind.key(pod)
		kinds[keys[i]] = kind
	}
	read, err := podclass.LabelKeys(g.waiting, keys, nil)
	if err != nil {
		return nil, err
	}
	var classes []*class
	index := make(map[string]*class)
	for i, pod := range g.waiting {
		key := keys[i] + read[i]
		c := index[key]
		if c == nil {
			if len(classes) == maxClasses {
				return nil, errKinds
			}
			own := *kinds[keys[i]]
			c = &own
			c.text = key
			if c.wants, err = podclass.WantsOf(pod); err != nil {
				return nil, err
			}
			index[key] = c
			classes = append(classes, c)
		}
		c.members = append(c.members, pod)
	}
	return classes, nil
}

// key returns a key that is equal for Pods of one class. It does not contain labels, because each task of a job has
// labels of its own; package podclass finds the labels that matter.
func (c *class) key(pod *corev1.Pod) string {
	spec := &pod.Spec
	key := struct {
		Role        string
		Requests    corev1.ResourceList
		Ports       []podclass.HostPort
		Selector    map[string]string
		Affinity    *corev1.Affinity
		Tolerations []corev1.Toleration
		Priority    *int32
	}{c.role, c.requests, c.ports, spec.NodeSelector, spec.Affinity, spec.Tolerations, spec.Priority}
	data, err := json.Marshal(key)
	if err != nil {
		return string(pod.UID) // a Pod that was decoded from JSON can be encoded
	}
	return string(data)
}

// requestsOf returns what a Pod takes of a node.
func requestsOf(pod *corev1.Pod) corev1.ResourceList {
	return resource.PodRequests(pod, resource.PodResourcesOptions{UseStatusResources: true})
}

// portsOf returns the host ports that a Pod wants, sorted.
func portsOf(pod *corev1.Pod) []podclass.HostPort {
	return slices.SortedFunc(maps.Keys(podclass.HostPorts(pod)), func(a, b podclass.HostPort) int {
		return cmp.Or(cmp.Compare(a.Port, b.Port), cmp.Compare(a.Protocol, b.Protocol), cmp.Compare(a.Address, b.Address))
	})
}

// unchecked returns sentences on needs of members that only the scheduler's plugins check.
func unchecked(classes []*class) []string {
	var all []string
	say := func(text string, has func(pod *corev1.Pod) bool) {
		if slices.ContainsFunc(classes, func(c *class) bool { return slices.ContainsFunc(c.members, has) }) {
			all = append(all, text)
		}
	}
	say("affinity and anti-affinity to other Pods than the gang's own are not checked", func(pod *corev1.Pod) bool {
		near, apart := podclass.RequiredTerms(pod)
		return len(near) > 0 || len(apart) > 0
	})
	say("topologySpreadConstraints are not checked", func(pod *corev1.Pod) bool { return len(pod.Spec.TopologySpreadConstraints) > 0 })
	say("volumes and their zones are not checked", func(pod *corev1.Pod) bool {
		return slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.PersistentVolumeClaim != nil || v.Ephemeral != nil })
	})
	say("devices of ResourceClaims are not checked", func(pod *corev1.Pod) bool { return len(pod.Spec.ResourceClaims) > 0 })
	return all
}
