// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/controller/jobpods"
	"github.com/lockstep-k8s/lockstep/internal/reading"
	"github.com/lockstep-k8s/lockstep/internal/view"
)

// The bounds of a place.
const (
	// maxNodes is how many nodes are shown, of maxDomains domains.
	maxNodes, maxDomains = 200, 50
	// maxDots is how many tasks a node shows one by one.
	maxDots = 32
)

// place is where a gang is.
type place struct {
	// Key is the label that groups nodes; empty if nodes have none.
	Key     string
	Domains []domain
	// Nodes and Tasks are the numbers of all nodes and tasks. Hidden is how many of the nodes are not shown.
	Nodes, Tasks, Hidden int
	// Roles are the names of roles, in the order of their colours.
	Roles []string
}

// domain is a value of the key, and the nodes with this value.
type domain struct {
	Name  string
	Tasks int
	Nodes []placeNode
}

type placeNode struct {
	Name string
	// Dots has the number of the role for each task that is shown as a dot. More is how many tasks have no dot.
	Dots []int
	More int
	Says string
}

// nodeLabels caches the labels that say where a node is. It reads them when a node is asked for that it does not know.
type nodeLabels struct {
	reader *reading.Reader
	// keys are the keys of the labels. of holds the labels by node, of all nodes, because any node may be asked for
	// next.
	keys []string
	of   map[string]map[string]string
	// unread is why the last read failed.
	unread error
}

// know reads the labels of all nodes, unless it has the labels of these nodes with these keys already.
func (n *nodeLabels) know(ctx context.Context, names map[string]bool, keys ...string) error {
	known := func(name string) bool { _, known := n.of[name]; return known }
	if slices.Equal(n.keys, keys) && !slices.ContainsFunc(slices.Collect(maps.Keys(names)), func(name string) bool { return !known(name) }) {
		return n.unread
	}
	n.keys, n.of = keys, make(map[string]map[string]string, len(names))
	for name := range names {
		n.of[name] = nil
	}
	n.unread = n.reader.Nodes(ctx, func(node *corev1.Node) {
		labels := make(map[string]string, len(keys))
		for _, key := range keys {
			if value, has := node.Labels[key]; has {
				labels[key] = value
			}
		}
		n.of[node.Name] = labels
	})
	return n.unread
}

// placeOf returns where the Pods of a Framework are that have not ended; nil if no task has a node. If it can't read
// the nodes' labels, it returns an error, and a place in which all nodes are in one domain.
func placeOf(ctx context.Context, o view.Objects, nodes *nodeLabels) (*place, error) {
	roles := map[string]int{}
	p := &place{}
	for i, role := range o.Framework.Spec.TaskRoles {
		roles[role.Name] = i
		p.Roles = append(p.Roles, role.Name)
	}
	on, names := map[string][]int{}, map[string]bool{}
	for i := range o.Pods {
		pod := &o.Pods[i]
		if pod.Spec.NodeName == "" || jobpods.HasEnded(pod) || !view.IsPodOf(o.Framework, pod) {
			continue
		}
		role, known := roles[pod.Annotations[frameworkv1.KeyTaskRoleName]]
		if !known {
			continue
		}
		on[pod.Spec.NodeName] = append(on[pod.Spec.NodeName], role)
		names[pod.Spec.NodeName] = true
		p.Tasks++
	}
	if p.Tasks == 0 {
		return nil, nil
	}
	p.Nodes = len(on)
	asked := askedTopology(o)
	err := nodes.know(ctx, names, corev1.LabelTopologyZone, asked)
	p.Key = cmp.Or(asked, zoneOf(nodes.of, names))
	domains := map[string][]placeNode{}
	for name, dots := range on {
		slices.Sort(dots)
		value := nodes.of[name][p.Key]
		domains[value] = append(domains[value], nodeAt(name, dots, p.Roles))
	}
	shown := 0
	for _, value := range slices.Sorted(maps.Keys(domains)) {
		d := domain{Name: value, Nodes: domains[value]}
		slices.SortFunc(d.Nodes, func(a, b placeNode) int { return cmp.Compare(a.Name, b.Name) })
		for _, node := range d.Nodes {
			d.Tasks += len(node.Dots) + node.More
		}
		room := maxNodes - shown
		if len(p.Domains) == maxDomains {
			room = 0
		}
		if len(d.Nodes) > room {
			p.Hidden += len(d.Nodes) - room
			d.Nodes = d.Nodes[:room]
		}
		if shown += len(d.Nodes); len(d.Nodes) > 0 {
			p.Domains = append(p.Domains, d)
		}
	}
	return p, err
}

// nodeAt returns a node with tasks of roles.
func nodeAt(name string, dots []int, roles []string) placeNode {
	node := placeNode{Name: name, Dots: dots, Says: name + ":"}
	counts := make([]int, len(roles))
	for _, role := range dots {
		counts[role]++
	}
	for role, count := range counts {
		if count > 0 {
			node.Says += fmt.Sprintf(" %d %s", count, roles[role])
		}
	}
	if len(dots) > maxDots {
		node.Dots, node.More = dots[:maxDots], len(dots)-maxDots
	}
	return node
}

// askedTopology returns the first topology key of the PodGroup: empty if there is none.
func askedTopology(o view.Objects) string {
	if o.PodGroup != nil && len(o.PodGroup.Spec.Topology) > 0 {
		return o.PodGroup.Spec.Topology[0].Key
	}
	return ""
}

// zoneOf returns the label of zones, if a node has one.
func zoneOf(labels map[string]map[string]string, names map[string]bool) string {
	for name := range names {
		if labels[name][corev1.LabelTopologyZone] != "" {
			return corev1.LabelTopologyZone
		}
	}
	return ""
}
