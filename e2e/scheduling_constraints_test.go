//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/e2e/testbed"
)

// TestSchedulingGPUs: a gang that requests an extended resource goes to the nodes
// that have it, and waits whole if there is too little of it.
func TestSchedulingGPUs(t *testing.T) {
	t.Parallel()
	const gpu = corev1.ResourceName("nvidia.com/gpu")
	p := newPool(t)
	p.addNodes(2, 8)
	withGPUs := p.addNodes(2, 8, func(node *corev1.Node) {
		node.Status.Capacity[gpu] = resource.MustParse("4")
		node.Status.Allocatable[gpu] = resource.MustParse("4")
	})
	twoGPUs := func(pod *corev1.Pod) {
		two := corev1.ResourceList{gpu: resource.MustParse("2")}
		pod.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: two, Limits: two}
	}
	p.gang("larger", 5, twoGPUs)
	waitUnschedulable(t, p.namespace, "larger", schedulingv1alpha1.ReasonNotEnoughResources, "short of 2 nvidia.com/gpu")
	p.none("larger")
	p.gang("fits", 4, twoGPUs)
	counts := map[string]int{}
	for _, pod := range p.waitMembers("fits", 4) {
		counts[pod.Spec.NodeName]++
	}
	if counts[withGPUs[0]] != 2 || counts[withGPUs[1]] != 2 {
		t.Errorf("members on each node: %v, want two where GPUs are", counts)
	}
	p.none("larger")
}

// TestSchedulingVolumes: volumes that wait for the first consumer are bound where
// the gang is. A gang whose volumes can't all be bound is not placed in part, and
// takes none of them.
func TestSchedulingVolumes(t *testing.T) {
	t.Parallel()
	p := newPool(t)
	nodes := p.addNodes(2, 8)
	class := p.localVolumes(nodes...)

	claims := func(group string, n int) {
		for i := range n {
			claim := &corev1.PersistentVolumeClaim{
				ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", group, i)},
				Spec: corev1.PersistentVolumeClaimSpec{
					StorageClassName: &class,
					AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
					Resources:        corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
				},
			}
			if _, err := cluster.Kube.CoreV1().PersistentVolumeClaims(p.namespace).Create(t.Context(), claim, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	withClaim := func(pod *corev1.Pod) {
		pod.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: pod.Name},
		}}}
	}
	claims("larger", 3)
	p.gang("larger", 3, withClaim)
	waitUnschedulable(t, p.namespace, "larger", schedulingv1alpha1.ReasonNotEnoughResources, "volume")
	p.none("larger")

	claims("fits", 2)
	p.gang("fits", 2, withClaim)
	for _, pod := range p.waitMembers("fits", 2) {
		claim, err := cluster.Kube.CoreV1().PersistentVolumeClaims(p.namespace).Get(t.Context(), pod.Name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		volume, err := cluster.Kube.CoreV1().PersistentVolumes().Get(t.Context(), claim.Spec.VolumeName, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if node := volume.Labels[corev1.LabelHostname]; node != pod.Spec.NodeName {
			t.Errorf("%s is on %s, and its volume on %s", pod.Name, pod.Spec.NodeName, node)
		}
	}
	p.none("larger")
}

// localVolumes makes a volume on each of the nodes, of a class that binds on
// first use, and returns the class.
func (p *pool) localVolumes(nodes ...string) (class string) {
	p.t.Helper()
	wait := storagev1.VolumeBindingWaitForFirstConsumer
	classes := cluster.Kube.StorageV1().StorageClasses()
	volumes := cluster.Kube.CoreV1().PersistentVolumes()
	_, err := classes.Create(p.t.Context(), &storagev1.StorageClass{
		ObjectMeta:  metav1.ObjectMeta{Name: p.name},
		Provisioner: "kubernetes.io/no-provisioner", VolumeBindingMode: &wait,
	}, metav1.CreateOptions{})
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() {
		ctx := context.WithoutCancel(p.t.Context())
		for _, err := range []error{
			classes.Delete(ctx, p.name, metav1.DeleteOptions{}),
			volumes.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: poolLabel + "=" + p.name}),
		} {
			if err != nil {
				p.t.Error(err)
			}
		}
	})
	for _, node := range nodes {
		_, err := volumes.Create(p.t.Context(), &corev1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{Name: node, Labels: map[string]string{poolLabel: p.name, corev1.LabelHostname: node}},
			Spec: corev1.PersistentVolumeSpec{
				StorageClassName:       p.name,
				AccessModes:            []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				Capacity:               corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
				PersistentVolumeSource: corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: "/simulated"}},
				NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
					MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}},
				}}}},
			},
		}, metav1.CreateOptions{})
		if err != nil {
			p.t.Fatal(err)
		}
	}
	return p.name
}

