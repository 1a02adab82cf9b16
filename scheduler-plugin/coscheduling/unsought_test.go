// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/provision"
)

// trouble is a plugin that has trouble with virtual members while it is on, and keeps members back that say so.
type trouble struct {
	on   *atomic.Bool
	with func() *fwk.Status
}

func (trouble) Name() string { return "Trouble" }

func (p trouble) Filter(_ context.Context, _ fwk.CycleState, pod *corev1.Pod, _ fwk.NodeInfo) *fwk.Status {
	if p.on.Load() && provision.IsVirtual(pod) {
		return p.with()
	}
	return nil
}

func (trouble) PreEnqueue(_ context.Context, pod *corev1.Pod) *fwk.Status {
	if pod.Labels["kept"] != "" {
		return fwk.NewStatus(fwk.Unschedulable, "it is kept back")
	}
	return nil
}

// TestRoomStaysWhenItIsNotFoundOutHowMuchThereIs: an executor has its place and the rest of the room is kept, though
// the plan of the rest takes too long, or fails. It is sought again until it is known.
func TestRoomStaysWhenItIsNotFoundOutHowMuchThereIs(t *testing.T) {
	for name, with := range map[string]func() *fwk.Status{
		"it takes too long": func() *fwk.Status { time.Sleep(300 * time.Millisecond); return nil },
		"it fails":          func() *fwk.Status { return fwk.NewStatus(fwk.Error, "broken") },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				var on atomic.Bool
				w := newWorld(t, makeNodes("node", 3, 8)...)
				w.args = strings.Replace(keeping(""), "{", `{"turnTimeout":"200ms",`, 1)
				w.others = []fwk.Plugin{trouble{&on, with}}
				w.serve(makeSpark("a", "9", 1))
				w.start()
				w.create(makePod("a-driver", ofSpark("a")))
				w.eventually("room is kept", func() bool { return w.keeps(sparkNamed("a"), 8) })
				on.Store(true)
				w.create(makePod("a-exec", ofSpark("a"), cores("2")))
				w.eventually("the executor runs", func() bool { return w.nodeOf()["a-exec"] != "" })
				w.eventually("the rest is kept", func() bool { return w.keeps(sparkNamed("a"), 6) })
				w.create(makePod("higher", cores("4"), ofPriority(1), onNode("node-0")))
				w.eventually("what is left of it is", func() bool { return w.keeps(sparkNamed("a"), 3) })
				on.Store(false)
				w.eventually("as much as is to be", func() bool { return w.keeps(sparkNamed("a"), 6) })
			})
		})
	}
}

// TestMoreRoomIsKeptWhenSomeBecomesFree, for a gang that has started with less.
func TestMoreRoomIsKeptWhenSomeBecomesFree(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, all(makeNodes("node", 2, 8), makePod("plain", cores("8"), onNode("node-1")))...)
		w.args = keeping(`,"schedulerPlugins":"BestEffort"`)
		w.serve(makeSpark("a", "17", 1))
		w.start()
		w.create(makePod("a-driver", ofSpark("a")))
		w.eventually("what there is is kept", func() bool { return w.keeps(sparkNamed("a"), 7) })
		w.deletePod("plain")
		w.eventually("more is when a Pod ends", func() bool { return w.keeps(sparkNamed("a"), 15) })
		w.create(makeNodes("late", 1, 8)[0])
		w.eventually("all is when a node comes", func() bool { return w.keeps(sparkNamed("a"), 16) })
	})
}

// TestARestartKeepsRoomBesideAMemberThatIsKeptBack: its turn ends before a place is sought for it.
func TestARestartKeepsRoomBesideAMemberThatIsKeptBack(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, makeNodes("node", 2, 8)...)
		w.args = keeping("")
		w.others = []fwk.Plugin{trouble{on: &atomic.Bool{}}}
		w.serve(makeSpark("a", "9", 1))
		stop := w.start()
		w.create(makePod("a-driver", ofSpark("a")))
		w.eventually("room is kept", func() bool { return w.keeps(sparkNamed("a"), 8) })
		w.create(makePod("a-exec", ofSpark("a"), labelled("kept", "back")))
		w.eventually("the executor is kept back", func() bool { return w.toldSpark("a", "may not be scheduled yet") })
		stop()
		w.start()
		w.eventually("room is kept again", func() bool { return w.keeps(sparkNamed("a"), 8) })
	})
}
