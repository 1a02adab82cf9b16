// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/dynamic"
	restclient "k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	configv1alpha1 "github.com/lockstep-k8s/lockstep/apis/config/v1alpha1"
	schedulingclient "github.com/lockstep-k8s/lockstep/client/clientset/versioned"
	"github.com/lockstep-k8s/lockstep/internal/informing"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/gangs"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/kube"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/place"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/status"
)

// Attach makes the plugin place gangs in the scheduler, and starts all that the plugin needs. Call it after the
// scheduler is made and before it runs. It returns an error if no profile enables the plugin. All that Attach starts
// ends with ctx. With leader election, a scheduler that does not lead only watches.
//
//   - namespaces are the namespaces in which PodGroups are read. Package narrow does the same for Pods.
//   - registry is where the plugin registers metrics: status.ServedRegistry, unless in tests.
//   - end is called with a reason when the program should exit and be restarted.
func Attach(ctx context.Context, sched *kube.Scheduler, namespaces informing.Namespaces, registry status.Registry, end func(reason string)) error {
	plugins := pluginsOf(sched.Profiles())
	if len(plugins) == 0 {
		return fmt.Errorf("no profile of the scheduler enables the plugin %s", Name)
	}
	groups, others, err := groupClients(anyPlugin(plugins).handle.KubeConfig())
	if err != nil {
		return err
	}
	return attach(ctx, sched, namespaces, plugins, groups, others, registry, end)
}

// pluginsOf returns the plugin's instances, by scheduler name.
func pluginsOf(profiles map[string]framework.Framework) map[string]*Coscheduling {
	plugins := make(map[string]*Coscheduling)
	for name, profile := range profiles {
		for _, plugin := range profile.PreEnqueuePlugins() {
			if c, ok := plugin.(*Coscheduling); ok {
				plugins[name] = c
			}
		}
	}
	return plugins
}

// attach connects the parts of the plugin. Informers and the wrapper around kube-scheduler's queue report events to
// Gangs, which decides which gang is next. The engine, whose nextEntity replaces the queue's Pop, runs the cycle of
// that gang.
func attach(ctx context.Context, sched *kube.Scheduler, namespaces informing.Namespaces, plugins map[string]*Coscheduling,
	groups schedulingclient.Interface, others dynamic.Interface, registry status.Registry, end func(reason string)) error {
	err := areOfOneMind(plugins)
	if err != nil {
		return err
	}
	apis := anyPlugin(plugins).args.PodGroupAPIs
	begun := make(chan struct{})
	handle := anyPlugin(plugins).handle
	pods, err := kube.PodsOf(handle.SharedInformerFactory())
	if err != nil {
		return err
	}
	e := &engine{
		ctx:      ctx,
		sched:    sched,
		plugins:  plugins,
		snapshot: sched.Snapshot(),
		classes:  classesOf(handle.SharedInformerFactory()),

		reservations: anyPlugin(plugins).args.Reservations,
		estimates:    *anyPlugin(plugins).args.Backfill.Estimates,
	}
	e.conflicts = newConflicts(func(schedulerName string) { e.metrics.ForeignBindings.WithLabelValues(schedulerName).Inc() })
	e.begin = sync.OnceFunc(func() {
		e.conflicts.begin()
		close(begun)
	})
	e.freer = &freer{sched: sched, plugins: plugins}
	links := &dialect.Links{}
	pods.KeepMembers(links.MayBeMember)
	e.gangs = gangs.New(gangs.Config{
		Rules:   gangs.Rules{Links: links, Serves: e.serves, Claims: claims(apis), ClassValue: e.classes.value, ClassKey: place.ClassKey},
		Now:     time.Now,
		Current: func(pod *corev1.Pod) *corev1.Pod { return inStore(pods.All().GetStore(), pod) },
	})
	e.links, e.cycles, e.reader = links, gangs.Cycles{Of: e.gangs}, gangs.Reader{Of: e.gangs}
	e.freer.gangs, e.freer.reader = e.gangs, e.reader
	reporter := status.NewReporter(e.reader, groups, others, handle.ClientSet(), handle.EventRecorder(), func() bool { return isBinding(plugins) })
	protectGangs(ctx, sched, e.gangs, e.serves)
	w := &watcher{ctx: ctx, sched: sched, handle: handle, gangs: e.gangs, pods: pods.All(), namespaces: namespaces, end: end, begun: begun,
		groups: groups, others: others, links: links, serves: e.serves}
	kinds := w.kinds(apis)
	if e.metrics, err = status.NewMetrics(registry, &status.Asked{
		Waiting: e.reader.CountWaiting, Foreign: e.reader.CountForeign,
		Reserved:     func() map[status.Kind]float64 { return reserved(&e.room) },
		PodGroupAPIs: func() []status.PodGroupAPI { return statesOf(kinds) },
	}); err != nil {
		return err
	}
	for _, c := range plugins {
		c.engine = e
	}
	e.pop = sched.InterceptNext(e.nextEntity)
	e.queue = kube.KeepOut(sched, e.places, heard(e.gangs, &e.room), func(pod *corev1.Pod) { kube.ForgetGone(sched, klog.FromContext(ctx), pod) })
	e.keeper = &keeper{room: &e.room, gangs: e.gangs, reader: e.reader, queue: e.queue, tells: reporter.Warn, metrics: e.metrics}
	e.evictor = &evictor{handle: handle, pods: pods.All().GetStore(), gangs: e.gangs, reader: e.reader, evictions: &e.evictions, metrics: e.metrics}
	e.binder = &binder{sched: sched, plugins: plugins, cycles: e.cycles, evictions: &e.evictions, metrics: e.metrics}
	e.waker = &waker{changes: gangs.Follower{Of: e.gangs}, cycles: e.cycles, wakeUps: e.queue.WakeUps, keeper: e.keeper, reporter: reporter, evictor: e.evictor, conflicts: e.conflicts, freer: e.freer}
	if err := e.classes.watch(e.gangs.Rerank); err != nil {
		return err
	}
	if err := watchMaintenance(handle.SharedInformerFactory(), &e.windows, handle.EventRecorder()); err != nil {
		return err
	}
	if err := watchNamespaces(handle.SharedInformerFactory(), e.gangs.NamespaceChanged); err != nil {
		return err
	}
	w.queue, w.implicit = e.queue, &grouping{watcher: w}
	if err := w.start(kinds, anyPlugin(plugins).args.GroupingRules); err != nil {
		return err
	}
	on, off := links.Names()
	var why []string
	for _, state := range statesOf(kinds) {
		why = append(why, state.String())
	}
	klog.FromContext(ctx).Info("What is served", "schedulerNames", slices.Sorted(maps.Keys(plugins)), "podGroupsOf", on, "notOf", off, "podGroupAPIs", why)
	go e.waker.tend(ctx)
	go e.freer.tend(ctx)
	go reporter.Run(ctx)
	if teller := tellerOf(e, handle.SharedInformerFactory(), pods.All().GetStore(), links, groups); teller != nil {
		go func() {
			select {
			case <-begun:
				teller.Run(ctx)
			case <-ctx.Done():
			}
		}()
	}
	return nil
}

