// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"net/url"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/controller/jobpods"
	"github.com/lockstep-k8s/lockstep/internal/reading"
	"github.com/lockstep-k8s/lockstep/internal/text"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/whatif"
)

const (
	// nodesOfPage is how many nodes a page has.
	nodesOfPage = 120
	// maxHolders is how many holders a node shows one by one.
	maxHolders = 8
	// hues is how many colours holders have, and roles.
	hues = 20
)

// nodeMap is what the page of nodes shows.
type nodeMap struct {
	// Text is the filter by name, zone or holder.
	Text string
	// Namespace is what the filter carries on.
	Namespace string
	Nodes     []mappedNode
	// Found is how many nodes match the filter, Total how many nodes there are, and Pods how many Pods run on all
	// nodes.
	Found, Total, Pods int
	pages
}

// mappedNode is a node, and which jobs hold what part of it.
type mappedNode struct {
	Name, Zone string
	// Ready and Cordoned are the state of the node.
	Ready, Cordoned bool
	// Resource is the resource that the page shows: an accelerator if there is one, else the resource with the largest
	// used part.
	Resource string
	// Used and Has are quantities of the resource.
	Used, Has string
	Holders   []holder
	// Says is the whole in words.
	Says string
}

// holder is a job, and the part of a node that the job holds.
type holder struct {
	Name, Link string
	// X and Width are where a part is drawn, and Hue is the colour.
	X, Width percent
	Hue      int
	Pods     int
	Share    string
}

// nodes returns the page of nodes.
func (s *Server) nodes(_ context.Context, r request) (*opened, error) {
	query := r.URL.Query()
	from, err := number(query, "from", 0, 1<<30)
	if err != nil {
		return nil, err
	}
	namespace, err := namespaceOf(r)
	if err != nil {
		return nil, err
	}
	return &opened{make: func(ctx context.Context) (*page, error) {
		snapshot, err := r.visitor.Reader.Snapshot(ctx, own(r, namespace))
		if err == nil {
			err = reading.Refused(snapshot)
		}
		if err != nil {
			return nil, err
		}
		content := mapOf(snapshot, r.URL, query.Get("text"), from)
		content.Namespace = namespace
		return &page{Title: "Nodes", Tab: "nodes", Template: "nodes", Content: content, Unread: snapshot.Lacks, Namespace: namespace, Own: ownOfAll(r, namespace)}, nil
	}}, nil
}

// mapOf returns a page of the nodes that match a text, beginning with the node at a position.
func mapOf(s *whatif.Snapshot, at *url.URL, text string, from int) *nodeMap {
	m := &nodeMap{Text: text, Total: len(s.Nodes)}
	on := map[string][]*corev1.Pod{}
	for _, pod := range s.Pods {
		if pod.Spec.NodeName != "" && !jobpods.HasEnded(pod) {
			on[pod.Spec.NodeName] = append(on[pod.Spec.NodeName], pod)
			m.Pods++
		}
	}
	nodes := slices.Clone(s.Nodes)
	zone := func(node *corev1.Node) string { return node.Labels[corev1.LabelTopologyZone] }
	slices.SortFunc(nodes, func(a, b *corev1.Node) int { return cmp.Or(cmp.Compare(zone(a), zone(b)), cmp.Compare(a.Name, b.Name)) })
	wanted := strings.ToLower(text)
	nodes = slices.DeleteFunc(nodes, func(node *corev1.Node) bool { return !hasText(node, on[node.Name], wanted) })
	m.Found = len(nodes)
	from = onLastPage(from, nodesOfPage, m.Found)
	for _, node := range nodes[from:min(from+nodesOfPage, m.Found)] {
		m.Nodes = append(m.Nodes, mapped(node, on[node.Name]))
	}
	m.colour()
	m.pages = pagesOf(at, from, nodesOfPage, m.Found)
	return m
}

// hasText reports whether a text occurs in the node's name or zone, or in the name of a job on the node.
func hasText(node *corev1.Node, pods []*corev1.Pod, wanted string) bool {
	if wanted == "" || strings.Contains(strings.ToLower(node.Name), wanted) || strings.Contains(strings.ToLower(node.Labels[corev1.LabelTopologyZone]), wanted) {
		return true
	}
	return slices.ContainsFunc(pods, func(pod *corev1.Pod) bool {
		name, _ := holderOf(pod)
		return strings.Contains(strings.ToLower(name), wanted)
	})
}

