//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/e2e/testbed"
	"github.com/lockstep-k8s/lockstep/e2e/testbed/faultproxy"
	"github.com/lockstep-k8s/lockstep/internal/localenv"
)

// electedConfig is the configuration of controllers of which one leads. A conflict is soon retried.
const electedConfig = `leaderElection: {enabled: true}
frameworkMinRetryDelaySecForTransientConflictFailed: 5
frameworkMaxRetryDelaySecForTransientConflictFailed: 5
`

// triesToLead is what a replica logs before it asks who leads.
const triesToLead = "ttempting to acquire leader lease"

// TestOthersTakeOver has two replicas of the controller and two of the scheduler, and takes both leaders
// away while Frameworks begin, run and are retried. The others take over in the time that
// takesOverIn allows, nothing of the old leaders takes effect any more, and each Framework comes to
// its end with no task done twice.
func TestOthersTakeOver(t *testing.T) {
	for _, tc := range []struct {
		name string
		// take takes a leader away, and end has it end when another has taken over.
		take, end func(*replica) error
		// always is tried without -all-faults, too, with fewer Frameworks.
		always bool
	}{
		{name: "killed", take: (*replica).kill, end: (*replica).nothing, always: true},
		{name: "frozen, and thawed when others lead", take: (*replica).freeze, end: (*replica).thaw},
		{name: "cut off: the proxy lets nothing through", take: (*replica).cutOff, end: (*replica).nothing},
	} {
		if !tc.always && !*all {
			continue
		}
		t.Run(tc.name, func(t *testing.T) {
			namespace := cluster.Namespace(t)
			recording := cluster.Record(t, namespace)
			leaders := []*replica{startReplica(t, "controller", 0), startReplica(t, "scheduler", 0)}
			for _, leader := range leaders {
				leader.waitLeads(t)
			}
			for _, leader := range leaders {
				startReplica(t, leader.component, 0).waitStandsBy(t)
			}
			lives := beginLives(t, namespace)
			for _, leader := range leaders {
				leader.mustLead(t)
			}
			taken := time.Now()
			for _, leader := range leaders {
				if err := tc.take(leader); err != nil {
					t.Fatal(err)
				}
			}
			measured(t, "leaders", tc.name+succeeded(t, leaders, taken))
			for _, leader := range leaders {
				leader.mustHaveNoEffect(t, tc.end)
			}
			lives.waitEnds(t)
			recording.CheckQuiet(t)
			// An attempt may fail before all of its Pods are made.
			if got, most := recording.Pods(), lives.pods(); got > most {
				t.Errorf("%d Pods were made, want at most %d: one for each attempt of a task", got, most)
			}
		})
	}
}

// replica is one of the processes of a component that elect a leader. Its requests go through a
// proxy of its own.
type replica struct {
	component string
	process   *localenv.Process
	proxy     *faultproxy.Proxy
	// identity is its name in the Lease, empty until it leads.
	identity string
}

// startReplica starts a replica whose clock is ahead of all others by a time, or behind them if that is negative.
func startReplica(t *testing.T, component string, ahead time.Duration) *replica {
	t.Helper()
	proxy, kubeconfig := proxyOf(t, component)
	proxy.SetAhead(ahead)
	r := &replica{component: component, proxy: proxy}
	if component == "controller" {
		r.process = cluster.StartController(t, localenv.ControllerOptions{Config: electedConfig, Kubeconfig: kubeconfig}).Process
	} else {
		r.process = cluster.SchedulerFor(t, localenv.SchedulerOptions{Elected: true, Kubeconfig: kubeconfig})
	}
	return r
}

