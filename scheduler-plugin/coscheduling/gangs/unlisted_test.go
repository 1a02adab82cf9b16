// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-k8s/lockstep/podgroup"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/news"
)

// TestGroupsThatCanNotBeListedCostNoOtherAPI: the gangs of others have cycles. Those of the dialect have
// theirs when all groups are known, and no earlier: another group might be that of Pods that run.
func TestGroupsThatCanNotBeListedCostNoOtherAPI(t *testing.T) {
	b := newBlindBench()
	b.config.Links = &dialect.Links{}
	b.config.Links.TurnOn(dialect.SchedulerPlugins)
	b.SetUnlisted(dialect.Own, true)
	theirs := dialect.Key{Dialect: dialect.SchedulerPlugins, Namespace: testNamespace, Name: "theirs"}
	b.Gangs.SetGroup(&dialect.Group{Key: theirs, UID: "theirs", Spec: dialect.Spec{Minimum: podgroup.Minimum{Members: 1}}})
	waits := makePod("theirs-0")
	waits.Labels = map[string]string{"scheduling.x-k8s.io/pod-group": "theirs"}
	b.add(waits, makePod("a", inGroup("gang")))
	b.SetSynced()
	if !b.isNext(theirs) {
		t.Fatal("a gang of another dialect has no cycle")
	}
	b.cycle()
	b.assumeAll(theirs, nil)
	b.SetGroup(makeGroup("gang", 1))
	if b.isNext(gangName) {
		t.Error("a gang has a cycle before all groups are known")
	}
	b.SetUnlisted(dialect.Own, false)
	if !b.isNext(gangName) {
		t.Error("a gang has no cycle when all groups are known")
	}
}

// TestAPodIsToldThatGroupsCanNotBeListed: it may be that there is one, and that it need not be created.
func TestAPodIsToldThatGroupsCanNotBeListed(t *testing.T) {
	b := newBench()
	b.add(makePod("a", inGroup("gang")))
	b.SetUnlisted(dialect.Own, true)
	b.time = b.time.Add(time.Minute)
	gang, told := b.Look(gangName)
	if !told || len(gang.Pods) != 1 {
		t.Fatalf("nothing is to be told of %d Pods", len(gang.Pods))
	}
	if mark, ok := gang.MarkOf(gang.Pods[0]); !ok || mark.Reason != news.ReasonNotServed || !strings.Contains(mark.Message, "can't list PodGroups") {
		t.Errorf("it is told %q: %s", mark.Reason, mark.Message)
	}
}

// TestAGangThatWasBrokenIsNoticedWhenItIsListed, however late.
func TestAGangThatWasBrokenIsNoticedWhenItIsListed(t *testing.T) {
	b := newBench()
	b.SetUnlisted(dialect.Own, true)
	b.add(makePod("a", inGroup("gang"), onNode("node-0")), preempted(makePod("b", inGroup("gang"), onNode("node-0"))))
	b.SetGroup(makeGroup("gang", 2))
	if len(b.drained().dissolved) > 0 {
		t.Errorf("%v are evicted before all groups are known", b.drained().dissolved)
	}
	b.SetUnlisted(dialect.Own, false)
	if got := strings.Join(b.drained().dissolved, " "); got != "a" {
		t.Errorf("%q are evicted, want the rest of the gang", got)
	}
}

// TestWhoWaitsForAGroupIsToldThatNoneCanBeSeen at once; and that there is none not before one may have come.
func TestWhoWaitsForAGroupIsToldThatNoneCanBeSeen(t *testing.T) {
	b := newBench()
	b.config.Links = &dialect.Links{}
	b.config.Links.TurnOn(dialect.SchedulerPlugins)
	pod := makePod("a")
	pod.Labels = map[string]string{"scheduling.x-k8s.io/pod-group": "theirs"}
	theirs := dialect.Key{Dialect: dialect.SchedulerPlugins, Namespace: testNamespace, Name: "theirs"}
	b.add(pod)
	told := func(when, want string, wantDue time.Time) {
		t.Helper()
		if in, asked := b.drained().report[theirs]; !asked || in != 0 {
			t.Errorf("%s nobody is told at once", when)
		}
		delete(b.drained().report, theirs)
		gang, _ := b.Look(theirs)
		mark, _ := gang.MarkOf(gang.Pods[0])
		if mark.Reason != want || !mark.Due.Equal(wantDue) {
			t.Errorf("%s it is told %q at %v, want %q at %v", when, mark.Reason, mark.Due, want, wantDue)
		}
	}
	due := b.time.Add(3 * time.Second)
	b.time = b.time.Add(time.Minute)
	b.SetUnread(dialect.SchedulerPlugins, "", "they may not be listed")
	told("when they can't be seen", news.ReasonNotServed, due)
	b.SetUnread(dialect.SchedulerPlugins, "", "")
	told("when they can", news.ReasonNoGroup, b.time.Add(3*time.Second))
}

// TestAGangThatWasBrokenIsNoticedWhenItsNamespaceMayBeRead: the scheduler before died while it dissolved the gang, and the
// PodGroups of the namespace may not be read when this one begins.
func TestAGangThatWasBrokenIsNoticedWhenItsNamespaceMayBeRead(t *testing.T) {
	rest := func(name string) *corev1.Pod { return makePod(name, inGroup("gang"), onNode("node-0")) }
	for name, happens := range map[string]func(b *bench){
		"some of it was deleted, and all was marked": func(b *bench) {
			marked := preempted(rest("a"))
			marked.DeletionTimestamp = nil
			b.add(marked)
			b.SetSynced()
		},
		"a member goes in the meantime": func(b *bench) {
			b.add(rest("a"), preempted(rest("b")))
			b.SetSynced()
			b.DeletePod(preempted(rest("b")))
		},
		"a member has gone before this one led": func(b *bench) {
			b.add(rest("a"), preempted(rest("b")))
			b.DeletePod(preempted(rest("b")))
			b.SetSynced()
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBlindBench()
			b.SetUnread(dialect.Own, testNamespace, "they may not be listed")
			happens(b)
			b.SetGroup(makeGroup("gang", 2))
			b.SetUnread(dialect.Own, testNamespace, "")
			if got := strings.Join(b.drained().dissolved, " "); got != "a" {
				t.Errorf("%q are evicted, want the rest of the gang", got)
			}
		})
	}
}
