// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
)

// listenLocally listens on a free port of this host.
func listenLocally(t *testing.T) (net.Listener, string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	return listener, listener.Addr().String()
}

// sumRanks sums, over all workers, a vector that is the rank of each, in a star of servers. It
// returns the sums and ranks that the workers have seen.
func sumRanks(t *testing.T, servers int, ranks ...int) (sums [][]float64, seen []int) {
	t.Helper()
	var addresses []string
	var group sync.WaitGroup
	for range servers {
		listener, address := listenLocally(t)
		addresses = append(addresses, address)
		group.Go(func() {
			if err := serveStar(t.Context(), listener, len(ranks)); err != nil {
				t.Error(err)
			}
		})
	}
	sums, seen = make([][]float64, len(ranks)), make([]int, len(ranks))
	for i, rank := range ranks {
		group.Go(func() {
			s, err := joinStar(t.Context(), addresses, rank)
			if err != nil {
				t.Error(err)
				return
			}
			defer s.Close()
			sums[i], seen[i] = slices.Repeat([]float64{float64(s.Rank())}, 5), s.Rank()
			for range 3 {
				if err := s.AllReduce(sums[i]); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	return sums, seen
}

func TestServersSumWhatAllWorkersSend(t *testing.T) {
	for _, servers := range []int{1, 2, 3} {
		sums, _ := sumRanks(t, servers, 0, 1, 2)
		for rank, sum := range sums {
			if want := slices.Repeat([]float64{27}, 5); !slices.Equal(sum, want) {
				t.Errorf("of %d servers worker %d has %v, want %v", servers, rank, sum, want)
			}
		}
	}
}

func TestWorkersWithoutARankGetOne(t *testing.T) {
	_, seen := sumRanks(t, 1, -1, -1, -1)
	if slices.Sort(seen); !slices.Equal(seen, []int{0, 1, 2}) {
		t.Errorf("the ranks are %v", seen)
	}
}

func TestAServerSaysThatAWorkerIsLost(t *testing.T) {
	listener, address := listenLocally(t)
	ended := make(chan error, 1)
	go func() { ended <- serveStar(t.Context(), listener, 2) }()
	var group sync.WaitGroup
	for rank := range 2 {
		group.Go(func() {
			s, err := joinStar(t.Context(), []string{address}, rank)
			if err != nil {
				t.Error(err)
				return
			}
			defer s.Close()
			if rank == 0 {
				if err := s.AllReduce([]float64{1}); err == nil {
					t.Error("worker 0 did not notice")
				}
			}
		})
	}
	group.Wait()
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "worker 1") {
		t.Errorf("the server says %v", err)
	}
}

func TestWhoIsMissingIsTold(t *testing.T) {
	listener, _ := listenLocally(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := serveStar(ctx, listener, 2); err == nil || !strings.Contains(err.Error(), "waiting for 2 workers") {
		t.Errorf("the server says %v", err)
	}
}

func TestPlaces(t *testing.T) {
	const config = `{"cluster":{"chief":["j-chief-0.n.svc:2222"],"ps":["j-ps-0.n.svc:2222"],"worker":["j-worker-0.n.svc:2222","j-worker-1.n.svc:2222"]},"task":{"type":"TYPE","index":INDEX},"environment":"cloud"}`
	task := func(kind, index string) map[string]string {
		return map[string]string{"TF_CONFIG": strings.NewReplacer("TYPE", kind, "INDEX", index).Replace(config)}
	}
	torch := func(rank, size, nodes string) map[string]string {
		return map[string]string{"MASTER_ADDR": "m", "MASTER_PORT": "1", "PET_MASTER_ADDR": "m", "RANK": rank, "PET_NODE_RANK": rank, "WORLD_SIZE": size, "PET_NNODES": nodes}
	}
	hosts := func(rest ...string) []string {
		return append([]string{"--ps_hosts=a:1,b:2", "--worker_hosts=c:3,d:4"}, rest...)
	}
	for name, tc := range map[string]struct {
		args          []string
		env           map[string]string
		rank, workers int
		serves        bool
		wrong         string
	}{
		"a worker by arguments":              {args: hosts("--job_name=worker", "--task_index=1"), rank: 1, workers: 2},
		"a parameter server by arguments":    {args: hosts("--job_name=ps", "--task_index=1"), serves: true},
		"more arguments than hosts":          {args: hosts("--job_name=ps", "--task_index=2"), wrong: "there are 2"},
		"another job":                        {args: hosts("--job_name=chief"), wrong: `"chief"`},
		"no parameter servers":               {args: []string{"--ps_hosts=", "--worker_hosts=c:3", "--job_name=worker"}, wrong: "parameter server"},
		"a chief by TF_CONFIG":               {env: task("chief", "0"), rank: 0, workers: 3},
		"a worker behind a chief":            {env: task("worker", "1"), rank: 2, workers: 3},
		"a parameter server by TF_CONFIG":    {env: task("ps", "0"), serves: true},
		"a TF_CONFIG that can't be read":     {env: map[string]string{"TF_CONFIG": "{"}, wrong: "TF_CONFIG"},
		"a rank of PyTorch":                  {env: torch("2", "3", "3"), rank: 2, workers: 3},
		"what torchrun would see is other":   {env: torch("2", "3", "4"), wrong: "PET_NNODES"},
		"a rank above all":                   {env: torch("3", "3", "3"), wrong: "RANK is 3"},
		"an elastic worker":                  {env: map[string]string{"PET_RDZV_ENDPOINT": "w:1", "PET_NNODES": "1:3"}, rank: -1, workers: 3},
		"a rank of XGBoost":                  {env: map[string]string{"MASTER_ADDR": "m", "MASTER_PORT": "1", "RANK": "2", "WORLD_SIZE": "3", "WORKER_ADDRS": "a,b"}, rank: 2, workers: 3},
		"a master of XGBoost alone":          {env: map[string]string{"MASTER_ADDR": "m", "MASTER_PORT": "1", "RANK": "0", "WORLD_SIZE": "1"}, rank: 0, workers: 1},
		"too few workers of XGBoost":         {env: map[string]string{"MASTER_ADDR": "m", "MASTER_PORT": "1", "RANK": "2", "WORLD_SIZE": "3", "WORKER_ADDRS": "a"}, wrong: "WORKER_ADDRS"},
		"a process of JAX":                   {env: map[string]string{"COORDINATOR_ADDRESS": "w", "COORDINATOR_PORT": "1", "PROCESS_ID": "1", "NUM_PROCESSES": "2"}, rank: 1, workers: 2},
		"a process of JAX above all":         {env: map[string]string{"COORDINATOR_ADDRESS": "w", "COORDINATOR_PORT": "1", "PROCESS_ID": "2", "NUM_PROCESSES": "2"}, wrong: "PROCESS_ID is 2"},
		"a trainer of Paddle":                {env: map[string]string{"PADDLE_MASTER": "w:1", "PADDLE_NNODES": "2"}, rank: -1, workers: 2},
		"a meeting of Paddle without a port": {env: map[string]string{"PADDLE_MASTER": "w", "PADDLE_NNODES": "2"}, wrong: "PADDLE_MASTER"},
		"elastic without a number":           {env: map[string]string{"PET_RDZV_ENDPOINT": "w:1"}, wrong: "PET_NNODES"},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := parse(tc.args, func(key string) string { return tc.env[key] })
			if tc.wrong != "" {
				if !errors.Is(err, errPermanent) || !strings.Contains(err.Error(), tc.wrong) {
					t.Errorf("error %v, want one of %s that no retry mends", err, tc.wrong)
				}
				return
			}
			if err != nil || s.rank != tc.rank || s.workers != tc.workers || (s.serve != nil) != tc.serves {
				t.Errorf("got %+v (%v), want rank %d of %d, a server: %t", s.place, err, tc.rank, tc.workers, tc.serves)
			}
		})
	}
}
