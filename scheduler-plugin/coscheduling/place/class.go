// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package place

import (
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/kube"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/planner"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/podclass"
)

// class is a set of members with the same needs of a node. The members still have labels of their own, but no selector
// that a plugin uses tells them apart; see package podclass.
type class struct {
	// key is the ClassKey that all members share.
	key     string
	role    string
	members []*corev1.Pod
	handle  framework.Framework
	info    *framework.PodInfo // of the first member
	wants   podclass.Wants     // of all members
	devices map[string]int64   // that a member takes, by DeviceClass

	// fits reports for each node, by its index among the surveyed nodes, whether the node may hold a member if
	// resources are left aside.
	fits []bool
	// pass and view are what the plugins said of the nodes. view is nil if the plugins reject the first member wherever
	// it is, for the reasons in anywhere. closed counts the nodes that leaveClosed has excluded.
	pass     *pass
	view     *classPass
	anywhere []string
	closed   int

	regard regard // of all members
	// refused are the nodes that have rejected a member.
	refused map[string]bool

	// counted is a state of PreFilter plugins that may be used again, nil if none; see reuse.go.
	counted *counted

	// labelBlind reports that only label-blind plugins rejected the first member.
	labelBlind bool
}

// reasons counts the nodes that may not hold a member, by reason.
func (c *class) reasons() map[string]int {
	reasons := make(map[string]int)
	if c.view == nil {
		for _, reason := range c.anywhere {
			reasons[reason] = len(c.fits)
		}
		return reasons
	}
	c.pass.countReasons(c.view, reasons)
	if c.closed > 0 {
		reasons[Closed] = c.closed
	}
	return reasons
}

// whyNot returns why a plugin rejects a node, false if no plugin does.
func (c *class) whyNot(node int) (said, bool) {
	if c.view == nil || c.view.because == nil || c.view.because[node] == 0 {
		return said{}, false
	}
	return c.pass.said[c.view.because[node]-1], true
}

// fitsLater reports whether a node that may not hold a member now may hold one when Pods on the node have ended.
func (c *class) fitsLater(node int) bool {
	why, _ := c.whyNot(node)
	return why.passes
}

// isBarred reports whether a node keeps members out by its labels or taints.
func (c *class) isBarred(node int) bool {
	why, rejected := c.whyNot(node)
	return c.view != nil && !c.view.fits[node] && (!rejected || aboutNodes.Has(why.plugin))
}

// aboutNodes are the Filter plugins that look at nothing of a node but the node object.
var aboutNodes = sets.New(kube.NodeAffinity, kube.TaintToleration, kube.NodeUnschedulable, kube.NodeName)

// classify groups the members of a gang by their class keys. profiles are the members' profiles by scheduler name.
// Classes, and the members in a class, keep the order of pods.
func classify(group dialect.Key, pods []*corev1.Pod, keys []string, profiles map[string]framework.Framework) ([]*class, error) {
	var classes []*class
	index := make(map[string]*class)
	for i, pod := range pods {
		c, ok := index[keys[i]]
		if !ok {
			info, err := framework.NewPodInfo(pod)
			if err != nil {
				return nil, fmt.Errorf("reading affinity of %s: %w", pod.Name, err)
			}
			wants, err := podclass.WantsOf(pod)
			if err != nil {
				return nil, err
			}
			c = &class{
				key:     keys[i],
				role:    group.RoleOf(pod),
				handle:  profiles[pod.Spec.SchedulerName],
				info:    info,
				wants:   wants,
				regard:  regardOf(pod),
				refused: make(map[string]bool),
			}
			index[keys[i]] = c
			classes = append(classes, c)
		}
		c.members = append(c.members, pod)
	}
	return classes, nil
}

// ClassKey returns a key that is equal for Pods with the same needs and the same role. The key consists of what the
// default plugins read of a Pod's spec. It leaves out environment and commands, because these differ in each task of a
// job, and labels and the nominated node. The survey later divides classes further: by the labels that selectors read
// (package podclass), and by the nodes to which claims pin a Pod (pins.go).
func ClassKey(pod *corev1.Pod, role string) string {
	type container struct {
		Resources     corev1.ResourceRequirements
		RestartPolicy *corev1.ContainerRestartPolicy
		HostPorts     []corev1.ContainerPort
		Image         string
	}
	spec := &pod.Spec
	key := struct {
		Role, Scheduler    string
		Init, Containers   []container
		Resources          *corev1.ResourceRequirements
		Overhead, Selector any
		Affinity           *corev1.Affinity
		Tolerations        []corev1.Toleration
		Spread             []corev1.TopologySpreadConstraint
		Volumes            []corev1.Volume
		Claims             []corev1.PodResourceClaim
		Priority           *int32
		RuntimeClass       *string
		OS                 *corev1.PodOS
		HostNetwork        bool
	}{
		Role: role, Scheduler: spec.SchedulerName, Resources: spec.Resources, Overhead: spec.Overhead,
		Selector: spec.NodeSelector, Affinity: spec.Affinity, Tolerations: spec.Tolerations,
		Spread: spec.TopologySpreadConstraints, Claims: nameless(spec.ResourceClaims), Priority: spec.Priority,
		RuntimeClass: spec.RuntimeClassName, OS: spec.OS, HostNetwork: spec.HostNetwork,
	}
	reduce := func(containers []corev1.Container) []container {
		reduced := make([]container, len(containers))
		for i := range containers {
			c := &containers[i]
			reduced[i] = container{Resources: c.Resources, RestartPolicy: c.RestartPolicy, Image: c.Image}
			for _, port := range c.Ports {
				if port.HostPort != 0 {
					reduced[i].HostPorts = append(reduced[i].HostPorts, port)
				}
			}
		}
		return reduced
	}
	key.Init, key.Containers = reduce(spec.InitContainers), reduce(spec.Containers)
	for _, v := range spec.Volumes {
		v.Name = ""
		if v.PersistentVolumeClaim != nil {
			v.PersistentVolumeClaim = &corev1.PersistentVolumeClaimVolumeSource{ReadOnly: v.PersistentVolumeClaim.ReadOnly}
		}
		if v.ConfigMap == nil && v.Secret == nil && v.EmptyDir == nil && v.Projected == nil && v.DownwardAPI == nil {
			key.Volumes = append(key.Volumes, v)
		}
	}
	data, err := json.Marshal(key)
	if err != nil {
		// A Pod that was decoded from JSON can always be encoded. If it can't, the Pod is a class of its own.
		return string(pod.UID)
	}
	return string(data)
}

