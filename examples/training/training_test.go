// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"math"
	"net"
	"strings"
	"sync"
	"testing"
)

// startRing runs work as every worker of a ring on this host, and returns their
// errors.
func startRing(t *testing.T, size int, work func(r *ring) error) []error {
	t.Helper()
	ports := freePorts(t, size)
	peer := func(rank int) (string, int) { return "127.0.0.1", ports[rank] }
	errs := make([]error, size)
	var group sync.WaitGroup
	for rank := range size {
		group.Go(func() {
			r, err := join(t.Context(), rank, size, peer)
			if err != nil {
				errs[rank] = err
				return
			}
			defer r.Close()
			errs[rank] = work(r)
		})
	}
	group.Wait()
	return errs
}

func freePorts(t *testing.T, n int) []int {
	t.Helper()
	ports := make([]int, n)
	for i := range ports {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close()
		ports[i] = listener.Addr().(*net.TCPAddr).Port
	}
	return ports
}

func TestAllReduceSumsOverAllWorkers(t *testing.T) {
	for _, size := range []int{1, 2, 3, 5} {
		const length = 7 // divided by none of the sizes but 1
		errs := startRing(t, size, func(r *ring) error {
			v := make([]float64, length)
			for i := range v {
				v[i] = float64((r.rank + 1) * (i + 1))
			}
			if err := r.AllReduce(v); err != nil {
				return err
			}
			for i := range v {
				want := float64(size*(size+1)/2) * float64(i+1)
				if v[i] != want {
					t.Errorf("worker %d of %d: element %d is %v, want %v", r.rank, size, i, v[i], want)
				}
			}
			return nil
		})
		if err := errors.Join(errs...); err != nil {
			t.Errorf("ring of %d: %v", size, err)
		}
	}
}

func TestAllReduceFailsWhenAPeerIsLost(t *testing.T) {
	errs := startRing(t, 3, func(r *ring) error {
		if r.rank == 1 {
			return nil // leaves, and hangs up
		}
		return r.AllReduce(make([]float64, 1<<16))
	})
	if errs[0] == nil && errs[2] == nil {
		t.Error("no worker noticed that worker 1 was gone")
	}
}

func TestWorkersLearnTheSameModel(t *testing.T) {
	const size, samples, steps = 3, 300, 1000
	losses := make([]float64, size)
	accuracy := make([]float64, size)
	errs := startRing(t, size, func(r *ring) error {
		data := spiral(samples, int64(r.rank))
		m := newModel(1)
		for range steps {
			gradient, loss, correct := m.gradient(data)
			sum := append(gradient, loss, correct)
			if err := r.AllReduce(sum); err != nil {
				return err
			}
			m.step(sum[:len(gradient)], size*samples)
			losses[r.rank] = sum[len(sum)-2] / (size * samples)
			accuracy[r.rank] = sum[len(sum)-1] / (size * samples)
		}
		return nil
	})
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	if accuracy[0] < 0.95 || math.IsNaN(losses[0]) {
		t.Errorf("after %d steps loss is %.3f and accuracy %.3f, want at least 0.95", steps, losses[0], accuracy[0])
	}
	for rank := range size {
		if losses[rank] != losses[0] {
			t.Errorf("worker %d has loss %v, worker 0 has %v: they train different models", rank, losses[rank], losses[0])
		}
	}
}

func TestSettings(t *testing.T) {
	env := map[string]string{
		"FC_TASK_INDEX": "2", "FC_FRAMEWORK_ATTEMPT_ID": "1", "FC_TASKROLE_NAME": "worker",
		"FC_FRAMEWORK_NAME": "train", "FC_FRAMEWORK_NAMESPACE": "team",
	}
	s, err := parse([]string{"-workers", "4"}, func(key string) string { return env[key] })
	if err != nil {
		t.Fatal(err)
	}
	if s.rank != 2 || s.attempt != 1 {
		t.Errorf("rank %d, attempt %d, want 2 and 1", s.rank, s.attempt)
	}
	host, port := peersInFramework(func(key string) string { return env[key] }, 29500)(3)
	if host != "worker-3.train.team.svc.cluster.local" || port != 29500 {
		t.Errorf("peer 3 is %s:%d, want worker-3.train.team.svc.cluster.local:29500", host, port)
	}

	for name, args := range map[string][]string{
		"index beyond the workers": {"-workers", "2"},
		"no steps":                 {"-workers", "4", "-steps", "0"},
	} {
		if _, err := parse(args, func(key string) string { return env[key] }); !errors.Is(err, errPermanent) {
			t.Errorf("%s: error %v, want one that no retry mends", name, err)
		}
	}
	_, err = parse(nil, func(string) string { return "" })
	if err == nil || !strings.Contains(err.Error(), "FC_TASK_INDEX") {
		t.Errorf("outside a Framework: error %v, want one that names FC_TASK_INDEX", err)
	}
}
