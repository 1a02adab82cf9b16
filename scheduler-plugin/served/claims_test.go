// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package served

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/events"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	schedulertesting "k8s.io/kubernetes/pkg/scheduler/testing"
)

// TestAPodWhoseClaimCannotBeThereIsTold: kube-scheduler would hold it back without a
// word until the claim appears.
func TestAPodWhoseClaimCannotBeThereIsTold(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	claiming := schedulertesting.MakePod().Namespace("default").Name("claiming").UID("claiming").SchedulerName("default-scheduler").
		PodResourceClaims(corev1.PodResourceClaim{Name: "device", ResourceClaimName: new("gpu")}).Obj()
	node := schedulertesting.MakeNode().Name("node").Capacity(map[corev1.ResourceName]string{corev1.ResourcePods: "9"}).Obj()
	client := fake.NewClientset(node, claiming)
	cfg, err := latest.Default()
	if err != nil {
		t.Fatal(err)
	}
	factory := scheduler.NewInformerFactory(client, 0, nil)
	apis := &APIs{missing: []schema.GroupVersionResource{resourceClaims, resourceSlices, deviceClasses}}
	apis.FillIn(factory)
	apis.TellPods(cfg.Profiles)
	sched, err := scheduler.New(ctx, client, factory, nil,
		func(string) events.EventRecorderLogger { return events.NewFakeRecorder(100) }, scheduler.WithProfiles(cfg.Profiles...))
	if err != nil {
		t.Fatal(err)
	}
	factory.StartWithContext(ctx)
	if err := factory.WaitForCacheSyncWithContext(ctx).AsError(); err != nil {
		t.Fatal(err)
	}
	go sched.Run(ctx)

	var seen *corev1.Pod
	err = wait.PollUntilContextCancel(ctx, 20*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		var err error
		seen, err = client.CoreV1().Pods("default").Get(ctx, "claiming", metav1.GetOptions{})
		return err == nil && slices.ContainsFunc(seen.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && strings.Contains(c.Message, `could not find ResourceClaim "default/gpu"`)
		}), err
	})
	if err != nil {
		t.Errorf("the Pod was not told of its claim (%v): %v", err, seen.Status.Conditions)
	}
}
