// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	schedulertesting "k8s.io/kubernetes/pkg/scheduler/testing"
	"k8s.io/utils/ptr"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/gangs"
)

// leaseOf is a Lease that somebody has renewed just now.
func leaseOf(namespace, name string) *coordinationv1.Lease {
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: ptr.To("somebody"), RenewTime: &metav1.MicroTime{Time: time.Now()}}}
}

// TestASchedulerThatLeadsUnderAServedNameIsARival, but for this one.
func TestASchedulerThatLeadsUnderAServedNameIsARival(t *testing.T) {
	leases := fake.NewClientset(leaseOf("volcano-system", "volcano"), leaseOf("volcano-system", "other"), leaseOf("kube-system", "kube-scheduler")).CoordinationV1()
	r := &rivalry{leases: leases, names: []string{"default-scheduler", "lockstep-scheduler", "volcano"},
		own: types.NamespacedName{Namespace: "kube-system", Name: "kube-scheduler"}}
	r.look(t.Context())
	if got := r.contested(); !slices.Equal(got, []string{"volcano"}) {
		t.Errorf("rivals are known of %v, want of volcano", got)
	}
}

// TestTheGroupsOfVolcanoAreLeftToItsScheduler while that runs, unless rivals are to be ignored. All
// others are served.
func TestTheGroupsOfVolcanoAreLeftToItsScheduler(t *testing.T) {
	for rivals, want := range map[string][]string{"Refuse": {"own-0"}, "Ignore": {"gang-0", "own-0"}} {
		t.Run(rivals, func(t *testing.T) {
			member := func(w *schedulertesting.PodWrapper) { w.Annotation("scheduling.k8s.io/group-name", "gang") }
			w := newWorld(t, all(makeNodes("node", 1, 4), leaseOf("volcano-system", "volcano"), makePod("gang-0", member))...)
			w.args = `{"dialects":{"volcano":{"mode":"On","rivals":"` + rivals + `"}}}`
			w.serveDialect(dialect.Volcano, makeForeignGroup(dialect.Volcano, "gang", 1))
			w.start()
			w.create(makeGroup("own", 1))
			w.create(makePod("own-0", inGroup("own")))
			w.eventually("who may be bound is", func() bool { return slices.Equal(w.bound(), want) })
			w.eventually("the gang has had its turn", func() bool {
				dump, err := gangs.DumpOf(w.engine().gangs)
				return err == nil && !dump.Gangs[dialect.Key{Dialect: dialect.Volcano, Namespace: testNamespace, Name: "gang"}].Ready
			})
			if phase, told := w.phaseOf(dialect.Volcano, "gang"), len(want) > 1; (phase != "") != told {
				t.Errorf("the phase of the group is %q, and that it is served is %v", phase, told)
			}
		})
	}
}

// TestAPodThatSomebodyElseHasBoundShowsARival, unless it is older than this scheduler's lead: then it
// was the one that led before.
func TestAPodThatSomebodyElseHasBoundShowsARival(t *testing.T) {
	for name, tc := range map[string]struct {
		age  time.Duration // before the lead began, or after it if negative
		want []string
	}{
		"it has come since":     {-time.Minute, []string{testScheduler}},
		"it was there before":   {time.Minute, nil},
		"it came with the lead": {-time.Second, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := &rivalry{}
				r.begin()
				pod := makePod("gang-0", onNode("node-0"))
				pod.CreationTimestamp = metav1.NewTime(time.Now().Add(-tc.age))
				r.boundElsewhere(t.Context(), pod)
				synctest.Wait()
				if got := r.contested(); !slices.Equal(got, tc.want) {
					t.Errorf("rivals are known of %v, want of %v", got, tc.want)
				}
			})
		})
	}
}
