// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package place

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/kube"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/podclass"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/queue"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/room"
)

// ahead is the room that a gang has to leave free for gangs ahead. The members of these gangs are assumed in the
// snapshot, so that plugins and the planner see the room as used.
type ahead struct {
	reserved []*room.Reservation
	snapshot kube.Snapshot
	// pods are the assumed members, in the order in which they were assumed.
	pods []*corev1.Pod
}

// respect puts the members of reservations into the snapshot while a gang is planned. On an error, some members may be
// there already.
//
// There may be a hundred thousand members, and each Pod put into the snapshot costs microseconds. So respect merges the
// plain members on a node into one Pod with the sum of their requests, unless that could change where the gang is
// placed.
func respect(reserved []*room.Reservation, snapshot kube.Snapshot, gang *Gang) (*ahead, error) {
	a := &ahead{reserved: reserved, snapshot: snapshot}
	on := make(map[string][]*framework.PodInfo)
	var nodes []string
	for _, of := range reserved {
		for _, m := range of.Members {
			node := m.Pod.Spec.NodeName
			if _, known := on[node]; !known {
				nodes = append(nodes, node)
			}
			on[node] = append(on[node], m)
		}
	}
	merges := merger{gang: gang}
	for _, name := range nodes {
		node, err := snapshot.Get(name)
		if err != nil {
			continue // the node is gone
		}
		members, err := merges.merge(on[name], node)
		if err != nil {
			return a, err
		}
		for _, m := range members {
			if m, err = withoutPortsInUse(m, node); err != nil {
				return a, err
			}
			if err := snapshot.AssumePod(m); err != nil {
				return a, fmt.Errorf("holding room for %s: %w", klog.KObj(m.Pod), err)
			}
			a.pods = append(a.pods, m.Pod)
		}
	}
	return a, nil
}

// withoutPortsInUse returns a member without the host ports that Pods on the node have. A node counts a port of an address
// once, so without this, the port would count as free after leave has removed the member.
func withoutPortsInUse(member *framework.PodInfo, node fwk.NodeInfo) (*framework.PodInfo, error) {
	used := node.GetUsedPorts()
	if len(used) == 0 || len(podclass.HostPorts(member.Pod)) == 0 {
		return member, nil
	}
	isUsed := func(port corev1.ContainerPort) bool {
		own := make(fwk.HostPortInfo) // as the node counts the port
		own.Add(port.HostIP, string(port.Protocol), port.HostPort)
		for address, ports := range own {
			for one := range ports {
				if _, has := used[address][one]; has {
					return true
				}
			}
		}
		return false
	}
	pod := member.Pod.DeepCopy()
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for c := range containers {
			containers[c].Ports = slices.DeleteFunc(containers[c].Ports, isUsed)
		}
	}
	info, err := framework.NewPodInfo(pod)
	if err != nil {
		return nil, fmt.Errorf("reading affinity of %s: %w", klog.KObj(pod), err)
	}
	return info, nil
}

// merger merges Pods of other gangs on a node.
type merger struct {
	gang *Gang
	// asked reports whether never and leastCPU have been computed. never reports that nothing may be merged, because
	// the gang's placement depends on which Pods are on a node. leastCPU is the smallest CPU request of a member of the
	// gang.
	asked, never bool
	leastCPU     int64
}

