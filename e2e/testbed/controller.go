// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"context"
	"testing"

	"github.com/lockstep-k8s/lockstep/internal/localenv"
)

// Controller is a lockstep-controller that a test has started itself, on a
// cluster that runs none.
type Controller struct {
	*localenv.Controller
	// toTell is how much of its log a test tells that fails, in bytes.
	toTell int
}

const (
	// tellOfLiving is how much is told of the log of a controller that runs until its test ends.
	tellOfLiving = 8000
	// tellOfKilled is how much is told of one that the test has killed. There may be twenty, and
	// what failed must not drown in their logs.
	tellOfKilled = 400
)

// StartController starts lockstep-controller and returns at once. When the test
// ends, it is killed if it still runs; if the test failed, the end of its log is
// told.
func (c *Cluster) StartController(t testing.TB, o localenv.ControllerOptions) *Controller {
	t.Helper()
	// Not the context of the test: what the test cleans up may need the controller.
	controller, err := c.Cluster.StartController(context.WithoutCancel(t.Context()), o)
	if err != nil {
		t.Fatal(err)
	}
	p := &Controller{Controller: controller, toTell: tellOfLiving}
	t.Cleanup(func() {
		controller.Kill()
		if t.Failed() {
			t.Logf("log of the controller with process %d:\n%s", p.PID(), p.LogTail(p.toTell))
		}
	})
	return p
}

// Kill ends the controller at once, and returns when it is gone.
func (p *Controller) Kill() {
	p.toTell = tellOfKilled
	p.Controller.Kill()
}

// Terminate asks the controller to end, as a kubelet does, and returns how it
// ended.
func (p *Controller) Terminate(t testing.TB) error {
	t.Helper()
	ctx, cancel := patient(t, Patience)
	defer cancel()
	return p.Controller.Terminate(ctx)
}

// Log is what the controller has written so far.
func (p *Controller) Log(t testing.TB) string {
	t.Helper()
	log, err := p.Controller.Log()
	if err != nil {
		t.Fatal(err)
	}
	return log
}

// WaitLog waits until the controller has written a text.
func (p *Controller) WaitLog(t testing.TB, text string) {
	t.Helper()
	ctx, cancel := patient(t, Patience)
	defer cancel()
	if err := p.Controller.WaitLog(ctx, text); err != nil {
		t.Fatal(err)
	}
}

// WaitReady waits until the controller says that it is ready.
func (p *Controller) WaitReady(t testing.TB) {
	t.Helper()
	ctx, cancel := patient(t, Patience)
	defer cancel()
	if err := p.Controller.WaitReady(ctx); err != nil {
		t.Fatal(err)
	}
}

// Counter is the value of one series of the controller's metrics, such as
// lockstep_controller_panics_total or name{kind="a",result="b"}; 0 if it has none.
func (p *Controller) Counter(t testing.TB, series string) int {
	t.Helper()
	address, err := p.Address()
	if err != nil {
		t.Fatal(err)
	}
	return Metric(t, "http://"+address, "", series)
}
