//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package versions tests Lockstep on API servers that lack APIs which the kube-scheduler
// in lockstep-scheduler watches: on the newest with these switched off, and on older
// ones. Each test has a cluster of its own and starts the programs itself.
package versions

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-k8s/lockstep/e2e/testbed"
	"github.com/lockstep-k8s/lockstep/internal/localenv"
)

const (
	namespace = "default"
	// coresOfNode is what the node offers.
	coresOfNode = 8
	// promptly is how long the scheduler may take from its start to the first Pod
	// that it places. It takes some seconds on a busy machine, and waits for a minute
	// or for ever where it waits for an API.
	promptly = 30 * time.Second
)

// world is a cluster of one node.
type world struct {
	*testbed.Cluster
	t *testing.T
}

// up starts a cluster with the API server that the options describe. It does not outlive
// the test.
func up(t *testing.T, o localenv.Options) *world {
	t.Helper()
	o.SimulatedNodes, o.NodeCPU, o.With = 1, fmt.Sprint(coresOfNode), "none"
	w := &world{testbed.Up(t, o), t}
	testbed.Eventually(t, "the service account of Pods", func(ctx context.Context) (bool, string, error) {
		_, err := w.Kube.CoreV1().ServiceAccounts(namespace).Get(ctx, "default", metav1.GetOptions{})
		return err == nil, "", err
	})
	return w
}

// startScheduler starts lockstep-scheduler as it is shipped, with the rights of its
// service account. It also serves the Pods that name one of more schedulers.
func (w *world) startScheduler(more ...string) *localenv.Process {
	w.t.Helper()
	return w.startSchedulerWith(localenv.SchedulerOptions{AlsoServes: more})
}

// startSchedulerWith is startScheduler with options.
func (w *world) startSchedulerWith(o localenv.SchedulerOptions) *localenv.Process {
	w.t.Helper()
	// Not the context of the test, which ends before its cleanups.
	scheduler, err := w.StartSchedulerWith(context.WithoutCancel(w.t.Context()), o)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		scheduler.Kill()
		if w.t.Failed() {
			w.t.Logf("log of the scheduler:\n%s", scheduler.LogTail(8000))
		}
	})
	return scheduler
}

// pod creates a Pod that requests one core, changed by change.
func (w *world) pod(name string, change ...func(*corev1.Pod)) {
	w.t.Helper()
	w.CreatePod(w.t, namespace, testbed.MakePod(name, change...))
}

// claiming has a Pod use a resource claim.
func claiming(claim string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "device", ResourceClaimName: &claim}}
		pod.Spec.Containers[0].Resources.Claims = []corev1.ResourceClaim{{Name: "device"}}
	}
}

// claim creates a claim for one device of a driver.
func (w *world) claim(name, driver string) {
	w.t.Helper()
	claim := &resourcev1.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{
			Name: "one", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: driver},
		}}}},
	}
	if _, err := w.Kube.ResourceV1().ResourceClaims(namespace).Create(w.t.Context(), claim, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

// offer has the node offer one device of a driver.
func (w *world) offer(driver string) {
	w.t.Helper()
	resources := w.Kube.ResourceV1()
	class := &resourcev1.DeviceClass{
		ObjectMeta: metav1.ObjectMeta{Name: driver},
		Spec: resourcev1.DeviceClassSpec{Selectors: []resourcev1.DeviceSelector{{
			CEL: &resourcev1.CELDeviceSelector{Expression: fmt.Sprintf("device.driver == %q", driver)},
		}}},
	}
	if _, err := resources.DeviceClasses().Create(w.t.Context(), class, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
	node := "sim-0"
	slice := &resourcev1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: "slice"},
		Spec: resourcev1.ResourceSliceSpec{
			Driver: driver, NodeName: &node, Devices: []resourcev1.Device{{Name: "gpu-0"}},
			Pool: resourcev1.ResourcePool{Name: node, Generation: 1, ResourceSliceCount: 1},
		},
	}
	if _, err := resources.ResourceSlices().Create(w.t.Context(), slice, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

// gang creates a group of two Pods that need each other, the second one changed by
// change.
func (w *world) gang(name string, change ...func(*corev1.Pod)) {
	w.t.Helper()
	w.CreateGroup(w.t, namespace, name, 2)
	w.pod(name+"-0", testbed.InGroup(name))
	w.pod(name+"-1", append(change, testbed.InGroup(name))...)
}

// waitPlaced waits until Pods have a node.
func (w *world) waitPlaced(patience time.Duration, names ...string) {
	w.t.Helper()
	for _, name := range names {
		testbed.EventuallyWithin(w.t, patience, "Pod "+name+" to be placed", func(ctx context.Context) (bool, string, error) {
			pod, err := w.Kube.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return false, "", err
			}
			return pod.Spec.NodeName != "", fmt.Sprint(pod.Status.Conditions), nil
		})
	}
}

// waitTold waits until a Pod that has no node is told why, with a message that
// contains text.
func (w *world) waitTold(name, text string) {
	w.t.Helper()
	testbed.Eventually(w.t, fmt.Sprintf("Pod %s to be told …%s…", name, text), func(ctx context.Context) (bool, string, error) {
		pod, err := w.Kube.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, "", err
		}
		told := slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && strings.Contains(c.Message, text)
		})
		return told && pod.Spec.NodeName == "", fmt.Sprint(pod.Spec.NodeName, pod.Status.Conditions), nil
	})
}

