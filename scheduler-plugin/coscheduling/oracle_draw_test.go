// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"fmt"
	"math/rand/v2"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
)

// draw is a random cluster, and a gang that is to be placed there.
type draw struct {
	nodes    []*corev1.Node
	existing []*corev1.Pod
	members  []*corev1.Pod
}

// String is all objects of a draw, as kubectl would apply them.
func (d *draw) String() string {
	var b strings.Builder
	write := func(object any) {
		text, err := yaml.Marshal(object)
		if err != nil {
			panic(err)
		}
		fmt.Fprintf(&b, "---\n%s", text)
	}
	for _, node := range d.nodes {
		write(node)
	}
	for _, pod := range append(d.existing, d.members...) {
		write(pod)
	}
	return b.String()
}

// drawer draws what is in a draw.
type drawer struct {
	*rand.Rand
	kinds []string // of members
}

// newDraw is the draw of a seed. Three of four are small: most faults need few nodes.
func newDraw(seed int64) *draw {
	d := &drawer{Rand: rand.New(rand.NewPCG(uint64(seed), 21))}
	nodes, members := 1+d.IntN(8), 1+d.IntN(12)
	switch d.IntN(16) {
	case 0:
		nodes, members = 1+d.IntN(200), 1+d.IntN(64)
	case 1, 2, 3:
		nodes, members = 1+d.IntN(40), 1+d.IntN(32)
	}
	all := &draw{nodes: d.drawNodes(nodes)}
	all.existing = d.drawExisting(all.nodes)
	for i := range 1 + d.IntN(min(4, members)) {
		d.kinds = append(d.kinds, fmt.Sprintf("kind%d", i))
	}
	var templates []*corev1.Pod
	for _, kind := range d.kinds {
		templates = append(templates, d.drawTemplate(kind))
	}
	for i := range members {
		pod := templates[d.IntN(len(templates))].DeepCopy()
		if i < len(templates) {
			pod = templates[i].DeepCopy()
		}
		pod.Name = fmt.Sprintf("gang-%d", i)
		pod.UID = types.UID("uid-" + pod.Name)
		pod.Labels["index"] = fmt.Sprint(i)
		all.members = append(all.members, pod)
	}
	return all
}

func (d *drawer) oneIn(n int) bool { return d.IntN(n) == 0 }

// oneOf is any of some values.
func oneOf[T any](d *drawer, of ...T) T { return of[d.IntN(len(of))] }

// drawNodes draws nodes of a few shapes, in racks and zones. Some have taints, and some lack labels.
func (d *drawer) drawNodes(n int) []*corev1.Node {
	shapes := 1 + d.IntN(3)
	perRack, perZone, taints := 1+d.IntN(5), 1+d.IntN(3), d.IntN(4)
	var nodes []*corev1.Node
	var cpus, gpus [3]int
	for i := range shapes {
		cpus[i], gpus[i] = oneOf(d, 4, 8, 12, 16, 32), oneOf(d, 0, 0, 4, 8)
	}
	for i := range n {
		shape, rack := d.IntN(shapes), i/perRack
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("node-%d", i), Labels: map[string]string{
			corev1.LabelHostname: fmt.Sprintf("node-%d", i), "zone": fmt.Sprint(rack / perZone), "pool": oneOf(d, "a", "a", "b")}}}
		if !d.oneIn(12) {
			node.Labels["rack"] = fmt.Sprint(rack)
		}
		has := corev1.ResourceList{corev1.ResourceCPU: *resource.NewQuantity(int64(cpus[shape]), resource.DecimalSI),
			corev1.ResourceMemory: *resource.NewQuantity(int64(cpus[shape])<<32, resource.BinarySI),
			corev1.ResourcePods:   *resource.NewQuantity(oneOf(d, int64(3), 20, 110), resource.DecimalSI)}
		if gpus[shape] > 0 {
			has[gpu] = *resource.NewQuantity(int64(gpus[shape]), resource.DecimalSI)
		}
		node.Status.Capacity, node.Status.Allocatable = has, has
		if taints > 0 && d.oneIn(4) {
			node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: oneOf(d, "dedicated", "old"), Value: "true",
				Effect: oneOf(d, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoSchedule)})
		}
		nodes = append(nodes, node)
	}
	return nodes
}