// TestSchedulingDeviceClaims: each member has a claim on a device. They are
// allocated where the gang is, and none is for a gang that can't have all.
func TestSchedulingDeviceClaims(t *testing.T) {
	t.Parallel()
	p := newPool(t)
	for _, node := range p.addNodes(2, 8) {
		p.devices(node, 2)
	}
	withDevice := func(pod *corev1.Pod) {
		pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "device", ResourceClaimTemplateName: &p.name}}
		pod.Spec.Containers[0].Resources.Claims = []corev1.ResourceClaim{{Name: "device"}}
	}
	template := &resourcev1.ResourceClaimTemplate{
		ObjectMeta: metav1.ObjectMeta{Name: p.name},
		Spec: resourcev1.ResourceClaimTemplateSpec{Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{
			Requests: []resourcev1.DeviceRequest{{Name: "one", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: p.name}}},
		}}},
	}
	if _, err := cluster.Kube.ResourceV1().ResourceClaimTemplates(p.namespace).Create(t.Context(), template, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	p.gang("larger", 5, withDevice)
	waitUnschedulable(t, p.namespace, "larger", schedulingv1alpha1.ReasonNotEnoughResources, "5 members that are needed")
	p.none("larger")
	if n := p.allocated(); n != 0 {
		t.Errorf("%d claims of a gang that waits are allocated", n)
	}
	p.gang("fits", 4, withDevice)
	counts := map[string]int{}
	for _, pod := range p.waitMembers("fits", 4) {
		counts[pod.Spec.NodeName]++
	}
	if len(counts) != 2 {
		t.Errorf("members on each node: %v, want two where two devices are", counts)
	}
	if n := p.allocated(); n != 4 {
		t.Errorf("%d claims are allocated, want one for each member", n)
	}
	p.none("larger")
}

// TestSchedulingDevicesOfAnotherNode: a claim was allocated on a node that is full by now, as a
// scheduler leaves it that dies before the binding. The gang gets another device.
func TestSchedulingDevicesOfAnotherNode(t *testing.T) {
	t.Parallel()
	p := newPool(t)
	nodes := p.addNodes(2, 2)
	for _, node := range nodes {
		p.devices(node, 2)
	}
	createPods(t, p.namespace, []*corev1.Pod{p.ordinary("running", func(pod *corev1.Pod) {
		pod.Spec.NodeName = nodes[0]
		pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}
	})})
	left := p.deviceClaim("gang-0")
	left.Status.Allocation = &resourcev1.AllocationResult{
		Devices: resourcev1.DeviceAllocationResult{Results: []resourcev1.DeviceRequestAllocationResult{
			{Request: "one", Driver: p.driver(), Pool: nodes[0], Device: "device-0"},
		}},
		NodeSelector: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: nodes[:1]}},
		}}},
	}
	if _, err := cluster.Kube.ResourceV1().ResourceClaims(p.namespace).UpdateStatus(t.Context(), left, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	p.deviceClaim("gang-1")
	p.gang("gang", 2, func(pod *corev1.Pod) {
		pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "device", ResourceClaimName: &pod.Name}}
		pod.Spec.Containers[0].Resources.Claims = []corev1.ResourceClaim{{Name: "device"}}
	})
	for _, pod := range p.waitMembers("gang", 2) {
		if pod.Spec.NodeName != nodes[1] {
			t.Errorf("%s is on %s, which is full", pod.Name, pod.Spec.NodeName)
		}
	}
	if n := p.allocated(); n != 2 {
		t.Errorf("%d claims are allocated, want one for each member", n)
	}
}

