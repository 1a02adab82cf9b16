// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Command training is one worker of a data-parallel training job: the job that
// Lockstep exists for, as small as it can be.
//
// Every worker makes its own share of the data, computes the gradient of the
// same small model on it, exchanges gradients with its peers in a ring over
// TCP, and takes the same step as they do. No worker gets anywhere without all
// the others, so the job must start whole or not at all.
//
// It learns who it is from the environment that Lockstep injects, and finds its
// peers by the names that a headless Service gives their Pods.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"strconv"
	"time"
)

// Exit codes that Lockstep classifies; see docs/completion.md.
const (
	exitTransient = 200 // worth another attempt
	exitPermanent = 210 // bound to fail again
)

// errPermanent marks what another attempt can't mend: wrong settings.
var errPermanent = errors.New("wrong settings")

// settings are what the user chooses and what Lockstep injects.
type settings struct {
	rank, workers int
	attempt       int
	peer          func(rank int) (host string, port int)
	steps         int
	samples       int
	failAtStep    int
}

func main() {
	log.SetFlags(0)
	s, err := parse(os.Args[1:], os.Getenv)
	if err == nil {
		err = train(context.Background(), s)
	}
	if errors.Is(err, errPermanent) {
		log.Print(err)
		os.Exit(exitPermanent)
	}
	if err != nil {
		// A lost peer is being replaced, or the whole attempt is.
		log.Print(err)
		os.Exit(exitTransient)
	}
}

func parse(args []string, getenv func(string) string) (settings, error) {
	flags := flag.NewFlagSet("training", flag.ContinueOnError)
	workers := flags.Int("workers", 1, "how many workers there are, at least 1")
	port := flags.Int("port", 29500, "TCP port on which a worker listens for its peer")
	steps := flags.Int("steps", 600, "how many steps to train, at least 1")
	samples := flags.Int("samples", 4000, "how many samples each worker makes, at least 1")
	failAtStep := flags.Int("fail-at-step", 0, "in the first attempt of the Framework, the last worker exits with code 200 at this step; 0 never")
	if err := flags.Parse(args); err != nil {
		return settings{}, fmt.Errorf("%w: %w", errPermanent, err)
	}
	rank, err := strconv.Atoi(getenv("FC_TASK_INDEX"))
	if err != nil {
		return settings{}, fmt.Errorf("%w: FC_TASK_INDEX is %q, not a number: run this as a task of a Framework", errPermanent, getenv("FC_TASK_INDEX"))
	}
	attempt, err := strconv.Atoi(getenv("FC_FRAMEWORK_ATTEMPT_ID"))
	if err != nil {
		return settings{}, fmt.Errorf("%w: FC_FRAMEWORK_ATTEMPT_ID is %q, not a number: run this as a task of a Framework", errPermanent, getenv("FC_FRAMEWORK_ATTEMPT_ID"))
	}
	switch {
	case *workers < 1 || *steps < 1 || *samples < 1:
		return settings{}, fmt.Errorf("%w: -workers, -steps and -samples must be at least 1", errPermanent)
	case rank < 0 || rank >= *workers:
		return settings{}, fmt.Errorf("%w: FC_TASK_INDEX is %d, but there are %d workers", errPermanent, rank, *workers)
	}
	domain := getenv("FC_FRAMEWORK_NAME") + "." + getenv("FC_FRAMEWORK_NAMESPACE") + ".svc.cluster.local"
	role := getenv("FC_TASKROLE_NAME")
	return settings{
		rank: rank, workers: *workers, attempt: attempt, steps: *steps, samples: *samples, failAtStep: *failAtStep,
		peer: func(rank int) (string, int) { return fmt.Sprintf("%s-%d.%s", role, rank, domain), *port },
	}, nil
}

// train runs the whole job of one worker.
func train(ctx context.Context, s settings) error {
	log.Printf("worker %d of %d, attempt %d: looking for peers", s.rank, s.workers, s.attempt)
	r, err := join(ctx, s.rank, s.workers, s.peer)
	if err != nil {
		return fmt.Errorf("joining the ring: %w", err)
	}
	defer r.Close()
	log.Printf("worker %d of %d, attempt %d: all peers found", s.rank, s.workers, s.attempt)

	data := spiral(s.samples, int64(s.rank))
	m := newModel(1) // the same seed everywhere: all workers hold the same model
	began := time.Now()
	for step := 1; step <= s.steps; step++ {
		if s.attempt == 0 && step == s.failAtStep && s.rank == s.workers-1 {
			log.Printf("worker %d, attempt 0, step %d: failing on purpose with exit code %d", s.rank, step, exitTransient)
			os.Exit(exitTransient)
		}
		gradient, loss, correct := m.gradient(data)
		// The gradient travels with the two figures that are printed.
		sum := append(gradient, loss, correct)
		if err := r.AllReduce(sum); err != nil {
			return fmt.Errorf("exchanging gradients in step %d: %w", step, err)
		}
		n := float64(s.workers * s.samples)
		m.step(sum[:len(gradient)], n)
		if s.rank == 0 && (step%(max(s.steps/10, 1)) == 0 || step == 1) {
			log.Printf("attempt %d step %4d/%d loss %.4f accuracy %.1f%%", s.attempt, step, s.steps, sum[len(sum)-2]/n, 100*sum[len(sum)-1]/n)
		}
	}
	log.Printf("worker %d, attempt %d: trained %d steps in %.1fs", s.rank, s.attempt, s.steps, time.Since(began).Seconds())
	return nil
}
