// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-k8s/lockstep/controller/lifecycle"
	"github.com/lockstep-k8s/lockstep/controller/pacing"
)

// faultyEntropy panics where a decision asks for something new.
type faultyEntropy struct{ lifecycle.Entropy }

func (faultyEntropy) NewUID() types.UID { panic("no more UIDs") }

// TestAPanicCostsOneFrameworkAWhile, and after that it goes on if the fault is gone.
func TestAPanicCostsOneFrameworkAWhile(t *testing.T) {
	w := newWorld(t, framework(1))
	w.fill()
	w.controller.entropy = faultyEntropy{w}
	if err := w.controller.syncSafely(t.Context(), key); err == nil || !strings.Contains(err.Error(), "no more UIDs") {
		t.Fatalf("the error is %v, want the panic", err)
	}
	if event := <-w.recorder.Events; !strings.Contains(event, reasonPanicked) {
		t.Errorf("the user is told %q, want %s", event, reasonPanicked)
	}
	w.controller.entropy = w
	if err := w.controller.syncSafely(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	if w.stored() != nil {
		t.Error("the Framework was synced again at once")
	}
	w.clock.SetTime(w.clock.Now().Add(pacing.MaxBackoff))
	if err := w.controller.syncSafely(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	if w.stored() == nil {
		t.Errorf("the Framework was not synced again after %v", pacing.MaxBackoff)
	}
}
