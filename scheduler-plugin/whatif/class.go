// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package whatif

import (
	"encoding/json"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/component-helpers/resource"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
)

// maxClasses bounds of how many kinds the members of a gang are that is simulated.
const maxClasses = 64

// class is a set of members that need the same of a node.
type class struct {
	role     string
	members  []*corev1.Pod
	requests corev1.ResourceList
	ports    []port
}

// port is one of a node that a container wants.
type port struct {
	Protocol corev1.Protocol
	IP       string
	Number   int32
}

// classify groups Pods by what they need, in their order. The bool is false if they are of more
// kinds than may be simulated.
func classify(key dialect.Key, pods []*corev1.Pod) ([]*class, bool) {
	var classes []*class
	index := make(map[string]*class)
	for _, pod := range pods {
		c := &class{role: key.RoleOf(pod), requests: requestsOf(pod), ports: portsOf(pod)}
		text := c.key(pod)
		if index[text] == nil {
			if len(classes) == maxClasses {
				return nil, false
			}
			index[text] = c
			classes = append(classes, c)
		}
		index[text].members = append(index[text].members, pod)
	}
	return classes, true
}

// key is equal for Pods of one class. Labels are left out: each task of a job has some of its own, and
// for conditions between Pods the first member speaks for all, as in the scheduler's own plans.
func (c *class) key(pod *corev1.Pod) string {
	spec := &pod.Spec
	key := struct {
		Role        string
		Requests    corev1.ResourceList
		Ports       []port
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

// portsOf are the ports of a node that a Pod wants.
func portsOf(pod *corev1.Pod) []port {
	var ports []port
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			for _, p := range containers[i].Ports {
				if p.HostPort != 0 {
					ports = append(ports, port{p.Protocol, p.HostIP, p.HostPort})
				}
			}
		}
	}
	return ports
}

// repels says whether a member of one class keeps one of another off its node.
func (c *class) repels(other *class) bool {
	if slices.ContainsFunc(c.ports, func(p port) bool { return slices.Contains(other.ports, p) }) {
		return true
	}
	mine, theirs := c.members[0], other.members[0]
	return slices.ContainsFunc(repelTerms(mine), func(term corev1.PodAffinityTerm) bool {
		return term.TopologyKey == corev1.LabelHostname && concerns(&term, mine, theirs)
	})
}

// repelTerms are the conditions by which a Pod is to be away from others.
func repelTerms(pod *corev1.Pod) []corev1.PodAffinityTerm {
	if a := pod.Spec.Affinity; a != nil && a.PodAntiAffinity != nil {
		return a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	}
	return nil
}

// attractTerms are the conditions by which a Pod is to be near others.
func attractTerms(pod *corev1.Pod) []corev1.PodAffinityTerm {
	if a := pod.Spec.Affinity; a != nil && a.PodAffinity != nil {
		return a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	}
	return nil
}

// concerns says whether a condition of a Pod is about another one of its namespace. What asks for
// other namespaces is not read.
func concerns(term *corev1.PodAffinityTerm, pod, other *corev1.Pod) bool {
	if len(term.Namespaces) > 0 && !slices.Contains(term.Namespaces, pod.Namespace) {
		return false
	}
	selector, err := metav1.LabelSelectorAsSelector(term.LabelSelector)
	return err == nil && selector.Matches(labels.Set(other.Labels))
}

// attraction are the topology keys by which all members have to be in one domain.
func attraction(classes []*class) []string {
	var keys []string
	for _, c := range classes {
		for _, term := range attractTerms(c.members[0]) {
			all := !slices.ContainsFunc(classes, func(other *class) bool { return !concerns(&term, c.members[0], other.members[0]) })
			if all && !slices.Contains(keys, term.TopologyKey) {
				keys = append(keys, term.TopologyKey)
			}
		}
	}
	return keys
}

// unchecked are sentences on what members ask for that only the scheduler's plugins know.
func unchecked(classes []*class) []string {
	var all []string
	say := func(text string, has func(pod *corev1.Pod) bool) {
		if slices.ContainsFunc(classes, func(c *class) bool { return slices.ContainsFunc(c.members, has) }) {
			all = append(all, text)
		}
	}
	say("affinity and anti-affinity to other Pods than the gang's own are not checked", func(pod *corev1.Pod) bool {
		return len(repelTerms(pod)) > 0 || len(attractTerms(pod)) > 0
	})
	say("topologySpreadConstraints are not checked", func(pod *corev1.Pod) bool { return len(pod.Spec.TopologySpreadConstraints) > 0 })
	say("volumes and their zones are not checked", func(pod *corev1.Pod) bool {
		return slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.PersistentVolumeClaim != nil || v.Ephemeral != nil })
	})
	say("devices of ResourceClaims are not checked", func(pod *corev1.Pod) bool { return len(pod.Spec.ResourceClaims) > 0 })
	return all
}