// drawExisting draws Pods that run already.
func (d *drawer) drawExisting(nodes []*corev1.Node) []*corev1.Pod {
	var pods []*corev1.Pod
	busy := d.IntN(5)
	for n, node := range nodes {
		left := node.Status.Allocatable.Cpu().Value()
		for i := range d.IntN(busy + 1) {
			name := fmt.Sprintf("existing-%d-%d", n, i)
			app := oneOf(d, "web", "db", "batch")
			cpu := min(left, 1+int64(d.IntN(6)))
			pod := drawnPod(name, map[string]string{"app": app}, fmt.Sprint(cpu))
			left -= cpu
			pod.Spec.NodeName = node.Name
			switch d.IntN(12) {
			case 0:
				pod.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
					RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term(d.key(), oneOf(d, "app=kind0", "app=kind1", "index=0", "job=gang,index=1"))}}}
			case 1:
				pod.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
					PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{Weight: 50, PodAffinityTerm: term(d.key(), "job=gang")}}}}
			case 2:
				pod.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: 8000 + int32(d.IntN(2)), Protocol: corev1.ProtocolTCP}}
			}
			pods = append(pods, pod)
		}
	}
	return pods
}

// drawTemplate draws what members of a kind have in common.
func (d *drawer) drawTemplate(kind string) *corev1.Pod {
	pod := drawnPod("", map[string]string{"app": kind, "job": "gang", schedulingv1alpha1.LabelPodGroup: gangName.Name}, oneOf(d, "500m", "1", "2", "3", "4", "5"))
	spec := &pod.Spec
	main := &spec.Containers[0]
	if d.oneIn(3) {
		main.Resources.Requests[corev1.ResourceMemory] = resource.MustParse(oneOf(d, "1Gi", "8Gi", "30Gi"))
	}
	if d.oneIn(5) {
		q := resource.MustParse(oneOf(d, "1", "2", "4"))
		main.Resources.Requests[gpu], main.Resources.Limits = q, corev1.ResourceList{gpu: q}
	}
	d.drawContainers(spec)
	if d.oneIn(5) {
		spec.NodeSelector = map[string]string{"pool": oneOf(d, "a", "b")}
	}
	if d.oneIn(2) {
		spec.Tolerations = append(spec.Tolerations, corev1.Toleration{Key: oneOf(d, "dedicated", "old"), Operator: corev1.TolerationOpExists})
	}
	if d.oneIn(2) {
		spec.Affinity = d.drawAffinity(kind)
	}
	for d.oneIn(4) && len(spec.TopologySpreadConstraints) < 2 {
		key := d.key()
		if len(spec.TopologySpreadConstraints) > 0 && spec.TopologySpreadConstraints[0].TopologyKey == key {
			break
		}
		spec.TopologySpreadConstraints = append(spec.TopologySpreadConstraints, corev1.TopologySpreadConstraint{
			MaxSkew: 1 + int32(d.IntN(3)), TopologyKey: key, WhenUnsatisfiable: oneOf(d, corev1.DoNotSchedule, corev1.ScheduleAnyway, corev1.ScheduleAnyway),
			LabelSelector: &metav1.LabelSelector{MatchLabels: parsed(oneOf(d, "app="+kind, "job=gang"))}})
	}
	return pod
}

