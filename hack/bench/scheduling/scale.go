// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/hack/bench/harness"
	"github.com/lockstep-k8s/lockstep/hack/bench/scheduling/objects"
)

const (
	// hugeNodes is how many nodes the cases have that need no real API server.
	hugeNodes = 20_000
	// mostNodes is how many nodes the largest clusters have.
	mostNodes = 130_000
	// part is how many of a hundred thousand Pods kube-scheduler places. It would take
	// minutes for all of them; what it takes for the first ones is multiplied.
	part = 3000
	// few is how many ordinary Pods make the time that a single decision may take.
	few = 200
	// shippedGOGC is with which GOGC lockstep-scheduler runs by default.
	shippedGOGC = "200"
)

// contender is a scheduler with what it is measured on, in a process of its own on a stub
// of an API server.
type contender struct {
	of    scheduler
	scene objects.Scene
	// bindings is after how many bindings to end, 0 for all Pods.
	bindings int
	// told ends when a gang is told that it has no place.
	told bool
	// cold measures from before there is a scheduler.
	cold bool
}

// decide measures how long it takes until all is decided, and how much
// memory the process had at most, in MiB.
func (c contender) decide(ctx context.Context, b *harness.Bench) (took objects.Took, memory float64, err error) {
	scene, err := json.Marshal(c.scene)
	if err != nil {
		return took, 0, fmt.Errorf("encoding a scene: %w", err)
	}
	work := c.scene.Work
	cmd := exec.CommandContext(ctx, "scheduling-alone", "-scene", string(scene), "-scheduler-name", work.Scheduler,
		"-pods", strconv.Itoa(work.Total()), "-bindings", strconv.Itoa(c.bindings),
		"-gangs="+strconv.FormatBool(c.of == lockstep), "-told="+strconv.FormatBool(c.told), "-cold="+strconv.FormatBool(c.cold))
	if c.of == lockstep {
		cmd.Env = append(os.Environ(), "GOGC="+shippedGOGC)
	}
	if took, err = measured(cmd); err != nil {
		return took, 0, err
	}
	if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		memory = float64(usage.Maxrss) / (1 << 10) // of KiB
	}
	b.Logf("%s: decided in %.3f s with %.0f MiB, the first with %.3f s of CPU", c.of.program, took.Seconds, memory, took.FirstCPU)
	return took, memory, nil
}

// measured runs scheduling-alone.
func measured(cmd *exec.Cmd) (took objects.Took, err error) {
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return took, fmt.Errorf("scheduling-alone: %w: %s", err, stderr.String())
	}
	if err := json.Unmarshal(out, &took); err != nil {
		return took, fmt.Errorf("scheduling-alone: %w", err)
	}
	return took, nil
}

// hugeCluster measures gangs of a hundred thousand Pods in all on a huge cluster, against
// kube-scheduler for the same Pods.
func hugeCluster(gangs, size int, ratioBar, secondsBar float64) func(context.Context, *harness.Bench) error {
	return func(ctx context.Context, b *harness.Bench) error {
		scene := objects.Scene{Nodes: hugeNodes, Work: objects.Work{Scheduler: lockstep.schedulerName, Gangs: gangs, Size: size, CPU: "1"}}
		all := float64(scene.Work.Total())
		var plainTook, gangTook, memory times
		for range b.Rounds {
			took, _, err := contender{of: plain, scene: scene, bindings: part}.decide(ctx, b)
			if err != nil {
				return err
			}
			plainTook = append(plainTook, took.Seconds*all/part)
			took, most, err := contender{of: lockstep, scene: scene}.decide(ctx, b)
			if err != nil {
				return err
			}
			gangTook, memory = append(gangTook, took.Seconds), append(memory, most)
		}
		b.Report(ratio("scheduling alone", gangTook, plainTook, fmt.Sprintf("kube-scheduler, from %d of the Pods", part), harness.AtMost(ratioBar)))
		b.Report(bounded("scheduling alone", gangTook, secondsBar))
		b.Report(harness.Figure{What: "memory, at most", Value: memory.median(), Unit: "MiB", Bar: harness.AtMost(4096)})
		return nil
	}
}

