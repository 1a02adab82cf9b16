// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Command alone measures how long a scheduler takes to decide where so many Pods
// go, and nothing else. It fills the scheduler's cache and queue from a real API
// server, then lets it run; a binding is counted instead of written, and events
// are dropped. It prints the seconds from the start of the run to the last
// binding.
//
// One process is one measurement, so that no run inherits another's heap.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/events"
	"k8s.io/kubernetes/pkg/scheduler"
	kubeschedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	"k8s.io/kubernetes/pkg/scheduler/framework/runtime"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/kube"
)

// limit bounds the whole: filling the queue and scheduling.
const limit = 2 * time.Minute

func main() {
	kubeconfig := flag.String("kubeconfig", "", "the cluster's kubeconfig; required")
	name := flag.String("scheduler-name", "", "schedulerName of the Pods; required")
	pods := flag.Int("pods", 0, "how many Pods there are to schedule; required")
	gangs := flag.Bool("gangs", false, "enable the plugin Coscheduling")
	flag.Parse()
	took, err := run(*kubeconfig, *name, *pods, *gangs)
	if err != nil {
		fmt.Fprintf(os.Stderr, "alone: %v\n", err)
		os.Exit(1)
	}
	fmt.Println(took.Seconds())
}

func run(kubeconfig, name string, pods int, gangs bool) (time.Duration, error) {
	if kubeconfig == "" || name == "" || pods < 1 {
		return 0, errors.New("-kubeconfig, -scheduler-name and -pods (at least 1) are required")
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return 0, err
	}
	config.QPS = -1
	all := newCount(pods)
	sched, err := newScheduler(ctx, config, name, gangs, all)
	if err != nil {
		return 0, err
	}
	if err := filled(ctx, sched, pods, gangs); err != nil {
		return 0, err
	}
	start := time.Now()
	go sched.Run(ctx)
	select {
	case last := <-all.reached:
		return last.Sub(start), nil
	case <-ctx.Done():
		return 0, fmt.Errorf("%d of %d Pods were bound: %w", all.n.Load(), pods, ctx.Err())
	}
}

// newScheduler makes a scheduler with the default plugins, whose informers run.
func newScheduler(ctx context.Context, config *rest.Config, name string, gangs bool, all *count) (*scheduler.Scheduler, error) {
	protobuf := rest.CopyConfig(config)
	protobuf.ContentType = "application/vnd.kubernetes.protobuf"
	real, err := kubernetes.NewForConfig(protobuf)
	if err != nil {
		return nil, err
	}
	client := client{Interface: real, all: all}
	defaults, err := latest.Default()
	if err != nil {
		return nil, err
	}
	profile := &defaults.Profiles[0]
	profile.SchedulerName = name
	registry := runtime.Registry{}
	if gangs {
		profile.Plugins.MultiPoint.Enabled = append(profile.Plugins.MultiPoint.Enabled, kubeschedulerconfig.Plugin{Name: coscheduling.Name})
		registry[coscheduling.Name] = coscheduling.New
	}
	informers := scheduler.NewInformerFactory(client, 0, nil)
	sched, err := scheduler.New(ctx, client, informers, nil,
		func(string) events.EventRecorderLogger { return &events.FakeRecorder{} },
		scheduler.WithKubeConfig(protobuf),
		scheduler.WithProfiles(defaults.Profiles...),
		scheduler.WithFrameworkOutOfTreeRegistry(registry),
	)
	if err != nil {
		return nil, fmt.Errorf("making the scheduler: %w", err)
	}
	if gangs {
		inside, err := kube.Of(sched)
		if err != nil {
			return nil, err
		}
		if err := coscheduling.Attach(ctx, inside); err != nil {
			return nil, err
		}
	}
	informers.Start(ctx.Done())
	informers.WaitForCacheSync(ctx.Done())
	return sched, sched.WaitForHandlersSync(ctx)
}

// filled waits until all Pods are in the queue, and active unless they are
// members: a gang's leader is activated only when scheduling begins, which is
// then part of what is measured.
func filled(ctx context.Context, sched *scheduler.Scheduler, pods int, gangs bool) error {
	active := pods
	if gangs {
		active = 0
	}
	err := wait.PollUntilContextCancel(ctx, 20*time.Millisecond, true, func(context.Context) (bool, error) {
		pending, _ := sched.SchedulingQueue.PendingPods()
		return len(pending) == pods && len(sched.SchedulingQueue.PodsInActiveQ()) >= active, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for the scheduling queue to fill: %w", err)
	}
	return nil
}