// drawContainers draws init containers, sidecars, ports and the overhead of a runtime.
func (d *drawer) drawContainers(spec *corev1.PodSpec) {
	more := func(name string) corev1.Container {
		return corev1.Container{Name: name, Image: "image", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(oneOf(d, "250m", "1", "4", "6"))}}}
	}
	if d.oneIn(6) {
		spec.InitContainers = append(spec.InitContainers, more("init"))
	}
	if d.oneIn(6) {
		sidecar := more("sidecar")
		sidecar.RestartPolicy = ptr.To(corev1.ContainerRestartPolicyAlways)
		spec.InitContainers = append(spec.InitContainers, sidecar)
	}
	if d.oneIn(6) {
		into := append(spec.InitContainers, spec.Containers...)
		port := corev1.ContainerPort{ContainerPort: 80, HostPort: 8000 + int32(d.IntN(2)), Protocol: corev1.ProtocolTCP, HostIP: oneOf(d, "", "", "10.0.0.1")}
		if i := d.IntN(len(into)); i < len(spec.InitContainers) {
			spec.InitContainers[i].Ports = append(spec.InitContainers[i].Ports, port)
		} else {
			spec.Containers[0].Ports = append(spec.Containers[0].Ports, port)
		}
	}
	if d.oneIn(8) {
		spec.Overhead = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("500m")}
	}
}

// drawAffinity draws affinities to nodes and to other members.
func (d *drawer) drawAffinity(kind string) *corev1.Affinity {
	a := &corev1.Affinity{}
	if d.oneIn(3) {
		a.NodeAffinity = &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{
			Weight: 1 + int32(d.IntN(100)), Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{
				Key: oneOf(d, "pool", "rack", "zone"), Operator: corev1.NodeSelectorOpIn, Values: []string{oneOf(d, "a", "b", "0"), "1"}}}}}}}
	}
	if d.oneIn(6) {
		if a.NodeAffinity == nil {
			a.NodeAffinity = &corev1.NodeAffinity{}
		}
		a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "zone", Operator: corev1.NodeSelectorOpNotIn, Values: []string{"1"}}}}}}
	}
	near, far := &corev1.PodAffinity{}, &corev1.PodAntiAffinity{}
	if d.oneIn(4) {
		near.RequiredDuringSchedulingIgnoredDuringExecution = []corev1.PodAffinityTerm{term(d.key(), d.others())}
	}
	if d.oneIn(4) {
		near.PreferredDuringSchedulingIgnoredDuringExecution = []corev1.WeightedPodAffinityTerm{{Weight: 1 + int32(d.IntN(100)), PodAffinityTerm: term(d.key(), d.others())}}
	}
	if d.oneIn(4) {
		far.RequiredDuringSchedulingIgnoredDuringExecution = []corev1.PodAffinityTerm{term(d.key(), oneOf(d, "app="+kind, d.others(), "index=0", "index=2", "app=web"))}
	}
	if d.oneIn(3) {
		far.PreferredDuringSchedulingIgnoredDuringExecution = []corev1.WeightedPodAffinityTerm{{Weight: 1 + int32(d.IntN(100)), PodAffinityTerm: term(d.key(), oneOf(d, "app="+kind, "job=gang", d.others()))}}
	}
	a.PodAffinity, a.PodAntiAffinity = near, far
	return a
}

// key is a topology.
func (d *drawer) key() string {
	return oneOf(d, corev1.LabelHostname, corev1.LabelHostname, "rack", "zone")
}

// others are the labels of some members, or of Pods that run already.
func (d *drawer) others() string {
	return oneOf(d, "app="+d.kinds[d.IntN(len(d.kinds))], "app="+d.kinds[d.IntN(len(d.kinds))], "job=gang", "index=0", "app=db")
}

// drawnPod is a Pod of the plugin's scheduler.
func drawnPod(name string, labels map[string]string, cpu string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: testNamespace, Name: name, UID: types.UID("uid-" + name), Labels: labels},
		Spec: corev1.PodSpec{SchedulerName: testScheduler, RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "main", Image: "image",
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}}}}}}
}

// term is about Pods with some labels that are together in a topology.
func term(key, of string) corev1.PodAffinityTerm {
	return corev1.PodAffinityTerm{TopologyKey: key, LabelSelector: &metav1.LabelSelector{MatchLabels: parsed(of)}}
}

// parsed are labels that are written as key=value,key=value.
func parsed(text string) map[string]string {
	all := make(map[string]string)
	for _, label := range strings.Split(text, ",") {
		key, value, _ := strings.Cut(label, "=")
		all[key] = value
	}
	return all
}
