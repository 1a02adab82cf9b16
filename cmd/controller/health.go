// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"k8s.io/klog/v2"

	"github.com/lockstep-k8s/lockstep/controller/pacing"
	"github.com/lockstep-k8s/lockstep/internal/fair"
)

// health is what /healthz, /livez and /readyz go by.
type health struct {
	// served says that the API server serves the CRDs.
	served atomic.Bool
	// leads is true while this replica does the work: it is the leader, or there is no election.
	leads atomic.Bool
	// heard is when this replica last read the lease, in Unix nanoseconds; 0 if it never has.
	heard atomic.Int64
	// loops are the sync loops, by name.
	loops map[string]loop
}

// loop is something that syncs objects.
type loop struct {
	// ready reports whether the caches are filled. Nil if nothing waits for that.
	ready func() bool
	// longest returns the sync that has been running for the longest time, and for how long.
	longest func() (fair.Key, time.Duration)
}

// hearLease notes that the lease was read.
func (h *health) hearLease() { h.heard.Store(time.Now().UnixNano()) }

// install serves the checks. /healthz and /livez fail if the process should be restarted. /readyz fails if the process
// neither works nor is ready to take over.
func (h *health) install(paths *http.ServeMux) {
	paths.HandleFunc("GET /healthz", answering(h.checkAlive))
	paths.HandleFunc("GET /livez", answering(h.checkAlive))
	paths.HandleFunc("GET /readyz", answering(h.checkReady))
}

// answering serves a check. Why it fails is in the log, too.
func answering(check func() error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := check(); err != nil {
			klog.FromContext(r.Context()).V(2).Info("A check of health failed", "check", r.URL.Path, "reason", err.Error())
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	}
}

// checkAlive returns an error if a sync has been running for so long that it will probably never end. Anybody may read
// the answer, so only the log names the object.
func (h *health) checkAlive() error {
	for name, loop := range h.loops {
		if key, running := loop.longest(); running > pacing.StuckAfter {
			klog.Background().Error(nil, "A sync hangs", "loop", name, "kind", key.Kind, "object", key.ObjectName, "for", running)
			return fmt.Errorf("a sync of %s has been running for %v", name, running.Round(time.Second))
		}
	}
	return nil
}

// checkReady returns an error unless this replica works with filled caches, or could become the leader at any time.
func (h *health) checkReady() error {
	if !h.served.Load() {
		return errors.New("the API server does not serve the CRDs of this version yet")
	}
	if !h.leads.Load() {
		heard := h.heard.Load()
		if heard == 0 {
			return errors.New("the lease was not read yet")
		}
		if silent := time.Since(time.Unix(0, heard)); silent > leaseDuration {
			return fmt.Errorf("the lease was last read %v ago", silent.Round(time.Second))
		}
		return nil
	}
	for name, loop := range h.loops {
		if loop.ready != nil && !loop.ready() {
			return fmt.Errorf("the caches of %s are not yet filled", name)
		}
	}
	return nil
}