// nameless returns claims without the names of existing ResourceClaims. The names of ResourceClaimTemplates stay.
func nameless(claims []corev1.PodResourceClaim) []corev1.PodResourceClaim {
	all := slices.Clone(claims)
	for i := range all {
		if all[i].ResourceClaimName != nil {
			all[i].ResourceClaimName = new(string)
		}
	}
	return all
}

// regard is what a Pod wants with respect to other Pods.
type regard struct {
	// drawn: the Pod has to be near others. averse: it must not be near others. spread: it has to be where few others
	// are.
	drawn, averse, spread bool
	// prefers: the Pod would like to be near others, away from others, or spread, but need not be.
	prefers bool
}

func regardOf(pod *corev1.Pod) regard {
	near, apart := podclass.RequiredTerms(pod)
	r := regard{drawn: len(near) > 0, averse: len(apart) > 0, prefers: len(podclass.PreferredTerms(pod)) > 0}
	for i := range pod.Spec.TopologySpreadConstraints {
		if pod.Spec.TopologySpreadConstraints[i].WhenUnsatisfiable == corev1.DoNotSchedule {
			r.spread = true
		} else {
			r.prefers = true
		}
	}
	return r
}

// isMonotone reports whether a node that rejects the Pod keeps rejecting it as more Pods are placed. Affinity and
// spread break this rule: a placed Pod can attract the next one, or make a node's domain one of those with few Pods.
func (r regard) isMonotone() bool { return !r.drawn && !r.spread }

// spreads returns the topologies over which the class's members have to be spread. As in PodTopologySpread, the Pods on
// the given nodes are counted.
func (c *class) spreads(nodes []fwk.NodeInfo) []planner.Spread {
	pod := c.members[0]
	selected := nodeaffinity.GetRequiredNodeAffinity(pod)
	var all []planner.Spread
	for i := range pod.Spec.TopologySpreadConstraints {
		constraint := &pod.Spec.TopologySpreadConstraints[i]
		selector, err := metav1.LabelSelectorAsSelector(constraint.LabelSelector)
		if err != nil || constraint.WhenUnsatisfiable != corev1.DoNotSchedule || !selector.Matches(labels.Set(pod.Labels)) {
			continue
		}
		ignoresSelection := constraint.NodeAffinityPolicy != nil && *constraint.NodeAffinityPolicy == corev1.NodeInclusionPolicyIgnore
		honoursTaints := constraint.NodeTaintsPolicy != nil && *constraint.NodeTaintsPolicy == corev1.NodeInclusionPolicyHonor
		spread := planner.Spread{Domain: make([]int, len(nodes)), MaxSkew: int(max(1, constraint.MaxSkew))}
		index := make(map[string]int)
		for n, info := range nodes {
			node := info.Node()
			value, has := node.Labels[constraint.TopologyKey]
			if has && !ignoresSelection {
				has, _ = selected.Match(node)
			}
			if spread.Domain[n] = -1; !has || honoursTaints && isTainted(node, pod, corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute) {
				continue
			}
			d, known := index[value]
			if !known {
				d = len(spread.Counts)
				index[value] = d
				spread.Counts = append(spread.Counts, 0)
			}
			spread.Domain[n] = d
			for _, other := range info.GetPods() {
				if p := other.GetPod(); p.Namespace == pod.Namespace && p.DeletionTimestamp == nil && selector.Matches(labels.Set(p.Labels)) {
					spread.Counts[d]++
				}
			}
		}
		// With fewer domains than minDomains, the plugin counts as if there was one more domain, without Pods.
		if least := constraint.MinDomains; least != nil && len(spread.Counts) < int(*least) {
			spread.Counts = append(spread.Counts, 0)
		}
		all = append(all, spread)
	}
	return all
}

// wantsOf returns what the members of each class want with respect to other Pods.
func wantsOf(classes []*class) []*podclass.Wants {
	all := make([]*podclass.Wants, len(classes))
	for i, class := range classes {
		all[i] = &class.wants
	}
	return all
}
