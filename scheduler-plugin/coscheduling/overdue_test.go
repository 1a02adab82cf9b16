// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"
	schedulertesting "k8s.io/kubernetes/pkg/scheduler/testing"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/line"
)

// slow is a plugin that thinks about each Pod for a while, as a slow extender does.
type slow struct{ thinks time.Duration }

func (slow) Name() string { return "Slow" }

func (s slow) Filter(context.Context, fwk.CycleState, *corev1.Pod, fwk.NodeInfo) *fwk.Status {
	time.Sleep(s.thinks)
	return nil
}

// TestAGangThatTakesTooLongToPlanHoldsNobodyUp: each of its members is of another kind, so
// each is looked at by itself.
func TestAGangThatTakesTooLongToPlanHoldsNobodyUp(t *testing.T) {
	var different []apiruntime.Object
	for i := range 50 {
		different = append(different, makePod(fmt.Sprintf("different-%d", i), inGroup("different"),
			func(w *schedulertesting.PodWrapper) {
				w.Req(map[corev1.ResourceName]string{corev1.ResourceCPU: fmt.Sprintf("%dm", i+1)})
			}))
	}
	w := newWorld(t, all(makeNodes("node", 2, 100), bornAt(0, makeGroup("different", 50)), different)...)
	w.others = []fwk.Plugin{slow{20 * time.Millisecond}}
	w.args = `{"initialBackoff":"50ms","maxBackoff":"200ms","turnTimeout":"200ms"}`
	w.start()
	got := w.condition("different", metav1.ConditionTrue, schedulingv1alpha1.ReasonNotEnoughResources)
	if want := "the members are of 50 kinds"; !strings.Contains(got.Message, want) || !strings.Contains(got.Message, "given up") {
		t.Errorf("message %q, want one with %q, and that it was given up", got.Message, want)
	}
	w.create(bornAt(1, makeGroup("alike", 3)))
	for _, member := range makeMembers("alike", 3) {
		w.create(member)
	}
	w.eventually("a gang that came later is placed", func() bool { return w.placed("alike") == 3 })
	if n := w.placed("different"); n != 0 {
		t.Errorf("%d members are placed of the gang that was given up", n)
	}
}

// TestTurnsThatTakeTooLongHaveATenthOfTheTime, however many gangs of a namespace make them,
// and be they the first turns of new gangs. A gang of another namespace has its turn.
func TestTurnsThatTakeTooLongHaveATenthOfTheTime(t *testing.T) {
	b := newBench()
	for _, name := range []string{"a", "b", "c"} {
		b.setGroup(makeGroup(name, 1))
		b.add(makePod(name+"-0", inGroup(name)))
	}
	begun, turns, made := b.time, 0, 0
	const took, share = 2 * time.Second, 10
	for b.time.Sub(begun) < 10*time.Minute {
		b.somethingHappens()
		made++
		fresh := fmt.Sprint("fresh-", made) // Its name comes after those that wait.
		b.setGroup(makeGroup(fresh, 1))
		b.add(makePod(fresh+"-0", inGroup(fresh)))
		for view := b.turn(); view.Group != nil; view = b.turn() {
			turns++
			b.time = b.time.Add(took)
			b.fail(view.Key, view.Group.UID, line.Refusal{Message: "given up", Took: took}, time.Second, 10*time.Second)
		}
		b.time = b.time.Add(time.Second)
	}
	if most := int(10*time.Minute/took/share) + 3; turns > most || turns < most/2 {
		t.Errorf("%d turns of 2 s in 10 minutes, want some %d", turns, most)
	}
	group, member := makeGroup("a", 1), makePod("a-0", inGroup("a"))
	group.Namespace, member.Namespace = "elsewhere", "elsewhere"
	b.setGroup(group)
	b.add(member)
	if !b.isNext(types.NamespacedName{Namespace: "elsewhere", Name: "a"}) {
		t.Error("a gang of another namespace has no turn")
	}
}
