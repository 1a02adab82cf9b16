// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/answers"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/whatif"
)

// listed is a Snapshot as a command line makes it, which lists objects.
func (w *world) listed() *whatif.Snapshot {
	w.t.Helper()
	s := &whatif.Snapshot{Now: time.Now()}
	nodes, err := w.kube.CoreV1().Nodes().List(w.t.Context(), metav1.ListOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	pods, err := w.kube.CoreV1().Pods("").List(w.t.Context(), metav1.ListOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	groups, err := w.lock.SchedulingV1alpha1().PodGroups("").List(w.t.Context(), metav1.ListOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	for i := range nodes.Items {
		s.Nodes = append(s.Nodes, &nodes.Items[i])
	}
	for i := range pods.Items {
		s.Pods = append(s.Pods, &pods.Items[i])
	}
	for i := range groups.Items {
		s.Groups = append(s.Groups, dialect.FromOwn(&groups.Items[i]))
	}
	return s
}

// TestTheSchedulerAndACommandLineGiveTheSameAnswers, and those are what the scheduler does. What only the
// scheduler knows is in its answers alone.
func TestTheSchedulerAndACommandLineGiveTheSameAnswers(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		inOneRack := func(s *schedulingv1alpha1.PodGroupSpec) {
			s.Topology = []schedulingv1alpha1.TopologyConstraint{{Key: "rack", Mode: schedulingv1alpha1.TopologyRequired}}
		}
		gang := func(name string, members int) []apiruntime.Object {
			return all(makeGroup(name, int32(members), inOneRack), makeMembers(name, members))
		}
		w := newWorld(t, all(makeNodes("a", 2, 4, "rack=a"), makeNodes("b", 3, 4, "rack=b"))...)
		w.start()
		for _, object := range gang("mesh", 10) {
			w.create(object)
		}
		w.eventually("the first gang is placed", func() bool { return w.placed("mesh") == 10 })
		for _, object := range gang("star", 9) {
			w.create(object)
		}
		told := w.condition("star", metav1.ConditionTrue, schedulingv1alpha1.ReasonNotEnoughResources)

		key := func(name string) dialect.Key { return dialect.Key{Namespace: testNamespace, Name: name} }
		engine := anyPlugin(pluginsOf(w.sched.Profiles)).engine
		sameBut := cmp.Options{
			cmpopts.IgnoreFields(answers.Why{}, "Evidence", "Unknown", "BackOffUntil"), cmpopts.IgnoreFields(answers.Waiting{}, "Reason", "BackOffUntil"),
			cmpopts.IgnoreFields(answers.Line{}, "Unknown"), cmpopts.IgnoreFields(answers.Simulation{}, "Unknown"), cmpopts.EquateApproxTime(time.Second),
		}
		var pictured *whatif.Snapshot
		w.eventually("the scheduler has seen the nodes of all members", func() bool {
			var err error
			pictured, err = engine.picture()
			if err != nil {
				return false
			}
			why := whatif.Why(pictured, key("mesh"))
			return why.Reason == answers.ReasonPlaced
		})
		byHand := w.listed()
		for _, name := range []string{"mesh", "star"} {
			if diff := cmp.Diff(whatif.Why(byHand, key(name)), whatif.Why(pictured, key(name)), sameBut); diff != "" {
				t.Errorf("why %s waits (-command line, +scheduler):\n%s", name, diff)
			}
		}
		everywhere := func(dialect.Key) bool { return true }
		if diff := cmp.Diff(whatif.Order(byHand, everywhere), whatif.Order(pictured, everywhere), sameBut); diff != "" {
			t.Errorf("the line (-command line, +scheduler):\n%s", diff)
		}
		question := &answers.Question{Namespace: testNamespace, Name: "star", AddNodes: []answers.AddNodes{{Like: "a-0", Count: 1}}}
		for of, s := range map[string]*whatif.Snapshot{"command line": byHand, "scheduler": pictured} {
			answer, err := whatif.Ask(s, question)
			if err != nil || !answer.Fits {
				t.Errorf("with one more node, the %s says %v, %s", of, err, answer.Message)
			}
		}

		why := whatif.Why(pictured, key("star"))
		if why.Reason != answers.ReasonNotEnoughResources || why.Place.Room != 8 || why.Place.Needed != 9 {
			t.Errorf("why: %+v\nthe scheduler has said: %s", why, told.Message)
		}
		if got := whatif.Order(pictured, everywhere).Gangs; len(got) != 1 || got[0].Reason != told.Message {
			t.Errorf("the line is %+v, and the gang was told %q", got, told.Message)
		}
		if len(whatif.Why(byHand, key("star")).Unknown) == 0 || len(why.Unknown) != 0 {
			t.Error("only who does not ask the scheduler lacks what it alone knows")
		}
		for _, object := range makeNodes("new", 1, 4, "rack=a") {
			w.create(object)
		}
		w.eventually("the gang has the room that the answer told of", func() bool { return w.placed("star") == 9 })
		for pod, node := range w.nodeOf() {
			if rack := node[:1]; len(pod) > 4 && pod[:4] == "star" && rack != "a" && node != "new-0" {
				t.Errorf("%s is on %s", pod, node)
			}
		}
	})
}

// holding is a plugin that holds the turn of the scheduler until it is let go.
type holding struct {
	holds func()
	free  chan struct{}
}

func (holding) Name() string { return "Holding" }

func (h holding) Filter(context.Context, fwk.CycleState, *corev1.Pod, fwk.NodeInfo) *fwk.Status {
	h.holds()
	<-h.free
	return nil
}

// TestAQuestionWaitsForNoTurnOfTheScheduler: a gang is asked about while its turn takes as long as it likes.
func TestAQuestionWaitsForNoTurnOfTheScheduler(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		held, free := make(chan struct{}), make(chan struct{})
		letGo := sync.OnceFunc(func() { close(free) })
		w := newWorld(t, all(makeNodes("node", 1, 4), makeGroup("gang", 1), makeMembers("gang", 1))...)
		w.others = []fwk.Plugin{holding{sync.OnceFunc(func() { close(held) }), free}}
		w.start()
		defer letGo()
		<-held
		answered := make(chan answers.Why)
		go func() {
			if s, err := w.engine().picture(); err != nil {
				t.Error(err)
			} else {
				answered <- whatif.Why(s, dialect.Key{Namespace: testNamespace, Name: "gang"})
			}
			close(answered)
		}()
		select {
		case why := <-answered:
			if why.Reason == "" || why.Reason == answers.ReasonNotFound {
				t.Errorf("the answer is %+v", why)
			}
		case <-time.After(30 * time.Second):
			t.Error("there is no answer while the scheduler has a turn")
		}
		letGo()
		w.eventually("the gang is placed", func() bool { return w.placed("gang") == 1 })
	})
}
