// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package whatif

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/resource"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/podclass"
)

// Bounds of a gang that is simulated. What an answer costs grows with the product of each and the nodes.
const (
	// maxClasses is of how many kinds its members are.
	maxClasses = 64
	// maxTerms is how many conditions a member has: host ports, tolerations, selectors and terms of affinity.
	maxTerms = 1000
	// maxLevels is in how many topologies the members are to be together, and maxResources how many resources they ask for.
	maxLevels    = 16
	maxResources = 64
)

// Why a gang is not simulated. The texts are told.
var (
	errKinds     = fmt.Errorf("the members are of more than %d kinds: that is too many to simulate", maxClasses)
	errTerms     = fmt.Errorf("a member has more than %d host ports, tolerations, selectors and terms of affinity: those are too many to simulate", maxTerms)
	errLevels    = fmt.Errorf("the members are to be together in more than %d topologies: those are too many to simulate", maxLevels)
	errResources = fmt.Errorf("the members ask for more than %d resources: those are too many to simulate", maxResources)
	errOver      = errors.New("the time for the answer is over")
)

// class is a set of members that need the same of a node.
type class struct {
	role    string
	members []*corev1.Pod
	// various are those of the members of which it is not known that they are made from the template of another one.
	various  []*corev1.Pod
	requests corev1.ResourceList
	ports    []podclass.HostPort
	wants    podclass.Wants
}

// classify groups the members of a gang that wait by what they need, in their order. Those that are known to be made
// from one template are looked at once, but for their labels. The error says why they can't be simulated.
func classify(g *gang, isOver func() bool) ([]*class, error) {
	kinds, err := kindsOf(g, isOver)
	if err != nil {
		return nil, err
	}
	read, err := podclass.LabelKeys(g.waiting, kinds.keys, nil)
	if err != nil {
		return nil, err
	}
	var classes []*class
	index := make(map[string]*class)
	for i, pod := range g.waiting {
		text := kinds.keys[i] + read[i]
		c := index[text]
		if c == nil {
			if len(classes) == maxClasses {
				return nil, errKinds
			}
			of := kinds.of[kinds.keys[i]]
			c = &class{role: of.role, requests: of.requests, ports: of.ports}
			if c.wants, err = podclass.WantsOf(pod); err != nil {
				return nil, err
			}
			index[text] = c
			classes = append(classes, c)
		}
		c.members = append(c.members, pod)
		if kinds.various[pod] || len(c.various) == 0 {
			c.various = append(c.various, pod)
		}
	}
	return classes, nil
}

// kinds are members by what they need, labels aside.
type kinds struct {
	keys    []string // of the members that wait, in their order
	of      map[string]*class
	various map[*corev1.Pod]bool // those that were looked at
}

// kindsOf looks at the members of a gang that wait.
func kindsOf(g *gang, isOver func() bool) (*kinds, error) {
	all := &kinds{of: make(map[string]*class), various: make(map[*corev1.Pod]bool)}
	byTemplate := make(map[int]string)
	for _, pod := range g.waiting {
		template, isMade := g.templates[pod]
		if text, known := byTemplate[template]; isMade && known {
			all.keys = append(all.keys, text)
			continue
		}
		switch {
		case isOver():
			return nil, errOver
		case terms(&pod.Spec) > maxTerms:
			return nil, errTerms
		}
		c := &class{role: g.group.Key.RoleOf(pod), requests: requestsOf(pod), ports: portsOf(pod)}
		text := c.key(pod)
		if all.of[text] == nil {
			if len(all.of) == maxClasses {
				return nil, errKinds
			}
			all.of[text] = c
		}
		all.keys, all.various[pod] = append(all.keys, text), true
		if isMade {
			byTemplate[template] = text
		}
	}
	return all, nil
}

// terms is how many conditions a Pod has of nodes and of other Pods.
func terms(spec *corev1.PodSpec) int {
	n := len(spec.NodeSelector) + len(spec.Tolerations)
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			n += len(containers[i].Ports)
		}
	}
	a := spec.Affinity
	if a == nil {
		return n
	}
	if a.NodeAffinity != nil && a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		for _, term := range a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
			n += 1 + len(term.MatchExpressions) + len(term.MatchFields)
		}
	}
	near, apart := podclass.RequiredTerms(&corev1.Pod{Spec: *spec})
	for _, terms := range [][]corev1.PodAffinityTerm{near, apart} {
		for _, term := range terms {
			n += 1 + len(term.Namespaces)
			if term.LabelSelector != nil {
				n += len(term.LabelSelector.MatchLabels) + len(term.LabelSelector.MatchExpressions)
			}
		}
	}
	return n
}

// key is equal for Pods of one class. Labels are left out: each task of a job has some of its own. Package podclass
// says which of them matter.
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
		return string(pod.UID) // no Pod that came as JSON fails to be written so
	}
	return string(data)
}

// requestsOf is what a Pod takes of a node.
func requestsOf(pod *corev1.Pod) corev1.ResourceList {
	return resource.PodRequests(pod, resource.PodResourcesOptions{UseStatusResources: true})
}

// portsOf are the ports of a node that a Pod wants, in their order.
func portsOf(pod *corev1.Pod) []podclass.HostPort {
	return slices.SortedFunc(maps.Keys(podclass.HostPorts(pod)), func(a, b podclass.HostPort) int {
		return cmp.Or(cmp.Compare(a.Port, b.Port), cmp.Compare(a.Protocol, b.Protocol), cmp.Compare(a.Address, b.Address))
	})
}

// unchecked are sentences on what members ask for that only the scheduler's plugins know.
func unchecked(classes []*class) []string {
	var all []string
	say := func(text string, has func(pod *corev1.Pod) bool) {
		if slices.ContainsFunc(classes, func(c *class) bool { return slices.ContainsFunc(c.various, has) }) {
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
