// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/line"
)

// madeAnew is another Pod of the same name.
func madeAnew(pod *corev1.Pod) *corev1.Pod {
	pod = pod.DeepCopy()
	pod.UID += "-anew"
	pod.ResourceVersion = string(pod.UID)
	return pod
}

// TestAPodThatWasMadeAnewIsOneMember: while a watch was broken a Pod was deleted and
// created again. The informer tells of both in one update, and the gang still lacks
// a member.
func TestAPodThatWasMadeAnewIsOneMember(t *testing.T) {
	w := newWorld(t, all(makeNodes("node", 1, 4), makeGroup("gang", 2), makeMembers("gang", 1))...)
	w.start()
	w.condition("gang", metav1.ConditionTrue, schedulingv1alpha1.ReasonNotEnoughTasks)
	again := madeAnew(makePod("gang-0", inGroup("gang")))
	if err := w.kube.Tracker().Update(podResource, again, testNamespace); err != nil {
		t.Fatal(err)
	}
	w.eventually("the Pod is known to the gang and to the queue, and the one before is not", func() bool {
		tracker := w.tracker()
		tracker.mu.RLock()
		members := tracker.gangs[gangNamed("gang")].members
		known := members[again.UID] != nil && len(members) == 1
		tracker.mu.RUnlock()
		waiting, _ := w.sched.SchedulingQueue.PendingPods()
		return known && len(waiting) == 1 && waiting[0].UID == again.UID
	})
	if n := w.placed("gang"); n != 0 {
		t.Errorf("%d members of an incomplete gang are placed", n)
	}
	w.create(makePod("gang-1", inGroup("gang")))
	w.eventually("the complete gang is placed", func() bool { return w.placed("gang") == 2 })
}

// TestAMemberThatWasMadeAnewHasLostItsPlace: so has the gang lost a member.
func TestAMemberThatWasMadeAnewHasLostItsPlace(t *testing.T) {
	b := newBench()
	b.setGroup(makeGroup("gang", 1))
	placed, again := makePod("a", inGroup("gang"), onNode("node-0")), madeAnew(makePod("a", inGroup("gang")))
	m := newMembers(b.tracker, fake.NewClientset())
	m.living().OnAdd(placed, true)
	m.living().OnUpdate(placed, again)
	m.askUntilAnswered(t)
	b.wantCounts(t, "after a placed member was made anew", 1, 0, 0)
	if g := b.gangs[gangName]; g.deletedMembers != 1 {
		t.Errorf("the gang has lost %d members, want 1", g.deletedMembers)
	}
}

// TestAPodGroupThatWasMadeAnewInheritsNothing: not even the back-off of the one
// before.
func TestAPodGroupThatWasMadeAnewInheritsNothing(t *testing.T) {
	b := newBench()
	group := makeGroup("gang", 1)
	b.setGroup(group)
	b.add(makePod("a", inGroup("gang")))
	b.turn()
	b.fail(gangName, group.UID, line.Refusal{Message: "no room"}, time.Hour, time.Hour)
	again := group.DeepCopy()
	again.UID = "another"
	handlers(b.setGroup, b.updateGroup, b.deleteGroup).OnUpdate(group, again)
	if !b.isNext(gangName) {
		t.Error("the new group has no turn")
	}
}

// TestADeletionThatWasMissedIsOne: the informer finds a Pod and a PodGroup gone when
// it lists them anew.
func TestADeletionThatWasMissedIsOne(t *testing.T) {
	b := newBench()
	group, pod := makeGroup("gang", 1), makePod("a", inGroup("gang"))
	pods, groups := newMembers(b.tracker, fake.NewClientset()).living(), handlers(b.setGroup, b.updateGroup, b.deleteGroup)
	groups.OnAdd(group, false)
	pods.OnAdd(pod, false)
	pods.OnDelete(cache.DeletedFinalStateUnknown{Key: "ns/a", Obj: pod})
	b.wantCounts(t, "without the Pod", 0, 0, 0)
	groups.OnDelete(cache.DeletedFinalStateUnknown{Key: "ns/gang", Obj: group})
	if b.knows(gangName) {
		t.Error("the gang is still known")
	}
}

// knows says whether anything is known of a gang.
func (b *bench) knows(key types.NamespacedName) bool {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.gangs[key] != nil
}
