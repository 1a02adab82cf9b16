// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"slices"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/news"
)

// notThere and notAllowed are how the API server refuses the groups of a dialect.
func notThere(d dialect.Dialect) *apierrors.StatusError {
	return apierrors.NewNotFound(d.Resource().GroupResource(), "")
}

func notAllowed(d dialect.Dialect) *apierrors.StatusError {
	return apierrors.NewForbidden(d.Resource().GroupResource(), "", nil)
}

// TestPodsAreToldThatTheKindOfTheirGroupIsGone: to create one would not help any more. What was placed
// stays, and new Pods wait, too.
func TestPodsAreToldThatTheKindOfTheirGroupIsGone(t *testing.T) {
	const label = "scheduling.x-k8s.io/pod-group"
	for name, tc := range map[string]struct {
		refusal *apierrors.StatusError
		want    string
	}{
		"it is taken away": {notThere(dialect.SchedulerPlugins), "the Pod waits for PodGroup lost, and the API server serves no PodGroups of scheduling.x-k8s.io: " +
			"the CustomResourceDefinition podgroups.scheduling.x-k8s.io is missing"},
		"the right to list it is": {notAllowed(dialect.SchedulerPlugins), "the Pod waits for PodGroup lost, and lockstep-scheduler may not list PodGroups of scheduling.x-k8s.io: " +
			"the ClusterRole that allows it is not bound"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := newWorld(t, all(makeNodes("node", 1, 4), makePod("lost-0", labelled(label, "lost")), makePod("gang-0", labelled(label, "gang")))...)
				w.serve(makeOtherGroup("gang", 1))
				w.start()
				w.eventually("a Pod is told that its group does not exist", func() bool { return w.scheduledCondition("lost-0").Reason == news.ReasonNoGroup })
				w.foreign.refuse(dialect.SchedulerPlugins, tc.refusal)
				w.foreign.breakWatches()
				w.eventually("it is told that there can't be any", func() bool { return w.scheduledCondition("lost-0").Reason == news.ReasonNotServed })
				if got := w.scheduledCondition("lost-0").Message; got != tc.want {
					t.Errorf("it is told %q, want %q", got, tc.want)
				}
				w.create(makePod("late-0", labelled(label, "late")))
				w.eventually("so is one that comes later", func() bool { return w.scheduledCondition("late-0").Reason == news.ReasonNotServed })
				if bound := w.bound(); !slices.Equal(bound, []string{"gang-0"}) {
					t.Errorf("%v are bound, want gang-0", bound)
				}
			})
		})
	}
}

// TestWhatIsKnownOfAKindStaysWithoutTheRightToListIt: a gang that waits for room is placed. When the right is there again,
// its informer goes on; after ten minutes at most, the program is started again, to be sure of all groups.
func TestWhatIsKnownOfAKindStaysWithoutTheRightToListIt(t *testing.T) {
	const d, label = dialect.SchedulerPlugins, "scheduling.x-k8s.io/pod-group"
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, all(makePod("known-0", labelled(label, "known")), makePod("new-0", labelled(label, "new")))...)
		w.serve(makeOtherGroup("known", 1))
		w.start()
		w.eventually("the group is known", func() bool { return w.phaseOfOther("known") != "" })
		w.foreign.refuse(d, notAllowed(d))
		w.foreign.breakWatches()
		w.eventually("a Pod is told that groups may not be listed", func() bool { return w.scheduledCondition("new-0").Reason == news.ReasonNotServed })
		for _, node := range makeNodes("node", 1, 4) {
			w.create(node)
		}
		w.eventually("the gang of a group that is known is placed", func() bool { return slices.Equal(w.bound(), []string{"known-0"}) })
		w.serve(makeOtherGroup("new", 1))
		w.eventually("the gang of a group that was created meanwhile is placed", func() bool { return slices.Equal(w.bound(), []string{"known-0", "new-0"}) })
		time.Sleep(restartPause + time.Minute)
		if !w.hasEnded() {
			t.Error("the program is not started again")
		}
	})
}
