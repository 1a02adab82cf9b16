// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/client-go/tools/clientcmd"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/internal/replay/live"
)

// liveOptions are the flags by which the workload is played on a cluster, too.
type liveOptions struct {
	speed, kubeconfig, scheduler, podGroups string
}

func (o *liveOptions) add(flags *pflag.FlagSet) {
	flags.StringVar(&o.speed, "live", "", "play the workload on a cluster, too, with simulated nodes of KWOK that are made for it; so many times faster than it was, such as 100x. Needs --kubeconfig")
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig of the cluster for --live: of an administrator, in a cluster for tests")
	flags.StringVar(&o.scheduler, "scheduler", "lockstep-scheduler", "with --live, the scheduler name of all Pods")
	flags.StringVar(&o.podGroups, "podgroups", schedulingv1alpha1.GroupName, "with --live, the API group of the PodGroups that the scheduler knows: "+strings.Join(live.Kinds(), ", "))
}

// parse returns what the flags say, nil without --live.
func (o *liveOptions) parse() (*live.Options, error) {
	if o.speed == "" {
		return nil, nil
	}
	speed, err := strconv.ParseFloat(strings.TrimSuffix(o.speed, "x"), 64)
	if err != nil || !(speed >= 1 && speed <= 100_000) {
		return nil, fmt.Errorf("--live is %q, and must be from 1x to 100000x", o.speed)
	}
	if !slices.Contains(live.Kinds(), o.podGroups) {
		return nil, fmt.Errorf("--podgroups is %q, and must be one of %s", o.podGroups, strings.Join(live.Kinds(), ", "))
	}
	if o.kubeconfig == "" {
		return nil, fmt.Errorf("--live needs --kubeconfig: it makes nodes in the cluster, so it takes no cluster that was not named")
	}
	config, err := clientcmd.BuildConfigFromFlags("", o.kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("--kubeconfig: %w", err)
	}
	return &live.Options{Name: "live", Config: config, SchedulerName: o.scheduler, PodGroups: o.podGroups, Speed: speed}, nil
}
