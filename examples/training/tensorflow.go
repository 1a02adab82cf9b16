// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"strings"
)

// tensorFlowFlags are the arguments that a TFJob of v1alpha2 appends, as every program of
// distributed TensorFlow had them.
type tensorFlowFlags struct {
	servers, workers string
	job              string
	index            int
}

func (f *tensorFlowFlags) add(flags *flag.FlagSet) {
	flags.StringVar(&f.servers, "ps_hosts", "", "host:port of each parameter server of a TFJob, with commas")
	flags.StringVar(&f.workers, "worker_hosts", "", "host:port of each worker of a TFJob, with commas")
	flags.StringVar(&f.job, "job_name", "", "what this process of a TFJob is: ps or worker")
	flags.IntVar(&f.index, "task_index", 0, "which of them it is, from 0")
}

func (f *tensorFlowFlags) place() (place, error) {
	list := func(hosts string) []string {
		if hosts == "" {
			return nil
		}
		return strings.Split(hosts, ",")
	}
	return placeInCluster(list(f.servers), list(f.workers), f.job, f.index)
}

// placeByTFConfig is that of a process which TF_CONFIG tells of the others. A chief is the first
// of the workers.
func placeByTFConfig(config string) (place, error) {
	var c struct {
		Cluster map[string][]string
		Task    struct {
			Type  string
			Index int
		}
	}
	if err := json.Unmarshal([]byte(config), &c); err != nil {
		return place{}, fmt.Errorf("TF_CONFIG is %q: %w", config, err)
	}
	workers := append(c.Cluster["chief"], c.Cluster["master"]...)
	index, task := c.Task.Index, c.Task.Type
	switch task {
	case "worker":
		index += len(workers)
	case "chief", "master":
		task = "worker"
	}
	return placeInCluster(c.Cluster["ps"], append(workers, c.Cluster["worker"]...), task, index)
}

// placeInCluster is that of a parameter server or a worker. A real parameter server of TensorFlow
// never ends; this one does when all workers have left.
func placeInCluster(servers, workers []string, task string, index int) (place, error) {
	hosts := map[string][]string{"ps": servers, "worker": workers}[task]
	switch {
	case hosts == nil:
		return place{}, fmt.Errorf("the process is a %q, want a ps or a worker of %v and %v", task, servers, workers)
	case index < 0 || index >= len(hosts):
		return place{}, fmt.Errorf("the process is %s %d, but there are %d", task, index, len(hosts))
	case len(servers) == 0 || len(workers) == 0:
		return place{}, errors.New("want a parameter server and a worker at least")
	}
	if task == "worker" {
		return place{rank: index, workers: len(workers), join: func(ctx context.Context) (reducer, error) {
			return joinStar(ctx, servers, index)
		}}, nil
	}
	_, port, err := net.SplitHostPort(hosts[index])
	if err != nil {
		return place{}, fmt.Errorf("the address of %s %d: %w", task, index, err)
	}
	return place{serve: func(ctx context.Context) error {
		listener, err := listenOn(ctx, port)
		if err != nil {
			return err
		}
		log.Printf("parameter server %d: waiting for %d workers", index, len(workers))
		return serveStar(ctx, listener, len(workers))
	}}, nil
}
