// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/tools/cache"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
)

// TestGangsOfOthersArePlacedWithoutLockstepsPodGroups: the API server serves none. When it does, the program is started again.
func TestGangsOfOthersArePlacedWithoutLockstepsPodGroups(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		label := labelled("scheduling.x-k8s.io/pod-group", "theirs")
		w := newWorld(t, all(makeNodes("node", 1, 4), makePod("theirs-0", label), makePod("theirs-1", label), makeMembers("ours", 2))...)
		w.ownRefusal.Store(notThere(dialect.Own))
		w.serve(makeOtherGroup("theirs", 2))
		w.start()
		w.eventually("the gang of scheduler-plugins is placed", func() bool { return w.placed("theirs") == 2 })
		if w.hasEnded() {
			t.Error("the program ends before the kind comes")
		}
		w.ownRefusal.Store(nil)
		w.eventually("the program is to be started again", w.hasEnded)
	})
}

// unseen are objects that are seen when the channel is closed.
type unseen chan struct{}

// Name implements cache.DoneChecker.
func (unseen) Name() string { return "groups" }

// Done implements cache.DoneChecker.
func (u unseen) Done() <-chan struct{} { return u }

// TestAListThatNeverComesKeepsNobodyWaiting for longer than a minute. The gangs of the dialect wait on.
func TestAListThatNeverComesKeepsNobodyWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(dialect.SchedulerPlugins)
		groups, begun := make(unseen), make(chan struct{})
		w := &watcher{ctx: t.Context(), gangs: b.Gangs, sched: retrying(t, &retries{})}
		go func() {
			w.awaitLists(map[dialect.Dialect][]cache.DoneChecker{dialect.SchedulerPlugins: {groups}, dialect.Own: nil})
			close(begun)
		}()
		isBegun := func() bool {
			synctest.Wait()
			select {
			case <-begun:
				return true
			default:
				return false
			}
		}
		mayBeMember := func() bool {
			pod := makePod("theirs-0", labelled("scheduling.x-k8s.io/pod-group", "theirs"))
			return b.MayBeMember(pod)
		}
		time.Sleep(answerTimeout - time.Second)
		if isBegun() {
			t.Error("nobody waits for the list")
		}
		time.Sleep(2 * time.Second)
		if !isBegun() || !mayBeMember() {
			t.Errorf("after a minute all others go on: %t; a Pod may be a member of a gang that was not listed: %t", isBegun(), mayBeMember())
		}
		close(groups)
		if isBegun(); mayBeMember() {
			t.Error("a Pod may be a member of an unknown gang after all were listed")
		}
	})
}
