// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// TestMirroredFileIsUnchanged fails when the scheduler's private cycle changes,
// which cycle.go and binding.go imitate. Compare them with the new version then, and
// update the version that cycle.go names and the checksum here.
func TestMirroredFileIsUnchanged(t *testing.T) {
	const want = "f433bed1da8233b52b85879e75f91c9b3d49ad1e8b1f995dc39af98d24e314b0"
	if got := sumOf(upstream(t, "schedule_one.go")); got != want {
		t.Errorf("schedule_one.go of k8s.io/kubernetes changed: its SHA-256 is %s; compare cycle.go and binding.go with it", got)
	}
}

// TestMirroredFunctionsAreUnchanged fails when DynamicResources gives devices back in another way.
func TestMirroredFunctionsAreUnchanged(t *testing.T) {
	const want = "ea39a7c2127428a4ec6bce833e16304aded7244f409d64c185bd821ee62a85af"
	plugin := filepath.Join("framework", "plugins", "dynamicresources")
	source := function(t, upstream(t, filepath.Join(plugin, "dynamicresources.go")), "(pl *DynamicResources) deallocateOrDeletePodClaims") +
		function(t, upstream(t, filepath.Join(plugin, "extendeddynamicresources.go")), "(pl *DynamicResources) deleteClaim")
	if got := sumOf(source); got != want {
		t.Errorf("deallocateOrDeletePodClaims or deleteClaim of DynamicResources changed: their SHA-256 is %s; compare claims.go with them", got)
	}
}

// TestEventsOfNominationsAreUnchanged fails when kube-scheduler tells in another way that a nomination has ended, or that a Pod has. Compare
// isDenomination of queue.go with the new version then.
func TestEventsOfNominationsAreUnchanged(t *testing.T) {
	const want = "fcb0016575d40e0e7033dab8280517d7373305e3c7569e8a1af63621818378ba"
	handlers := upstream(t, "eventhandlers.go")
	source := function(t, handlers, "(sched *Scheduler) updatePodInSchedulingQueue") + function(t, handlers, "(sched *Scheduler) deletePodFromSchedulingQueue") + function(t, handlers, "(sched *Scheduler) deleteAssignedPodFromCache")
	if got := sumOf(source); got != want {
		t.Errorf("event handlers of kube-scheduler changed: their SHA-256 is %s; compare isDenomination with them", got)
	}
}

// TestTheInformerOfPodsIsUnchanged fails when kube-scheduler makes its informers in another way. Compare NewInformerFactory of pods.go,
// and which Pods it hides, with the new version then.
func TestTheInformerOfPodsIsUnchanged(t *testing.T) {
	const want = "4029770cbe1a5c621063339d2a046ad1ed7b5ac066aadc5c36e4f08663237d97"
	source := upstream(t, "scheduler.go")
	if got := sumOf(function(t, source, "NewInformerFactory") + function(t, source, "newPodInformer")); got != want {
		t.Errorf("NewInformerFactory or newPodInformer of kube-scheduler changed: their SHA-256 is %s; compare pods.go with them", got)
	}
}

// TestPodsAreIndexedByTheirClaims fails when DynamicResources calls the index by another name, or
// its keys are others. Then claimIndex and who asks by it are to follow.
func TestPodsAreIndexedByTheirClaims(t *testing.T) {
	pod := makePod("pod", 0, "")
	pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "device", ResourceClaimName: ptr.To("shared")}}
	w := newWorld(t, pod, makePod("other", 0, ""))
	for name, profile := range w.inside.Profiles() {
		pods := profile.SharedInformerFactory().Core().V1().Pods().Informer().GetIndexer()
		found, err := pods.IndexKeys(claimIndex+name, testNamespace+"/shared")
		if err != nil {
			t.Fatalf("DynamicResources has no index %s of Pods by their claims: %v", claimIndex+name, err)
		}
		if diff := cmp.Diff([]string{testNamespace + "/pod"}, found); diff != "" {
			t.Errorf("Pods with the claim, by %s (-want, +got):\n%s", claimIndex+name, diff)
		}
	}
}

// upstream is a file of kube-scheduler's source.
func upstream(t *testing.T, path string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/kubernetes").Output()
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(out)), "pkg", "scheduler", path))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// function is the source of a function, whose name has its receiver in front.
func function(t *testing.T, source, name string) string {
	t.Helper()
	_, after, found := strings.Cut(source, "func "+name+"(")
	body, _, ends := strings.Cut(after, "\n}\n")
	if !found || !ends {
		t.Fatalf("the source has no function %s", name)
	}
	return "func " + name + "(" + body + "\n}\n"
}

func sumOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}