// lease is the one that the replicas of the component hold in turns; nil if there is none yet.
func (r *replica) lease(ctx context.Context) (*coordinationv1.LeaseSpec, error) {
	lease, err := cluster.Kube.CoordinationV1().Leases("lockstep-system").Get(ctx, "lockstep-"+r.component, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return &lease.Spec, nil
}

// waitLeads waits until this replica leads: it is the only one.
func (r *replica) waitLeads(t *testing.T) {
	t.Helper()
	testbed.Eventually(t, "the "+r.component+" to lead", func(ctx context.Context) (bool, string, error) {
		log, err := r.process.Log()
		if err != nil || !strings.Contains(log, becameLeader) {
			return false, "it does not yet", err
		}
		lease, err := r.lease(ctx)
		if err != nil || lease.HolderIdentity == nil {
			return false, "nobody holds the lease", err
		}
		r.identity = *lease.HolderIdentity
		return true, "", nil
	})
}

// waitStandsBy waits until the replica has asked who leads.
func (r *replica) waitStandsBy(t *testing.T) {
	t.Helper()
	testbed.Eventually(t, "another "+r.component+" to stand by", func(context.Context) (bool, string, error) {
		log, err := r.process.Log()
		return strings.Contains(log, triesToLead), "", err
	})
}

// mustLead fails the test if the replica does not lead: what it tests would be something else.
func (r *replica) mustLead(t *testing.T) {
	t.Helper()
	lease, err := r.lease(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if r.process.Ended() || lease.HolderIdentity == nil || *lease.HolderIdentity != r.identity {
		t.Fatalf("the %s that led has lost the lease before anything was done to it: %v", r.component, lease)
	}
}

// waitSucceeded waits until another replica holds the lease, and returns since when.
func (r *replica) waitSucceeded(t *testing.T) time.Time {
	t.Helper()
	var since time.Time
	testbed.Eventually(t, "another "+r.component+" to take over", func(ctx context.Context) (bool, string, error) {
		lease, err := r.lease(ctx)
		if err != nil {
			return false, "", err
		}
		holder := lease.HolderIdentity
		if holder == nil || *holder == "" || *holder == r.identity || lease.AcquireTime == nil {
			return false, fmt.Sprintf("the lease is that of %v", holder), nil
		}
		since = lease.AcquireTime.Time
		return true, "", nil
	})
	return since
}

// succeeded waits until other replicas lead, and returns cells of a table: how long after a moment that was so, for
// each of the leaders. The test fails if it took too long.
func succeeded(t *testing.T, leaders []*replica, since time.Time) string {
	t.Helper()
	var cells strings.Builder
	for _, leader := range leaders {
		took := leader.waitSucceeded(t).Sub(since)
		if took > takesOverIn {
			t.Errorf("another %s took over after %v, want at most %v", leader.component, took, takesOverIn)
		}
		fmt.Fprintf(&cells, " | %.0f s", took.Seconds())
	}
	return cells.String()
}

// mustHaveNoEffect has a leader of before end, and fails the test for what it changes until then.
func (r *replica) mustHaveNoEffect(t *testing.T, end func(*replica) error) {
	t.Helper()
	before := len(r.proxy.Done())
	if err := end(r); err != nil {
		t.Fatal(err)
	}
	select {
	case <-r.process.Done():
	case <-time.After(testbed.Patience):
		t.Errorf("the old leader of %ss goes on", r.component)
	}
	for _, done := range r.proxy.Done()[before:] {
		if !isOfEvents(done) {
			t.Errorf("the old leader of %ss has done %s", r.component, done)
		}
	}
}

// isOfEvents says whether a write is one of events. A former leader may say that it has ended, and what it could not do.
func isOfEvents(done string) bool { return strings.Contains(done+"/", "/events/") }

func (r *replica) kill() error {
	r.process.Kill()
	return nil
}

func (r *replica) freeze() error { return r.process.Freeze() }

func (r *replica) thaw() error { return r.process.Thaw() }

func (r *replica) cutOff() error {
	r.proxy.Break(faultproxy.Cut())
	return nil
}

func (r *replica) nothing() error { return nil }

// lives are Frameworks of a test, and the ends that they shall come to.
type lives struct {
	namespace string
	want      map[string]want
}

// beginLives creates Frameworks, portion by portion, so that the machine carries them, and returns when
// all of them have begun, some have been retried and some are over.
func beginLives(t *testing.T, namespace string) *lives {
	t.Helper()
	const portion = 10
	number := 20
	if *all {
		number = 100
	}
	l := &lives{namespace, map[string]want{}}
	for i := range number {
		runs := 1 + i%5
		if i%8 > 3 { // of each sort
			runs += number / 4
		}
		fw, want := life(fmt.Sprintf("life%d", i), i, time.Duration(runs)*time.Second, "100m")
		l.want[fw.Name] = want
		create(t, namespace, fw)
		if i%portion == portion-1 {
			cluster.WaitFramework(t, namespace, fw.Name, "begin", func(fw *frameworkv1.Framework) bool { return fw.Status != nil })
		}
	}
	testbed.Eventually(t, "the Frameworks to begin, and some to be retried and some to end", func(ctx context.Context) (bool, string, error) {
		list, err := cluster.Lockstep.FrameworkcontrollerV1().Frameworks(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, "", err
		}
		begun, retried, over := 0, 0, 0
		for _, fw := range list.Items {
			switch {
			case fw.Status == nil:
				continue
			case fw.Status.State == frameworkv1.FrameworkCompleted:
				over++
			case isRetried(fw.Status):
				retried++
			}
			begun++
		}
		seen := fmt.Sprintf("%d of %d have begun, %d of them are retried, %d are over", begun, number, retried, over)
		if over > number*3/4 {
			t.Fatalf("too few are left to fail over: %s", seen)
		}
		done := begun == number && retried > 0 && over > 0
		if done {
			t.Log(seen)
		}
		return done, seen, nil
	})
	return l
}

// isRetried says whether the Framework or a task of its attempt has been retried.
func isRetried(status *frameworkv1.FrameworkStatus) bool {
	if status.AttemptStatus.ID > 0 {
		return true
	}
	return slices.ContainsFunc(status.AttemptStatus.TaskRoleStatuses, func(role *frameworkv1.TaskRoleStatus) bool {
		return slices.ContainsFunc(role.TaskStatuses, func(task *frameworkv1.TaskStatus) bool { return task.AttemptStatus.ID > 0 })
	})
}

// waitEnds waits until each Framework has come to the end that its spec implies.
func (l *lives) waitEnds(t *testing.T) {
	t.Helper()
	for name, want := range l.want {
		done := cluster.WaitFrameworkState(t, l.namespace, name, frameworkv1.FrameworkCompleted)
		if got := endOf(done, want.pods); got != want {
			t.Errorf("%s ended as %+v, want %+v", name, got, want)
		}
	}
}

// pods is how many Pods the Frameworks need in all.
func (l *lives) pods() int {
	sum := 0
	for _, want := range l.want {
		sum += want.pods
	}
	return sum
}
