// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/component-base/metrics"
)

// heldEvery is how often it is asked how many units are reserved.
const heldEvery = time.Minute

// held adds up for how long units are kept free for gangs, by the reason for the reservation. It is the scheduler's
// registry of metrics, and keeps one metric: what is reserved now.
type held struct {
	reserved metrics.KubeRegistry
	times    map[string]time.Duration
}

func newHeld() *held {
	return &held{reserved: metrics.NewKubeRegistry(), times: make(map[string]time.Duration)}
}

// Register implements status.Registry.
func (h *held) Register(metrics.Registerable) error { return nil }

// CustomRegister implements status.Registry.
func (h *held) CustomRegister(c metrics.StableCollector) error {
	descriptions := make(chan *metrics.Desc, 1)
	c.DescribeWithStability(descriptions)
	if strings.Contains((<-descriptions).String(), reservedMetric) {
		return h.reserved.CustomRegister(c)
	}
	return nil
}

const reservedMetric = "lockstep_scheduler_reserved_resources"

// watch asks until a time how much is reserved, or until ctx ends.
func (h *held) watch(ctx context.Context, until time.Time) error {
	// Between two milliseconds nothing else happens, as requests take whole ones.
	time.Sleep(time.Until(time.Now().Truncate(time.Millisecond).Add(time.Millisecond / 2)))
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(heldEvery):
		}
		if time.Now().After(until) {
			return nil
		}
		if err := h.add(); err != nil {
			return err
		}
	}
}

// add counts what is reserved now as reserved for heldEvery.
func (h *held) add() error {
	families, err := h.reserved.Gather()
	if err != nil {
		return fmt.Errorf("asking what is reserved: %w", err)
	}
	for _, family := range families {
		for _, sample := range family.GetMetric() {
			labels := make(map[string]string)
			for _, label := range sample.GetLabel() {
				labels[label.GetName()] = label.GetValue()
			}
			if labels["resource"] == string(unit) {
				h.times[labels["reason"]] += time.Duration(sample.GetGauge().GetValue()) * heldEvery
			}
		}
	}
	return nil
}