// remarks are the lines in which the scheduler has remarked upon the API server.
func (w *world) remarks(scheduler *localenv.Process) []string {
	w.t.Helper()
	log, err := scheduler.Log()
	if err != nil {
		w.t.Fatal(err)
	}
	var remarks []string
	for line := range strings.Lines(log) {
		if strings.Contains(line, "does not serve") {
			remarks = append(remarks, line)
		}
	}
	return remarks
}

// saidOnce fails unless the scheduler has remarked once upon the API server, with
// its version and text.
func (w *world) saidOnce(scheduler *localenv.Process, text string) {
	w.t.Helper()
	remarks := w.remarks(scheduler)
	if len(remarks) != 1 || !strings.Contains(remarks[0], text) || !strings.Contains(remarks[0], "API server v1.") {
		w.t.Errorf("it remarked upon the API server by %q, want one line with its version and %q", remarks, text)
	}
}

// TestSchedulingWithoutResourceClaims: the API server does not serve
// resource.k8s.io/v1, as those before 1.34.
func TestSchedulingWithoutResourceClaims(t *testing.T) {
	w := up(t, localenv.Options{RuntimeConfig: "resource.k8s.io/v1=false"})
	w.pod("ordinary")
	w.pod("claiming", claiming("gpu"))
	w.gang("gang")
	w.gang("claimants", claiming("gpu"))

	scheduler := w.startScheduler()
	w.waitPlaced(time.Until(scheduler.Started.Add(promptly)), "ordinary")
	w.waitPlaced(testbed.Patience, "gang-0", "gang-1")
	w.waitTold("claiming", `could not find ResourceClaim "default/gpu"`)
	w.WaitGroupTold(w.t, namespace, "claimants", "ResourceClaim")
	w.saidOnce(scheduler, "resourceclaims, resourceslices, deviceclasses of resource.k8s.io/v1")
}

// TestSchedulingWithoutDeviceTaintRules: the API server does not serve
// devicetaintrules, as those before 1.37. Claims work.
func TestSchedulingWithoutDeviceTaintRules(t *testing.T) {
	const driver = "devices.example.com"
	w := up(t, localenv.Options{RuntimeConfig: "resource.k8s.io/v1/devicetaintrules=false"})
	w.pod("ordinary")
	w.gang("gang")
	w.claim("gpu", driver)
	w.pod("claiming", claiming("gpu"))

	scheduler := w.startScheduler()
	w.waitPlaced(time.Until(scheduler.Started.Add(promptly)), "ordinary")
	w.waitPlaced(testbed.Patience, "gang-0", "gang-1")
	w.waitTold("claiming", driver)

	w.offer(driver)
	w.waitPlaced(testbed.Patience, "claiming")
	w.saidOnce(scheduler, "devicetaintrules of resource.k8s.io/v1")
}
