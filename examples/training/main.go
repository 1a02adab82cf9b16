// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Command training is one process of a data-parallel training job: the job that
// Lockstep exists for, as small as it can be.
//
// Every worker makes its own share of the data, computes the gradient of the
// same small model on it, sums gradients with its peers, and takes the same step
// as they do. No worker gets anywhere without all the others, so the job must
// start whole or not at all.
//
// It learns who it is, and where the others are, from what the controller of its job
// tells it; and so it depends on that how gradients are summed:
//
//	a task of a Framework   in a ring of workers that find each other by the names
//	                        of their Pods
//	a Pod of a TFJob        by parameter servers, which --ps_hosts and the like, or
//	                        TF_CONFIG, tell of
//	a Pod of a PyTorchJob   by the process of rank 0, which MASTER_ADDR or
//	                        PET_RDZV_ENDPOINT tells of
//	a Pod of an XGBoostJob  by the master, which MASTER_ADDR tells of
//	a Pod of a PaddleJob    by the one that PADDLE_MASTER tells of
//	a Pod of a JAXJob       by worker 0, which COORDINATOR_ADDRESS tells of
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"time"
)

// Exit codes that Lockstep classifies; see docs/completion.md.
const (
	exitTransient = 200 // worth another attempt
	exitPermanent = 210 // bound to fail again
)

// errPermanent marks what another attempt can't mend: wrong settings.
var errPermanent = errors.New("wrong settings")

// settings are what the user chooses, and where the process stands.
type settings struct {
	place
	steps      int
	samples    int
	failAtStep int
}

func main() {
	log.SetFlags(0)
	s, err := parse(os.Args[1:], os.Getenv)
	if err == nil {
		err = s.run(context.Background())
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
	workers := flags.Int("workers", 1, "how many workers a Framework has, at least 1")
	port := flags.Int("port", 29500, "TCP port on which a worker of a Framework listens for its peer")
	steps := flags.Int("steps", 600, "how many steps to train, at least 1")
	samples := flags.Int("samples", 4000, "how many samples each worker makes, at least 1")
	failAtStep := flags.Int("fail-at-step", 0, "in the first attempt of the Framework, the last worker exits with code 200 at this step; 0 never")
	var cluster tensorFlowFlags
	cluster.add(flags)
	if err := flags.Parse(args); err != nil {
		return settings{}, fmt.Errorf("%w: %w", errPermanent, err)
	}
	var p place
	var err error
	switch {
	case cluster.job != "":
		p, err = cluster.place()
	case getenv("TF_CONFIG") != "":
		p, err = placeByTFConfig(getenv("TF_CONFIG"))
	case getenv("MASTER_ADDR") != "" && getenv("PET_NNODES") == "":
		p, err = placeInXGBoostJob(getenv)
	case getenv("COORDINATOR_ADDRESS") != "":
		p, err = placeInJAXJob(getenv)
	case getenv("PADDLE_MASTER") != "":
		p, err = placeInPaddleJob(getenv)
	case getenv("MASTER_ADDR") != "" || getenv("PET_RDZV_ENDPOINT") != "":
		p, err = placeInPyTorchJob(getenv)
	default:
		p, err = placeInFramework(getenv, *workers, *port)
	}
	if err == nil && (*steps < 1 || *samples < 1) {
		err = errors.New("-steps and -samples must be at least 1")
	}
	if err != nil {
		return settings{}, fmt.Errorf("%w: %w", errPermanent, err)
	}
	return settings{place: p, steps: *steps, samples: *samples, failAtStep: *failAtStep}, nil
}

// run does what the process is there for.
func (s settings) run(ctx context.Context) error {
	if s.serve != nil {
		return s.serve(ctx)
	}
	return train(ctx, s)
}

// train runs the whole job of one worker.
func train(ctx context.Context, s settings) error {
	log.Printf("%s, attempt %d: looking for peers", s.place, s.attempt)
	sums, err := s.join(ctx)
	if err != nil {
		return fmt.Errorf("joining the others: %w", err)
	}
	defer sums.Close()
	rank := sums.Rank()
	log.Printf("worker %d of %d, attempt %d: all peers found", rank, s.workers, s.attempt)

	data := spiral(s.samples, int64(rank))
	m := newModel(1) // the same seed everywhere: all workers hold the same model
	began := time.Now()
	for step := 1; step <= s.steps; step++ {
		if s.attempt == 0 && step == s.failAtStep && rank == s.workers-1 {
			log.Printf("worker %d, attempt 0, step %d: failing on purpose with exit code %d", rank, step, exitTransient)
			os.Exit(exitTransient)
		}
		gradient, loss, correct := m.gradient(data)
		// The gradient travels with the two figures that are printed.
		sum := append(gradient, loss, correct)
		if err := sums.AllReduce(sum); err != nil {
			return fmt.Errorf("exchanging gradients in step %d: %w", step, err)
		}
		n := float64(s.workers * s.samples)
		m.step(sum[:len(gradient)], n)
		if rank == 0 && (step%(max(s.steps/10, 1)) == 0 || step == 1) {
			log.Printf("attempt %d step %4d/%d loss %.4f accuracy %.1f%%", s.attempt, step, s.steps, sum[len(sum)-2]/n, 100*sum[len(sum)-1]/n)
		}
	}
	log.Printf("worker %d, attempt %d: trained %d steps in %.1fs", rank, s.attempt, s.steps, time.Since(began).Seconds())
	return nil
}
