// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	clienttesting "k8s.io/client-go/testing"
	schedulertesting "k8s.io/kubernetes/pkg/scheduler/testing"
)

// nominatedFor makes a Pod one that was told that there is no room, and nominated for a node.
func nominatedFor(node string) podOption {
	return func(w *schedulertesting.PodWrapper) {
		w.NominatedNodeName(node)
		w.Condition(corev1.PodScheduled, corev1.ConditionFalse, corev1.PodReasonUnschedulable)
	}
}

// nominated is for which node each of a group's Pods that wait is nominated, empty for none.
func (w *world) nominated(group string) map[string]string {
	w.t.Helper()
	pods, err := w.kube.CoreV1().Pods(testNamespace).List(w.t.Context(), metav1.ListOptions{LabelSelector: "scheduling.lockstep.dev/pod-group=" + group})
	if err != nil {
		w.t.Fatal(err)
	}
	nodes := make(map[string]string)
	for i := range pods.Items {
		if pods.Items[i].Spec.NodeName == "" {
			nodes[pods.Items[i].Name] = pods.Items[i].Status.NominatedNodeName
		}
	}
	return nodes
}

// awaitNominated waits until a group's Pods that wait are nominated just so.
func (w *world) awaitNominated(group string, want map[string]string) {
	w.t.Helper()
	w.eventually(fmt.Sprintf("the members of %s are nominated for %v", group, want), func() bool {
		return cmp.Equal(want, w.nominated(group))
	})
}

// statusPatches are what was written to the status of a Pod, in order.
func (w *world) statusPatches(pod string) (patches []corev1.PodStatus) {
	w.t.Helper()
	for _, action := range w.kube.Actions() {
		patch, ok := action.(clienttesting.PatchAction)
		if !ok || patch.GetName() != pod || patch.GetSubresource() != "status" {
			continue
		}
		var to corev1.Pod
		if err := json.Unmarshal(patch.GetPatch(), &to); err != nil {
			w.t.Fatal(err)
		}
		patches = append(patches, to.Status)
	}
	return patches
}

// TestMembersAreNominatedWhileTheirRoomIsMade, in the same write that says that they are
// unschedulable: a cluster autoscaler adds no nodes for them.
func TestMembersAreNominatedWhileTheirRoomIsMade(t *testing.T) {
	tests := map[string]struct {
		running []apiruntime.Object
		ends    []string // who has to
	}{
		"by preemption": {
			running: all(makePod("a", onNode("node-0")), makePod("b", onNode("node-0"))),
			ends:    []string{"a", "b"},
		},
		"as Pods end anyway": {
			running: all(makePod("a", onNode("node-0"), endingSince(0)), makePod("b", onNode("node-0"), ofPriority(10), endingSince(0))),
			ends:    []string{"a", "b"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := newWorld(t, all(makeNodes("node", 1, 2), tc.running, makeGroup("high", 2), makeMembers("high", 3, ofPriority(10)))...)
				w.lingers = true
				w.start()
				w.eventually("all members are told that there is no room", func() bool { return w.marked("high") == 3 })
				want := map[string]string{"high-0": "node-0", "high-1": "node-0", "high-2": ""}
				if diff := cmp.Diff(want, w.nominated("high")); diff != "" {
					t.Errorf("nominations, where only the minimum has room to come (-want, +got):\n%s", diff)
				}
				for pod, node := range want {
					for _, to := range w.statusPatches(pod) {
						if to.NominatedNodeName != node {
							t.Errorf("what was written to %s is %+v, want that it is nominated for %q", pod, to, node)
						}
					}
				}
				w.finish(tc.ends...)
				w.eventually("the gang is placed", func() bool { return w.placed("high") == 2 })
			})
		})
	}
}

// TestAGangThatWaitsForLongIsNotNominated: nobody knows when the work of others ends.
func TestAGangThatWaitsForLongIsNotNominated(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, all(makeNodes("node", 1, 2), makePod("a", onNode("node-0")), makeGroup("gang", 2), makeMembers("gang", 2))...)
		w.args = `{"initialBackoff":"50ms","maxBackoff":"200ms"}`
		w.start()
		w.eventually("resources are reserved for the gang", func() bool { return w.engine().room.Of(gangNamed("gang")) != nil })
		w.eventually("all are told", func() bool { return w.marked("gang") == 2 })
		if diff := cmp.Diff(map[string]string{"gang-0": "", "gang-1": ""}, w.nominated("gang")); diff != "" {
			t.Errorf("nominations (-want, +got):\n%s", diff)
		}
	})
}