// hugest measures gangs of all sizes on a cluster of the largest size, against gangs of a thousand on a huge one.
func hugest(ctx context.Context, b *harness.Bench) error {
	hundred := contender{of: lockstep, scene: objects.Scene{Nodes: hugeNodes, Work: objects.Work{Scheduler: lockstep.schedulerName, Gangs: 100, Size: 1000, CPU: "1"}}}
	// 1536 gangs of 8, 768 of 16, and so on, up to one of 8192.
	all := contender{of: lockstep, scene: objects.Scene{Nodes: mostNodes, Work: objects.Work{Scheduler: lockstep.schedulerName, Gangs: 1536, Size: 8, Doublings: 10, CPU: "1"}}}
	var hundredTook, allTook, first, memory times
	for range b.Rounds {
		took, _, err := hundred.decide(ctx, b)
		if err != nil {
			return err
		}
		hundredTook = append(hundredTook, took.Seconds)
		took, most, err := all.decide(ctx, b)
		if err != nil {
			return err
		}
		allTook, first, memory = append(allTook, took.Seconds), append(first, took.FirstCPU), append(memory, most)
	}
	b.Report(ratio("scheduling alone", allTook, hundredTook, "100 gangs of 1000 on 20,000 nodes", harness.AtMost(6)))
	b.Report(bounded("processor time until the first binding", first, 1))
	b.Report(harness.Figure{What: "memory, at most", Value: memory.median(), Unit: "MiB", Bar: harness.AtMost(14 << 10)})
	return nil
}

// start measures from before there is a scheduler to its first binding, with a hundred thousand Pods that run and a
// thousand that wait, against kube-scheduler.
func start(ctx context.Context, b *harness.Bench) error {
	const running, size = 100_000, 1000
	scene := func(work objects.Work) objects.Scene {
		return objects.Scene{Nodes: hugeNodes, Running: running, Work: work}
	}
	var plainTook, gangTook times
	for range b.Rounds {
		took, _, err := contender{of: plain, scene: scene(pods(running+size, plain)), bindings: 1, cold: true}.decide(ctx, b)
		if err != nil {
			return err
		}
		plainTook = append(plainTook, took.FirstCPU)
		took, _, err = contender{of: lockstep, scene: scene(objects.Work{Scheduler: lockstep.schedulerName, Gangs: running/size + 1, Size: size, CPU: "1"}),
			bindings: 1, cold: true}.decide(ctx, b)
		if err != nil {
			return err
		}
		gangTook = append(gangTook, took.FirstCPU)
	}
	b.Report(ratio("processor time from the start to the first binding", gangTook, plainTook, "kube-scheduler", harness.AtMost(2)))
	return nil
}

// oneDecision measures a single gang against the time in which kube-scheduler places a few
// ordinary Pods on the same nodes.
func oneDecision(what string, scene objects.Scene, told bool) func(context.Context, *harness.Bench) error {
	return func(ctx context.Context, b *harness.Bench) error {
		ordinary := scene
		ordinary.Work = pods(few, plain)
		var plainTook, gangTook times
		for range b.Rounds {
			took, _, err := contender{of: plain, scene: ordinary}.decide(ctx, b)
			if err != nil {
				return err
			}
			plainTook = append(plainTook, took.Seconds)
			if took, _, err = (contender{of: lockstep, scene: scene, told: told}).decide(ctx, b); err != nil {
				return err
			}
			gangTook = append(gangTook, took.Seconds)
		}
		b.Report(ratio(what, gangTook, plainTook, fmt.Sprintf("kube-scheduler for %d ordinary Pods", few), harness.AtMost(1)))
		b.Report(bounded(what, gangTook, 1))
		return nil
	}
}

// unsatisfiable is a gang of which each member takes a node and all are to be in one rack,
// which has fewer nodes.
func unsatisfiable() objects.Scene {
	work := gang(1000)
	work.CPU, work.Rack = objects.NodeCPU, schedulingv1alpha1.TopologyRequired
	return objects.Scene{Nodes: hugeNodes, Work: work}
}

// preferred is a gang of which each member takes a node, on just as many nodes in racks
// of sixteen, of which it is to use as few as possible.
func preferred() objects.Scene {
	work := gang(512)
	work.CPU, work.Rack = objects.NodeCPU, schedulingv1alpha1.TopologyPreferred
	return objects.Scene{Nodes: 512, NodesPerRack: 16, Work: work}
}
