// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package place

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
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

// ahead is the room that a gang has to leave free for the members of gangs ahead.
//
// Most members affect others only by the resources that they take. These members are counted (absent.go): the planner has
// so much less on their nodes, and a node is checked again before a member of the gang is put there. Of a hundred
// thousand members, each put into the snapshot would cost microseconds, and the plugins would look again at each of their
// nodes. Other members are assumed in the snapshot, where plugins see them: those with host ports, for instance, and all
// if the gang's placement depends on which Pods are on a node. All are assumed, too, if the gang may have a reservation of
// its own, because package room reads from the snapshot whether that has its place.
type ahead struct {
	reserved []*room.Reservation
	snapshot kube.Snapshot
	// counted are the members that only take resources, and the nominated Pods that the gang does not outrank.
	counted absent
	// pods are the assumed members, in the order in which they were assumed. assumed are their UIDs.
	pods    []*corev1.Pod
	assumed sets.Set[types.UID]
}

// respect has a gang leave the room of cluster.Ahead free while the gang is planned. On an error, some members may be in
// the snapshot already.
func respect(cluster *Cluster, gang *Gang) (*ahead, error) {
	a := &ahead{reserved: cluster.Ahead, snapshot: cluster.Snapshot, counted: make(absent), assumed: sets.New[types.UID]()}
	for node, pods := range cluster.Nominated {
		a.counted[node] = slices.Clone(pods)
	}
	assumesAll := len(a.reserved) > 0 && (gang.First || cluster.ownToCome() || tellsApart(gang))
	for _, of := range a.reserved {
		for _, m := range of.Members {
			if node := m.Pod.Spec.NodeName; !assumesAll && isPlain(m) {
				a.counted[node] = append(a.counted[node], m)
			} else if err := a.assume(m); err != nil {
				return a, err
			}
		}
	}
	return a, nil
}

// assume puts a member of a gang ahead into the snapshot.
func (a *ahead) assume(member *framework.PodInfo) error {
	node, err := a.snapshot.Get(member.Pod.Spec.NodeName)
	if err != nil {
		return nil // the node is gone
	}
	if member, err = withoutPortsInUse(member, node); err != nil {
		return err
	}
	if err := a.snapshot.AssumePod(member); err != nil {
		return fmt.Errorf("holding room for %s: %w", klog.KObj(member.Pod), err)
	}
	a.pods = append(a.pods, member.Pod)
	a.assumed.Insert(member.Pod.UID)
	return nil
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

// tellsApart reports whether a gang's placement depends on which Pods are on a node, and not only on what the Pods take.
func tellsApart(g *Gang) bool {
	if g.announces() {
		return true // there are virtual members among those that wait
	}
	seen := make(map[string]bool)
	for i, pod := range g.Waiting {
		if key := g.ClassKeys[i]; !seen[key] {
			seen[key] = true
			if regardOf(pod) != (regard{}) {
				return true
			}
		}
	}
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