// TestSchedulingASharedDevice: all members use one device, and go where it is.
func TestSchedulingASharedDevice(t *testing.T) {
	t.Parallel()
	const members = 8
	p := newPool(t)
	nodes := p.addNodes(2, members)
	p.devices(nodes[1], 1)
	shared := p.deviceClaim("shared").Name
	p.gang("gang", members, func(pod *corev1.Pod) {
		pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "device", ResourceClaimName: &shared}}
		pod.Spec.Containers[0].Resources.Claims = []corev1.ResourceClaim{{Name: "device"}}
	})
	for _, pod := range p.waitMembers("gang", members) {
		if pod.Spec.NodeName != nodes[1] {
			t.Errorf("%s is on %s, and the device on %s", pod.Name, pod.Spec.NodeName, nodes[1])
		}
	}
}

// driver is that of the pool's devices.
func (p *pool) driver() string {
	return p.name + ".e2e.lockstep.dev"
}

// deviceClaim makes a claim on one of the pool's devices.
func (p *pool) deviceClaim(name string) *resourcev1.ResourceClaim {
	p.t.Helper()
	claim, err := cluster.Kube.ResourceV1().ResourceClaims(p.namespace).Create(p.t.Context(), &resourcev1.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{
			Requests: []resourcev1.DeviceRequest{{Name: "one", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: p.name}}},
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		p.t.Fatal(err)
	}
	return claim
}

// devices publishes n devices of a node, and their class.
func (p *pool) devices(node string, n int) {
	p.t.Helper()
	api := cluster.Kube.ResourceV1()
	driver := p.driver()
	expression := fmt.Sprintf("device.driver == %q", driver)
	if _, err := api.DeviceClasses().Get(p.t.Context(), p.name, metav1.GetOptions{}); err != nil {
		_, err := api.DeviceClasses().Create(p.t.Context(), &resourcev1.DeviceClass{
			ObjectMeta: metav1.ObjectMeta{Name: p.name},
			Spec:       resourcev1.DeviceClassSpec{Selectors: []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: expression}}}},
		}, metav1.CreateOptions{})
		if err != nil {
			p.t.Fatal(err)
		}
		p.t.Cleanup(func() {
			if err := api.DeviceClasses().Delete(context.WithoutCancel(p.t.Context()), p.name, metav1.DeleteOptions{}); err != nil {
				p.t.Error(err)
			}
		})
	}
	slice := &resourcev1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: node},
		Spec:       resourcev1.ResourceSliceSpec{Driver: driver, NodeName: &node, Pool: resourcev1.ResourcePool{Name: node, ResourceSliceCount: 1}},
	}
	for i := range n {
		slice.Spec.Devices = append(slice.Spec.Devices, resourcev1.Device{Name: fmt.Sprintf("device-%d", i)})
	}
	if _, err := api.ResourceSlices().Create(p.t.Context(), slice, metav1.CreateOptions{}); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() {
		if err := api.ResourceSlices().Delete(context.WithoutCancel(p.t.Context()), node, metav1.DeleteOptions{}); err != nil {
			p.t.Error(err)
		}
	})
}

// allocated is how many claims of the pool's namespace have a device.
func (p *pool) allocated() int {
	p.t.Helper()
	n := 0
	testbed.Eventually(p.t, "the list of claims", func(ctx context.Context) (bool, string, error) {
		claims, err := cluster.Kube.ResourceV1().ResourceClaims(p.namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, "", err
		}
		n = 0
		for i := range claims.Items {
			if claims.Items[i].Status.Allocation != nil {
				n++
			}
		}
		return true, "", nil
	})
	return n
}
