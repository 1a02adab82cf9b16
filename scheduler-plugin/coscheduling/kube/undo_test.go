// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	resourcev1client "k8s.io/client-go/kubernetes/typed/resource/v1"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	schedulertesting "k8s.io/kubernetes/pkg/scheduler/testing"
)

// TestUndoingAReservationSendsNothing: a Pod has a claim from before a crash, and one that is to
// be allocated. The client of claims is a real one.
func TestUndoingAReservationSendsNothing(t *testing.T) {
	var requests atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		requests.Add(1)
		w.WriteHeader(http.StatusNotFound)
	}))
	t.Cleanup(server.Close)
	real, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}

	pod := makePod("a", 0, "")
	claim := func(name string) *schedulertesting.ResourceClaimWrapper {
		return schedulertesting.MakeResourceClaim().Namespace(testNamespace).Name(name).UID("uid-of-" + name).Request("class")
	}
	had, new := "had", "new"
	pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: had, ResourceClaimName: &had}, {Name: new, ResourceClaimName: &new}}
	w := newWorldOf(t, func(fake kubernetes.Interface) kubernetes.Interface { return realClaims{fake, real} },
		makeNode("one", "2"), pod, &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "class"}}, schedulertesting.MakeResourceSlice("one", "driver.example").Device("x").Device("y").Obj(),
		claim(had).ReservedForPod("a", pod.UID).Allocation(&resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{
			Results: []resourcev1.DeviceRequestAllocationResult{{Request: "req-1", Driver: "driver.example", Pool: "one", Device: "x"}}}}).Obj(),
		claim(new).Obj())
	claims := w.profile().SharedDRAManager().ResourceClaims()

	reserve := func() *framework.CycleState {
		state := framework.NewCycleState()
		if err := w.inside.UpdateSnapshot(klog.FromContext(w.ctx)); err != nil {
			t.Fatal(err)
		}
		if _, status, _ := w.profile().RunPreFilterPlugins(w.ctx, state, pod); !status.IsSuccess() {
			t.Fatal(status)
		}
		info, err := w.inside.Snapshot().Get("one")
		if err != nil {
			t.Fatal(err)
		}
		if status := w.profile().RunFilterPlugins(w.ctx, state, pod, info); !status.IsSuccess() {
			t.Fatal(status)
		}
		if status := w.profile().RunReservePluginsReserve(w.ctx, state, pod, "one"); !status.IsSuccess() {
			t.Fatal(status)
		}
		if claims.GetPendingAllocation("uid-of-new") == nil {
			t.Fatal("no device is set aside")
		}
		return state
	}
	UndoReserve(w.ctx, w.profile(), reserve(), pod, "one")
	if claims.GetPendingAllocation("uid-of-new") != nil {
		t.Error("the device is still set aside")
	}
	if n := requests.Load(); n != 0 {
		t.Errorf("there were %d requests, want none", n)
	}
	// What it is there for: kube-scheduler's own Unreserve writes.
	w.profile().RunReservePluginsUnreserve(w.ctx, reserve(), pod, "one")
	if requests.Load() == 0 {
		t.Error("kube-scheduler's Unreserve has sent nothing: UndoReserve is not needed any more")
	}
}

// realClaims is a fake client that patches ResourceClaims by a real one.
type realClaims struct {
	kubernetes.Interface
	real kubernetes.Interface
}

// IsWatchListSemanticsUnSupported has informers list and then watch, as with the fake client.
func (realClaims) IsWatchListSemanticsUnSupported() bool { return true }

func (c realClaims) ResourceV1() resourcev1client.ResourceV1Interface {
	return realResources{c.Interface.ResourceV1(), c.real}
}

type realResources struct {
	resourcev1client.ResourceV1Interface
	real kubernetes.Interface
}

func (c realResources) ResourceClaims(namespace string) resourcev1client.ResourceClaimInterface {
	return realPatches{c.ResourceV1Interface.ResourceClaims(namespace), c.real.ResourceV1().ResourceClaims(namespace)}
}

type realPatches struct {
	resourcev1client.ResourceClaimInterface
	real resourcev1client.ResourceClaimInterface
}

func (c realPatches) Patch(ctx context.Context, name string, kind types.PatchType, data []byte, options metav1.PatchOptions,
	subresources ...string) (*resourcev1.ResourceClaim, error) {
	return c.real.Patch(ctx, name, kind, data, options, subresources...)
}
