// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/events"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	kubeschedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
)

// ownPlugin is a plugin that kube-scheduler does not have.
type ownPlugin struct{}

func (ownPlugin) Name() string { return "Own" }

func (ownPlugin) PreEnqueue(context.Context, *corev1.Pod) *fwk.Status { return nil }

// SignPod keeps the framework from remarking that the plugin can't sign.
func (ownPlugin) SignPod(context.Context, *corev1.Pod) ([]fwk.SignFragment, *fwk.Status) {
	return nil, nil
}

func (ownPlugin) Filter(context.Context, fwk.CycleState, *corev1.Pod, fwk.NodeInfo) *fwk.Status {
	return nil
}

// profilesOf are the profiles of a configuration file, as kube-scheduler reads it.
func profilesOf(t *testing.T, profiles string) Profiles {
	t.Helper()
	file := "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles: " + profiles
	object, _, err := scheme.Codecs.UniversalDecoder().Decode([]byte(file), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return object.(*kubeschedulerconfig.KubeSchedulerConfiguration).Profiles
}

// made are the profiles of a scheduler that is made of these.
func made(t *testing.T, profiles Profiles) map[string]framework.Framework {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	client := fake.NewClientset()
	sched, err := scheduler.New(ctx, client, scheduler.NewInformerFactory(client, 0, nil), nil,
		func(string) events.EventRecorderLogger { return events.NewFakeRecorder(100) },
		scheduler.WithProfiles(profiles...),
		scheduler.WithFrameworkOutOfTreeRegistry(frameworkruntime.Registry{
			"Own": func(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) { return ownPlugin{}, nil },
		}))
	if err != nil {
		t.Fatal(err)
	}
	return sched.Profiles
}

// enqueuing are the plugins that a profile asks before it takes a Pod into the queue.
func enqueuing(profile framework.Framework) []string {
	var names []string
	for _, plugin := range profile.PreEnqueuePlugins() {
		names = append(names, plugin.Name())
	}
	return names
}

// TestAPluginIsAttachableWhereAProfileRunsItsPreEnqueue: what is said of a configuration is
// what holds of the scheduler that is made of it.
func TestAPluginIsAttachableWhereAProfileRunsItsPreEnqueue(t *testing.T) {
	tests := map[string]struct {
		profiles                   string
		wantAttachable, wantFilter bool
	}{
		"a profile without plugins of its own": {`[{schedulerName: a}]`, false, false},
		"under multiPoint":                     {`[{schedulerName: a, plugins: {multiPoint: {enabled: [{name: Own}]}}}]`, true, true},
		"under preEnqueue":                     {`[{schedulerName: a, plugins: {preEnqueue: {enabled: [{name: Own}]}}}]`, true, false},
		"under filter alone":                   {`[{schedulerName: a, plugins: {filter: {enabled: [{name: Own}]}}}]`, false, true},
		"in the second profile":                {`[{schedulerName: b}, {schedulerName: a, plugins: {multiPoint: {enabled: [{name: Own}]}}}]`, true, true},
		"under multiPoint instead of all others": {
			`[{schedulerName: a, plugins: {queueSort: {enabled: [{name: PrioritySort}]}, bind: {enabled: [{name: DefaultBinder}]}, multiPoint: {disabled: [{name: "*"}], enabled: [{name: Own}]}}}]`,
			true, true},
		"disabled under preEnqueue": {
			`[{schedulerName: a, plugins: {multiPoint: {enabled: [{name: Own}]}, preEnqueue: {disabled: [{name: Own}]}}}]`, false, true},
		"with all disabled under preEnqueue": {
			`[{schedulerName: a, plugins: {multiPoint: {enabled: [{name: Own}]}, preEnqueue: {disabled: [{name: "*"}]}}}]`, false, true},
		"alone under preEnqueue": {
			`[{schedulerName: a, plugins: {multiPoint: {enabled: [{name: Own}]}, preEnqueue: {disabled: [{name: "*"}], enabled: [{name: Own}]}}}]`, true, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			profiles := profilesOf(t, tc.profiles)
			if got := profiles.Attachable("Own"); got != tc.wantAttachable {
				t.Errorf("attachable is %v, want %v", got, tc.wantAttachable)
			}
			profile := made(t, profiles)["a"]
			if got := slices.Contains(enqueuing(profile), "Own"); got != tc.wantAttachable {
				t.Errorf("that it is found is %v, want %v", got, tc.wantAttachable)
			}
			if got := slices.Contains(EnabledIn(profile).Filter, "Own"); got != tc.wantFilter {
				t.Errorf("that it filters is %v, want %v", got, tc.wantFilter)
			}
		})
	}
}

// TestAPluginIsLeftOutOfPreEnqueueAlone: where it is disabled there, it filters all the same,
// and the plugins beside it are as before.
func TestAPluginIsLeftOutOfPreEnqueueAlone(t *testing.T) {
	const all = `[{schedulerName: a}, {schedulerName: b, plugins: {preEnqueue: {enabled: [{name: Own}]}}}]`
	before := made(t, profilesOf(t, all))
	profiles := profilesOf(t, all)
	profiles.DisablePreEnqueue(DynamicResources)
	after := made(t, profiles)
	for _, name := range []string{"a", "b"} {
		want := enqueuing(before[name])
		without := slices.DeleteFunc(slices.Clone(want), func(plugin string) bool { return plugin == DynamicResources })
		if len(without) != len(want)-1 {
			t.Fatalf("%s runs %v, want %s among them", name, want, DynamicResources)
		}
		got := enqueuing(after[name])
		slices.Sort(got) // the order says nothing of them
		slices.Sort(without)
		if !slices.Equal(got, without) {
			t.Errorf("%s runs %v before the queue, want %v", name, got, without)
		}
		if enabled := EnabledIn(after[name]); !slices.Equal(enabled.Filter, EnabledIn(before[name]).Filter) ||
			!slices.Contains(enabled.Filter, DynamicResources) || !slices.Contains(enabled.PostFilter, DefaultPreemption) || len(enabled.PreFilter) == 0 {
			t.Errorf("%s has %+v", name, enabled)
		}
	}
}

// TestMoreNamesAreServedLikeTheFirst that runs the plugin.
func TestMoreNamesAreServedLikeTheFirst(t *testing.T) {
	profiles := profilesOf(t, `[{schedulerName: b}, {schedulerName: a, plugins: {multiPoint: {enabled: [{name: Own}]}}}]`)
	all, err := profiles.Also("Own", []string{"volcano", "third"})
	if err != nil {
		t.Fatal(err)
	}
	schedulers := made(t, all)
	if len(schedulers) != 4 || len(profiles) != 2 {
		t.Fatalf("%d names are served, and %d were asked for by profiles", len(schedulers), len(profiles))
	}
	for _, name := range []string{"volcano", "third"} {
		if got, want := EnabledIn(schedulers[name]), EnabledIn(schedulers["a"]); !slices.Equal(got.Filter, want.Filter) || !slices.Contains(got.Filter, "Own") {
			t.Errorf("%s filters by %v, want %v", name, got.Filter, want.Filter)
		}
	}
	for _, wrong := range []string{"", "Not A Name", "b"} {
		if _, err := profiles.Also("Own", []string{wrong}); err == nil {
			t.Errorf("the name %q is served", wrong)
		}
	}
}