// anyPlugin returns one of the instances. What concerns the whole scheduler is equal in all of them.
func anyPlugin(plugins map[string]*Coscheduling) *Coscheduling {
	for _, c := range plugins {
		return c
	}
	return nil
}

// areOfOneMind returns an error if profiles differ in arguments that concern the whole scheduler.
func areOfOneMind(plugins map[string]*Coscheduling) error {
	names := slices.Sorted(maps.Keys(plugins))
	first := plugins[names[0]].args
	for _, name := range names[1:] {
		args := plugins[name].args
		for _, of := range []struct {
			field      string
			one, other any
		}{
			{"podGroupAPIs", args.PodGroupAPIs, first.PodGroupAPIs},
			{"groupingRules", args.GroupingRules, first.GroupingRules},
			{"reservations", args.Reservations, first.Reservations},
			{"backfill", args.Backfill, first.Backfill},
			{"preemption", args.Preemption, first.Preemption},
			{"expectedStarts", args.ExpectedStarts, first.ExpectedStarts},
		} {
			if !equality.Semantic.DeepEqual(of.one, of.other) {
				return fmt.Errorf("the profiles %s and %s have other arguments of plugin %s in the field %s: they must be the same in all profiles",
					names[0], name, Name, of.field)
			}
		}
	}
	return nil
}

// nativeOff returns why this process leaves PodGroups of Kubernetes to kube-scheduler's own code, "" if it does not.
func nativeOff() string {
	if kube.PlacesPodGroups() {
		return "the feature gate GenericWorkload is on in this process, with which kube-scheduler's own code places them"
	}
	return ""
}

// claims returns a function that reports for a PodGroup API whether this scheduler writes the status of groups without
// Pods.
func claims(apis configv1alpha1.PodGroupAPIs) func(dialect.Dialect) bool {
	return func(d dialect.Dialect) bool {
		return d == dialect.Volcano && apis.Volcano.Claim == configv1alpha1.ClaimAll
	}
}

// groupClients returns clients for Lockstep's PodGroups and for those of other projects, made from the scheduler's
// configuration.
func groupClients(of *restclient.Config) (schedulingclient.Interface, dynamic.Interface, error) {
	config := restclient.CopyConfig(of)
	// The scheduler speaks protobuf, but the API server serves custom resources only as JSON.
	config.ContentType, config.AcceptContentTypes = "application/json", "application/json"
	config = restclient.AddUserAgent(config, "coscheduling")
	client, err := schedulingclient.NewForConfig(config)
	if err != nil {
		return nil, nil, fmt.Errorf("making a client for PodGroups: %w", err)
	}
	others, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, nil, fmt.Errorf("making a client for PodGroups of other projects: %w", err)
	}
	return client, others, nil
}