// mapped returns a node with Pods.
func mapped(node *corev1.Node, pods []*corev1.Pod) mappedNode {
	m := mappedNode{Name: node.Name, Zone: node.Labels[corev1.LabelTopologyZone], Cordoned: node.Spec.Unschedulable}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			m.Ready = condition.Status == corev1.ConditionTrue
		}
	}
	requests := make([]corev1.ResourceList, len(pods))
	used := corev1.ResourceList{}
	for i, pod := range pods {
		requests[i] = resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{})
		for name, quantity := range requests[i] {
			sum := used[name]
			sum.Add(quantity)
			used[name] = sum
		}
	}
	name := told(node, used)
	has, all := node.Status.Allocatable[name], used[name]
	m.Resource, m.Used, m.Has = string(name), all.String(), has.String()
	m.Holders = holders(pods, func(i int) resource.Quantity { return requests[i][name] }, has)
	m.Says = fmt.Sprintf("%s: %s of %s %s", m.Name, m.Used, m.Has, m.Resource)
	for _, h := range m.Holders {
		m.Says += fmt.Sprintf(", %s %s", h.Name, h.Share)
	}
	return m
}

// told returns the resource that the page shows for a node: an accelerator, or else the resource with the largest used
// part.
func told(node *corev1.Node, used corev1.ResourceList) corev1.ResourceName {
	best, most := corev1.ResourceCPU, -1.0
	for name, has := range node.Status.Allocatable {
		if has.IsZero() || name == corev1.ResourcePods || name == corev1.ResourceEphemeralStorage || strings.HasPrefix(string(name), "hugepages-") {
			continue
		}
		taken := used[name]
		share := taken.AsApproximateFloat64() / has.AsApproximateFloat64()
		// Names of extended resources have a domain.
		if strings.Contains(string(name), "/") {
			share += 2
		}
		if share > most || share == most && name < best {
			best, most = name, share
		}
	}
	return best
}

// holders returns the jobs that use a resource of a node, the largest use first. If there are more than maxHolders, the
// last entry sums up the rest.
func holders(pods []*corev1.Pod, request func(i int) resource.Quantity, has resource.Quantity) []holder {
	type held struct {
		holder
		quantity resource.Quantity
	}
	by := map[string]*held{}
	var all []*held
	for i, pod := range pods {
		name, link := holderOf(pod)
		h := by[name]
		if h == nil {
			h = &held{holder: holder{Name: name, Link: link}}
			by[name] = h
			all = append(all, h)
		}
		h.Pods++
		h.quantity.Add(request(i))
	}
	slices.SortFunc(all, func(a, b *held) int { return cmp.Or(b.quantity.Cmp(a.quantity), cmp.Compare(a.Name, b.Name)) })
	if len(all) > maxHolders {
		rest := &held{holder: holder{Name: fmt.Sprintf("%d others", len(all)-maxHolders+1), Hue: -1}}
		for _, h := range all[maxHolders-1:] {
			rest.Pods += h.Pods
			rest.quantity.Add(h.quantity)
		}
		all = append(all[:maxHolders-1], rest)
	}
	var shown []holder
	var x percent
	for _, h := range all {
		if !has.IsZero() {
			h.Width = min(100-x, percent(100*h.quantity.AsApproximateFloat64()/has.AsApproximateFloat64()))
		}
		h.X, h.Share = x, h.quantity.String()
		if h.quantity.IsZero() {
			h.Share = fmt.Sprintf("%d %s", h.Pods, text.Form(h.Pods, "Pod", "Pods"))
		}
		x += h.Width
		shown = append(shown, h.holder)
	}
	return shown
}

// holderOf returns the job of a Pod as NAMESPACE/NAME, with a link if the job has a page. A Pod without a job counts
// for its namespace.
func holderOf(pod *corev1.Pod) (name, link string) {
	if framework := pod.Labels[frameworkv1.KeyFrameworkName]; framework != "" {
		return pod.Namespace + "/" + framework, path("frameworks", pod.Namespace, framework)
	}
	for _, label := range []string{schedulingv1alpha1.LabelPodGroup, "volcano.sh/job-name", "training.kubeflow.org/job-name", "job-name"} {
		if job := pod.Labels[label]; job != "" {
			return pod.Namespace + "/" + job, ""
		}
	}
	return "Pods of " + pod.Namespace, ""
}

// colour gives each job a colour. A job has the same colour on all nodes, and on all pages unless another job of the
// page takes that colour.
func (m *nodeMap) colour() {
	of, taken := make(map[string]int), make(map[int]bool)
	for i := range m.Nodes {
		for j := range m.Nodes[i].Holders {
			h := &m.Nodes[i].Holders[j]
			if h.Hue < 0 {
				continue
			}
			hue, known := of[h.Name]
			if !known {
				hue = hueOf(h.Name)
				for taken[hue] && len(taken) < hues {
					hue = (hue + 1) % hues
				}
				of[h.Name], taken[hue] = hue, true
			}
			h.Hue = hue
		}
	}
}

// hueOf returns the preferred colour of a name, as a number. If another name already has that colour, the caller takes
// the next.
func hueOf(name string) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name))
	return int(h.Sum32() % hues)
}