// TestANominationEndsWithTheRoom: somebody ahead has taken what victims have left, and an
// autoscaler is to add nodes.
func TestANominationEndsWithTheRoom(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, all(makeNodes("node", 1, 2), makePod("a", onNode("node-0")), makePod("b", onNode("node-0")),
			makeGroup("high", 2), makeMembers("high", 2, ofPriority(10)))...)
		w.lingers = true
		w.start()
		w.awaitNominated("high", map[string]string{"high-0": "node-0", "high-1": "node-0"})
		w.create(makePod("above", ofPriority(20)))
		w.finish("a")
		w.eventually("the Pod that is ahead is placed", func() bool { return w.placed("above") == 1 })
		w.finish("b")
		w.awaitNominated("high", map[string]string{"high-0": "", "high-1": ""})
		if n := w.marked("high"); n != 2 {
			t.Errorf("%d members say that they are unschedulable, want 2", n)
		}
	})
}

// TestANominationEndsWithTheGang, as nobody knows whether its other members come again.
func TestANominationEndsWithTheGang(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, all(makeNodes("node", 1, 2), makePod("a", onNode("node-0")), makePod("b", onNode("node-0")),
			makeGroup("high", 2), makeMembers("high", 2, ofPriority(10)))...)
		w.lingers = true
		w.start()
		w.awaitNominated("high", map[string]string{"high-0": "node-0", "high-1": "node-0"})
		w.lingers = false
		w.deletePod("high-1")
		w.awaitNominated("high", map[string]string{"high-0": ""})
	})
}

// TestASchedulerThatBeginsFindsNominations of one that is gone, and the room that was kept
// for them is not.
func TestASchedulerThatBeginsFindsNominations(t *testing.T) {
	gang := func(min int32, n int) []apiruntime.Object {
		return all(makeGroup("gang", min), makeMembers("gang", n, ofPriority(10), nominatedFor("node-0")))
	}
	tests := map[string]struct {
		objects []apiruntime.Object
		want    map[string]string // of members that wait
	}{
		"nobody ends": {
			objects: all(makeNodes("node", 1, 2), makePod("a", onNode("node-0"), ofPriority(10)), gang(2, 2)),
			want:    map[string]string{"gang-0": "", "gang-1": ""},
		},
		"a member is missing": {
			objects: all(makeNodes("node", 1, 2), gang(2, 1)),
			want:    map[string]string{"gang-0": ""},
		},
		"the group is": {
			objects: all(makeNodes("node", 1, 2), makeMembers("gang", 2, ofPriority(10), nominatedFor("node-0"))),
			want:    map[string]string{"gang-0": "", "gang-1": ""},
		},
		"there is room elsewhere": {
			objects: all(makeNodes("node", 1, 2), makeNodes("other", 1, 2), makePod("a", onNode("node-0"), ofPriority(10)), gang(2, 2)),
			want:    map[string]string{},
		},
		"the victims are ending still, and others": {
			objects: all(makeNodes("node", 1, 1), makeNodes("other", 1, 1), makePod("a", onNode("node-0"), endingSince(0)),
				makePod("b", onNode("other-0"), endingSince(0)), gang(2, 2)),
			want: map[string]string{"gang-0": "node-0", "gang-1": "other-0"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := newWorld(t, tc.objects...)
				w.start()
				w.awaitNominated("gang", tc.want)
			})
		})
	}
}

// relabelNode gives a node a label that nobody looks for.
func (w *world) relabelNode(name, value string) {
	w.t.Helper()
	w.changeNode(name, func(node *corev1.Node) { node.Labels["tests/label"] = value })
}

// TestMembersAreNominatedOnce, however often their gang is planned while its victims end one
// after the other.
func TestMembersAreNominatedOnce(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		const members = 12
		w := newWorld(t, all(makeNodes("node", 4, 3), makeGroup("high", members), makeMembers("high", members, ofPriority(10)))...)
		for i := range members {
			w.create(makePod(fmt.Sprintf("low-%d", i), onNode(fmt.Sprintf("node-%d", i%4))))
		}
		w.lingers = true
		w.start()
		w.eventually("all members are told that there is no room", func() bool { return w.marked("high") == members })
		for i := range members {
			before := w.cycles()
			w.finish(fmt.Sprintf("low-%d", i))
			w.relabelNode("node-0", fmt.Sprint(i)) // which might help
			w.eventually("the gang is planned again", func() bool { return w.cycles() > before })
		}
		w.eventually("the gang is placed", func() bool { return w.placed("high") == members })
		for i := range members {
			// A write may be repeated before it is seen.
			nodes := sets.New[string]()
			for _, to := range w.statusPatches(fmt.Sprintf("high-%d", i)) {
				nodes.Insert(to.NominatedNodeName)
			}
			if nodes.Len() != 1 || nodes.Has("") {
				t.Errorf("high-%d was nominated for %v, want one node", i, sets.List(nodes))
			}
		}
	})
}
