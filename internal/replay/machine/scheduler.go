// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"fmt"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler"
	kubeschedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"

	"github.com/lockstep-k8s/lockstep/internal/testing/apiserver"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/kube"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/status"
)

// runScheduler starts a scheduler with all default plugins and Coscheduling. The scheduler ends with ctx; `wait` waits
// until it has ended.
func runScheduler(ctx context.Context, config *rest.Config, args string, registry status.Registry) (wait func(), err error) {
	config = rest.CopyConfig(config)
	config.QPS = -1
	config.Wrap(newRounds().sender)
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	defaults, err := latest.Default()
	if err != nil {
		return nil, fmt.Errorf("reading the default configuration of kube-scheduler: %w", err)
	}
	profile := &defaults.Profiles[0]
	profile.SchedulerName = schedulerName
	profile.Plugins.MultiPoint.Enabled = append(profile.Plugins.MultiPoint.Enabled, kubeschedulerconfig.Plugin{Name: coscheduling.Name})
	profile.PluginConfig = append(profile.PluginConfig, kubeschedulerconfig.PluginConfig{Name: coscheduling.Name, Args: &runtime.Unknown{Raw: []byte(args)}})
	informers := kube.NewInformerFactory(client, nil)
	// The context of New is that of goroutines that only record metrics, and wake each second to do so: they would take most of the time.
	made, end := context.WithCancel(ctx)
	defer end()
	sched, err := scheduler.New(made, client, informers, nil,
		func(string) events.EventRecorderLogger { return &events.FakeRecorder{} },
		scheduler.WithKubeConfig(config),
		scheduler.WithProfiles(defaults.Profiles...),
		scheduler.WithFrameworkOutOfTreeRegistry(frameworkruntime.Registry{coscheduling.Name: coscheduling.New}))
	if err != nil {
		return nil, fmt.Errorf("making the scheduler: %w", err)
	}
	settle(sched)
	inside, err := kube.Of(sched)
	if err != nil {
		return nil, err
	}
	if err := coscheduling.Attach(ctx, inside, nil, registry, func(string) {}); err != nil {
		return nil, err
	}
	informers.Start(ctx.Done())
	for kind, synced := range informers.WaitForCacheSync(ctx.Done()) {
		if !synced {
			return nil, fmt.Errorf("the list of %s never came", kind)
		}
	}
	if err := sched.WaitForHandlersSync(ctx); err != nil {
		return nil, fmt.Errorf("waiting until the scheduler knows the cluster: %w", err)
	}
	time.Sleep(time.Until(time.Now().Truncate(time.Minute).Add(time.Minute))) // Its timers are in step in each play.
	done := make(chan struct{})
	go func() {
		defer close(done)
		sched.Run(ctx)
	}()
	return func() { <-done }, nil
}

// settle delays each scheduling cycle until all other goroutines are blocked. So a cycle sees everything that happened
// before it, however fast informers are.
func settle(sched *scheduler.Scheduler) {
	pop := sched.NextEntity
	sched.NextEntity = func(logger klog.Logger) (framework.QueuedEntityInfo, error) {
		entity, err := pop(logger)
		synctest.Wait()
		return entity, err
	}
}

// unknownResources returns the kinds that kube-scheduler watches and a replay does not have.
func unknownResources() []apiserver.Option {
	var options []apiserver.Option
	for _, r := range []struct{ group, version, resource, kind string }{
		{"", "v1", "persistentvolumes", "PersistentVolume"},
		{"", "v1", "replicationcontrollers", "ReplicationController"},
		{"apps", "v1", "replicasets", "ReplicaSet"},
		{"apps", "v1", "statefulsets", "StatefulSet"},
		{"storage.k8s.io", "v1", "storageclasses", "StorageClass"},
		{"storage.k8s.io", "v1", "csinodes", "CSINode"},
		{"storage.k8s.io", "v1", "csidrivers", "CSIDriver"},
		{"storage.k8s.io", "v1", "csistoragecapacities", "CSIStorageCapacity"},
		{"storage.k8s.io", "v1", "volumeattachments", "VolumeAttachment"},
		{"resource.k8s.io", "v1", "deviceclasses", "DeviceClass"},
		{"resource.k8s.io", "v1", "resourceclaims", "ResourceClaim"},
		{"resource.k8s.io", "v1", "resourceslices", "ResourceSlice"},
		{"resource.k8s.io", "v1", "devicetaintrules", "DeviceTaintRule"},
	} {
		options = append(options, apiserver.WithResource(apiserver.Resource{
			GroupVersionResource: schema.GroupVersionResource{Group: r.group, Version: r.version, Resource: r.resource}, Kind: r.kind}))
	}
	return options
}
