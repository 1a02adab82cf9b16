// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Command alone measures how long a scheduler takes to decide where Pods
// go, and nothing else. It fills the scheduler's cache and queue, then lets it run; a
// binding is counted instead of written, and events are dropped. It prints, as JSON, the seconds
// from the start of the run to the last binding, or with -told until a gang is told why
// it has no place, and the processor time until the first binding. With -cold it measures from
// before there is a scheduler.
//
// The objects are those of a real API server, or with -scene of a stub of one, which
// has more of them than a real one could make in minutes.
//
// One process is one measurement, so that no run inherits another's heap.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	goruntime "runtime"
	"runtime/pprof"
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

	"github.com/lockstep-k8s/lockstep/hack/bench/scheduling/objects"
	"github.com/lockstep-k8s/lockstep/internal/cputime"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/kube"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/status"
)

// limit bounds the whole: filling the queue and scheduling.
const limit = 8 * time.Minute

// options say what to measure.
type options struct {
	kubeconfig, scene string
	name              string
	pods, bindings    int
	gangs, told, cold bool
	profile           string
}

func main() {
	var o options
	flag.StringVar(&o.kubeconfig, "kubeconfig", "", "the cluster's kubeconfig; this or -scene is required")
	flag.StringVar(&o.scene, "scene", "", "the cluster as JSON of an objects.Scene")
	flag.StringVar(&o.name, "scheduler-name", "", "schedulerName of the Pods; required")
	flag.IntVar(&o.pods, "pods", 0, "how many Pods there are to schedule; required")
	flag.IntVar(&o.bindings, "bindings", 0, "after how many bindings to end, 0 for all Pods")
	flag.BoolVar(&o.gangs, "gangs", false, "enable the plugin Coscheduling")
	flag.BoolVar(&o.told, "told", false, "end when a PodGroup is told that it has no place; needs -scene")
	flag.BoolVar(&o.cold, "cold", false, "measure from before the scheduler is made; needs -scene")
	flag.StringVar(&o.profile, "profile", "", "file to write a profile of what the processor did to")
	flag.Parse()
	took, err := run(o)
	if err != nil {
		fmt.Fprintf(os.Stderr, "alone: %v\n", err)
		os.Exit(1)
	}
	if err := json.NewEncoder(os.Stdout).Encode(took); err != nil {
		fmt.Fprintf(os.Stderr, "alone: %v\n", err)
		os.Exit(1)
	}
}

func run(o options) (took objects.Took, err error) {
	if (o.kubeconfig == "") == (o.scene == "") || o.name == "" || o.pods < 1 {
		return took, errors.New("-scheduler-name, -pods (at least 1) and one of -kubeconfig and -scene are required")
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	config, told, err := o.config()
	if err != nil {
		return took, err
	}
	config.QPS = -1
	all := newCount(cmp.Or(o.bindings, o.pods))
	var began moment
	var end func() error
	if o.cold {
		if began, end, err = o.begin(); err != nil {
			return took, err
		}
	}
	sched, err := newScheduler(ctx, config, o.name, o.gangs, all)
	if err != nil {
		return took, err
	}
	if !o.cold {
		if err := filled(ctx, sched, o.pods, o.gangs); err != nil {
			return took, err
		}
		if err := calm(ctx); err != nil {
			return took, err
		}
		if began, end, err = o.begin(); err != nil {
			return took, err
		}
	}
	defer func() { err = errors.Join(err, end()) }()
	go sched.Run(ctx)
	if o.told {
		all.reached = told
	}
	select {
	case last := <-all.reached:
		took.Seconds = last.Sub(began.at).Seconds()
		if !o.told {
			took.FirstCPU = (<-all.first - began.used).Seconds()
		}
		return took, nil
	case <-ctx.Done():
		return took, fmt.Errorf("%d of %d Pods were bound: %w", all.n.Load(), o.pods, ctx.Err())
	}
}

// moment is when what is measured begins, and how much processor time was used before.
type moment struct {
	at   time.Time
	used time.Duration
}

// begin begins to measure, and returns what ends it.
func (o options) begin() (now moment, end func() error, err error) {
	end = func() error { return nil }
	if o.profile != "" {
		if end, err = profile(o.profile); err != nil {
			return now, nil, err
		}
	}
	now.used, err = cputime.Used()
	now.at = time.Now()
	return now, end, err
}

// config is how the cluster is reached. told is sent when a PodGroup of a scene is told
// that it has no place.
func (o options) config() (config *rest.Config, told chan time.Time, err error) {
	if o.kubeconfig != "" {
		config, err = clientcmd.BuildConfigFromFlags("", o.kubeconfig)
		return config, nil, err
	}
	var scene objects.Scene
	if err := json.Unmarshal([]byte(o.scene), &scene); err != nil {
		return nil, nil, fmt.Errorf("decoding -scene: %w", err)
	}
	server, err := newStill(scene)
	if err != nil {
		return nil, nil, err
	}
	return &rest.Config{Host: "http://still.invalid", Transport: server}, server.told, nil
}

// profile begins to write a profile.
func profile(path string) (end func() error, err error) {
	file, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(file); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return func() error {
		pprof.StopCPUProfile()
		return file.Close()
	}, nil
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
	if gangs {
		informers = kube.NewInformerFactory(client, nil)
	}
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
		if err := coscheduling.Attach(ctx, inside, nil, status.ServedRegistry(), func(string) {}); err != nil {
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

// calm waits until all informers' handlers have done their work, which is when the
// process uses no processor time, and collects the garbage of it.
func calm(ctx context.Context) error {
	goruntime.GC()
	const while, little = 200 * time.Millisecond, 10 * time.Millisecond
	before := time.Duration(-1)
	err := wait.PollUntilContextCancel(ctx, while, true, func(context.Context) (bool, error) {
		now, err := cputime.Used()
		if err != nil {
			return false, err
		}
		idle := before >= 0 && now-before < little
		before = now
		return idle, nil
	})
	if err != nil {
		return fmt.Errorf("waiting until the scheduler is idle: %w", err)
	}
	return nil
}