// merge returns the members on a node, with the plain members merged into one. It merges nothing if the gang's
// placement depends on which Pods are on a node, or if the gang might reach the node's limit of Pods: a merged Pod
// would count only once.
func (m *merger) merge(members []*framework.PodInfo, node fwk.NodeInfo) ([]*framework.PodInfo, error) {
	if len(members) < 2 || m.tellsApart() {
		return members, nil
	}
	var rest []*framework.PodInfo
	var cpu, memory, storage int64
	scalars := make(map[corev1.ResourceName]int64)
	for _, info := range members {
		if isPlain(info) {
			takes := info.CalculateResource().Resource
			cpu, memory, storage = cpu+takes.GetMilliCPU(), memory+takes.GetMemory(), storage+takes.GetEphemeralStorage()
			for name, q := range takes.GetScalarResources() {
				scalars[name] += q
			}
		} else {
			rest = append(rest, info)
		}
	}
	merged := len(members) - len(rest)
	has, used := node.GetAllocatable(), node.GetRequested()
	more := int64(len(m.gang.Waiting))
	if m.leastCPU > 0 {
		more = min(more, max(0, has.GetMilliCPU()-used.GetMilliCPU())/m.leastCPU)
	}
	if merged < 2 || int64(len(node.GetPods())+len(members))+more > int64(has.GetAllowedPodNumber()) {
		return members, nil
	}
	pod := &corev1.Pod{Spec: corev1.PodSpec{NodeName: node.Node().Name}}
	pod.Name, pod.UID = "room-ahead-"+node.Node().Name, types.UID("room-ahead-"+node.Node().Name)
	requests := corev1.ResourceList{
		corev1.ResourceCPU:              *resource.NewMilliQuantity(cpu, resource.DecimalSI),
		corev1.ResourceMemory:           *resource.NewQuantity(memory, resource.BinarySI),
		corev1.ResourceEphemeralStorage: *resource.NewQuantity(storage, resource.BinarySI),
	}
	for name, q := range scalars {
		requests[name] = *resource.NewQuantity(q, resource.DecimalSI)
	}
	pod.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: requests}}}
	info, err := framework.NewPodInfo(pod)
	if err != nil {
		return nil, fmt.Errorf("merging Pods on %s: %w", node.Node().Name, err)
	}
	return append(rest, info), nil
}

// tellsApart reports whether the gang's placement depends on which Pods are on a node, and not only on what the Pods
// take.
func (m *merger) tellsApart() bool {
	if m.asked {
		return m.never
	}
	m.asked, m.never = true, true
	pods := m.gang.Waiting
	if m.gang.announces() {
		return true // there are virtual members among them
	}
	seen := make(map[string]bool)
	for i, pod := range pods {
		if seen[m.gang.ClassKeys[i]] {
			continue
		}
		seen[m.gang.ClassKeys[i]] = true
		info, err := framework.NewPodInfo(pod)
		if err != nil || regardOf(pod) != (regard{}) {
			return true
		}
		if cpu := info.CalculateResource().Resource.GetMilliCPU(); len(seen) == 1 || cpu < m.leastCPU {
			m.leastCPU = cpu
		}
	}
	m.never = false
	return false
}

// isPlain reports whether a Pod affects others on its node only by the resources that the Pod takes.
func isPlain(info *framework.PodInfo) bool {
	pod := info.Pod
	if len(info.RequiredAntiAffinityTerms) > 0 || len(pod.Spec.ResourceClaims) > 0 || len(podclass.HostPorts(pod)) > 0 {
		return false
	}
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		if v.ConfigMap == nil && v.Secret == nil && v.EmptyDir == nil && v.Projected == nil && v.DownwardAPI == nil && v.HostPath == nil {
			return false
		}
	}
	return true
}

// nodes returns the names of the nodes with assumed members.
func (a *ahead) nodes() sets.Set[string] {
	nodes := sets.New[string]()
	for _, pod := range a.pods {
		nodes.Insert(pod.Spec.NodeName)
	}
	return nodes
}

// leave removes from the snapshot, in reverse order, what respect has put there.
func (a *ahead) leave(ctx context.Context) {
	logger := klog.FromContext(ctx)
	for _, pod := range slices.Backward(a.pods) {
		if err := a.snapshot.ForgetPod(logger, pod); err != nil {
			// The next update of the snapshot drops the Pod.
			logger.Error(err, "Forgetting held room in the snapshot failed", "pod", klog.KObj(pod))
		}
	}
}

// message names the gangs for which room is reserved, but only those of the given namespace. It returns "" if no room
// is reserved.
func (a *ahead) message(namespace string) string {
	if len(a.reserved) == 0 {
		return ""
	}
	first := a.reserved[0]
	whom := fmt.Sprintf("a gang of priority %d in another namespace", first.Gang.Rank.Priority)
	if first.Gang.Rank.Key.Namespace == namespace {
		whom = "PodGroup " + first.Gang.Rank.Key.String()
	}
	text := "; " + queue.ReservedFor + whom + ", which is ahead"
	// A reservation in time is renewed until the gang is placed, so its End says nothing.
	if first.Reason != room.InTime {
		text += ", until " + first.End.UTC().Format(time.RFC3339) + " at the latest"
	}
	if n := len(a.reserved) - 1; n > 0 {
		text += fmt.Sprintf(", and %d more", n)
	}
	return text
}
