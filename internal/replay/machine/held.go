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

// held adds up how many units are kept free for gangs, times for how many seconds, by the reason for the reservation. It
// is the scheduler's registry of metrics, and keeps one metric: what is reserved.
type held struct {
	reserved    metrics.KubeRegistry
	known       bool // the scheduler has the metric
	unitSeconds map[string]float64
}

func newHeld() *held {
	return &held{reserved: metrics.NewKubeRegistry(), unitSeconds: make(map[string]float64)}
}

// Register implements status.Registry.
func (h *held) Register(metrics.Registerable) error { return nil }

// CustomRegister implements status.Registry.
func (h *held) CustomRegister(c metrics.StableCollector) error {
	descriptions := make(chan *metrics.Desc, 1)
	c.DescribeWithStability(descriptions)
	if strings.Contains((<-descriptions).String(), reservedMetric) {
		h.known = true
		return h.reserved.CustomRegister(c)
	}
	return nil
}

const reservedMetric = "lockstep_scheduler_reserved_resources"

// watch asks until a time how much is reserved, or until ctx ends. free returns how many units are free.
func (h *held) watch(ctx context.Context, until time.Time, free func() int) error {
	if !h.known {
		return fmt.Errorf("the scheduler has no metric %s", reservedMetric)
	}
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
		if err := h.add(float64(free())); err != nil {
			return err
		}
	}
}

// add counts what is reserved now as reserved for heldEvery. The metric is as of the gang's last cycle, and Pods may
// have got nodes since, so no more counts than is free.
func (h *held) add(free float64) error {
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
				h.unitSeconds[labels["reason"]] += min(free, sample.GetGauge().GetValue()) * heldEvery.Seconds()
			}
		}
	}
	return nil
}
