//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"testing"
	"time"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/e2e/testbed"
	"github.com/lockstep-k8s/lockstep/internal/localenv/jobs"
)

// TestAClockThatIsAnHourOffHoldsNothingUp has a controller and a scheduler lead whose clocks are an hour ahead
// of, or behind, those of the API server, the nodes and the replicas that stand by. Frameworks come to their
// ends, and retries wait for as long as they should; nobody takes the lease of a leader that lives,
// and others take over from one that dies; and no age that people see is negative.
func TestAClockThatIsAnHourOffHoldsNothingUp(t *testing.T) {
	for _, tc := range []struct {
		name  string
		ahead time.Duration
		// always is tried without -all-faults, too.
		always bool
	}{
		{name: "an hour ahead", ahead: time.Hour, always: true},
		{name: "an hour behind", ahead: -time.Hour},
	} {
		if !tc.always && !*all {
			continue
		}
		t.Run(tc.name, func(t *testing.T) {
			namespace := cluster.Namespace(t)
			recording := cluster.Record(t, namespace)
			leaders := []*replica{startReplica(t, "controller", tc.ahead), startReplica(t, "scheduler", tc.ahead)}
			for _, leader := range leaders {
				leader.waitLeads(t)
			}
			for _, leader := range leaders {
				startReplica(t, leader.component, 0).waitStandsBy(t)
			}
			began := time.Now()
			lives := &lives{namespace, map[string]want{}}
			for i := range 8 {
				fw, want := life(fmt.Sprintf("life%d", i), i, time.Second, "1")
				lives.want[fw.Name] = want
				create(t, namespace, fw)
			}
			delayed := jobs.MakeFramework("delayed").Retry(true, 0).Role("worker", 2, jobs.RunFor(time.Second, 201).InFirstAttempts(1).CPU("1")).Obj()
			create(t, namespace, delayed)
			cluster.WaitFramework(t, namespace, delayed.Name, "wait for its retry", func(fw *frameworkv1.Framework) bool {
				return fw.Status != nil && fw.Status.State == frameworkv1.FrameworkAttemptCompleted
			})
			waits := time.Now()
			mustSeeAges(t, namespace, delayed.Name)
			cluster.WaitFramework(t, namespace, delayed.Name, "be retried", func(fw *frameworkv1.Framework) bool { return fw.Status.AttemptStatus.ID == 1 })
			if took := time.Since(waits); took > retriedIn {
				t.Errorf("it was retried after %v, want 5 s", took)
			}
			lives.waitEnds(t)
			took := time.Since(began)
			if took > healsIn {
				t.Errorf("the Frameworks took %v, want at most %v", took.Round(time.Second), healsIn)
			}
			mustSeeAges(t, namespace, delayed.Name)
			cluster.WaitFrameworkState(t, namespace, delayed.Name, frameworkv1.FrameworkCompleted)
			recording.CheckQuiet(t)

			for _, leader := range leaders {
				leader.mustKeepLease(t, tc.ahead)
			}
			died := time.Now()
			for _, leader := range leaders {
				if err := leader.kill(); err != nil {
					t.Fatal(err)
				}
			}
			measured(t, "clocks", fmt.Sprintf("%s | %.0f s", tc.name, took.Seconds())+succeeded(t, leaders, died))
		})
	}
}

// retriedIn is how long a retry may take that is due after 5 s: a lot less than an hour.
const retriedIn = 30 * time.Second

// mustKeepLease waits until the replica has led for so long that its lease would have run out, and fails the
// test if another took it meanwhile, or if the clock in the lease is not ahead by what the test wants.
func (r *replica) mustKeepLease(t *testing.T, ahead time.Duration) {
	t.Helper()
	const longEnough = 20 * time.Second // the lease is one of 15 s
	testbed.Eventually(t, "the "+r.component+" to have renewed its lease", func(ctx context.Context) (bool, string, error) {
		lease, err := r.lease(ctx)
		if err != nil || lease.RenewTime == nil || lease.AcquireTime == nil {
			return false, "", err
		}
		if *lease.HolderIdentity != r.identity {
			t.Fatalf("another %s took the lease of one that lives: %v", r.component, lease)
		}
		if off := time.Until(lease.RenewTime.Time) - ahead; off.Abs() > time.Minute {
			t.Fatalf("the lease of the %s was renewed %v from now, want about %v", r.component, time.Until(lease.RenewTime.Time), ahead)
		}
		led := lease.RenewTime.Sub(lease.AcquireTime.Time)
		return led > longEnough, led.String(), nil
	})
}

// noAge is what kubectl writes for an age that is negative, and what Go does.
var noAge = regexp.MustCompile(`<invalid>|-\d+(h|m|s|ms)\b|-\d+h\d`)

// mustSeeAges has a user look at Frameworks in all ways, and fails the test for an age below zero.
func mustSeeAges(t *testing.T, namespace, framework string) {
	t.Helper()
	for _, args := range [][]string{{"get"}, {"get", framework}, {"describe", framework}, {"why", framework}} {
		cmd := exec.CommandContext(t.Context(), "kubectl-lockstep", append(args, "--kubeconfig="+cluster.Kubeconfig, "-n", namespace)...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("kubectl lockstep %v: %v: %s", args, err, out)
		}
		if found := noAge.FindString(string(out)); found != "" {
			t.Errorf("kubectl lockstep %v shows the age %q:\n%s", args, found, out)
		}
	}
}
