// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package simnodes

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"
)

func TestNode(t *testing.T) {
	capacity := Capacity{CPU: resource.MustParse("8"), Memory: resource.MustParse("16Gi"), Pods: 7000}
	node := Node(620, capacity, "v1.36.3")
	want := map[string]string{
		"kubernetes.io/hostname":      "sim-620",
		"kubernetes.io/os":            "linux",
		"kubernetes.io/arch":          "amd64",
		"type":                        "kwok",
		"topology.lockstep.dev/rack":  "rack-12",
		"topology.kubernetes.io/zone": "zone-1",
	}
	if diff := cmp.Diff(want, node.Labels); diff != "" {
		t.Errorf("labels (-want,+got):\n%s", diff)
	}
	a := node.Status.Allocatable
	if a.Cpu().String() != "8" || a.Memory().String() != "16Gi" || a.Pods().Value() != 7000 {
		t.Errorf("allocatable %v", a)
	}
	if got := node.Status.NodeInfo.KubeletVersion; got != "v1.36.3" {
		t.Errorf("its kubelet is of version %s, want v1.36.3", got)
	}
}

func TestNodesHaveAddressesOfTheirOwn(t *testing.T) {
	prefix := netip.MustParsePrefix(NodeCIDR)
	seen := map[netip.Addr]bool{}
	for _, i := range []int{0, 1, 254, 255, 256, 65535, 65536, MaxNodes - 1} {
		a := nodeAddress(i)
		if !prefix.Contains(a) || seen[a] {
			t.Errorf("node %d has address %s", i, a)
		}
		seen[a] = true
	}
	if netip.MustParsePrefix(PodCIDR).Overlaps(prefix) {
		t.Error("addresses of Pods and Nodes overlap")
	}
}

// TestKwokConfig holds the stages to the annotations and labels that this package documents.
// What the stages do is tested on a cluster, in ../integration.
func TestKwokConfig(t *testing.T) {
	var stageNames []string
	for document := range strings.SplitSeq(KwokConfig(), "\n---\n") {
		var object struct {
			Kind     string
			Metadata struct{ Name string }
			Options  map[string]any
		}
		if err := yaml.Unmarshal([]byte(document), &object); err != nil {
			t.Fatalf("%v in\n%s", err, document)
		}
		switch object.Kind {
		case "Stage":
			stageNames = append(stageNames, object.Metadata.Name)
		case "KwokConfiguration":
			if got := object.Options["manageNodesWithLabelSelector"]; got != "type=kwok" {
				t.Errorf("KWOK manages nodes with %v", got)
			}
		default:
			t.Errorf("unexpected kind %q", object.Kind)
		}
	}
	want := []string{"node-initialize", "node-heartbeat-with-lease", "pod-ready", "pod-complete", "pod-delete"}
	if diff := cmp.Diff(want, stageNames); diff != "" {
		t.Errorf("stages (-want,+got):\n%s", diff)
	}
	for _, annotation := range []string{
		RunSecondsAnnotation, ExitCodeAnnotation, ReasonAnnotation, MessageAnnotation,
		PodReasonAnnotation, PodMessageAnnotation, FailAttemptsAnnotation, FailTaskAttemptsAnnotation,
	} {
		if !strings.Contains(stages, `"`+annotation+`"`) {
			t.Errorf("no stage reads %s", annotation)
		}
	}
}

func TestProbeComesAloneToTheFirstNode(t *testing.T) {
	pod := Probe()
	if pod.Spec.NodeName != "sim-0" || pod.Namespace == corev1.NamespaceDefault {
		t.Errorf("probe in namespace %s on node %s", pod.Namespace, pod.Spec.NodeName)
	}
	if slices.ContainsFunc(pod.Spec.Containers, func(c corev1.Container) bool { return c.Image == "" }) {
		t.Error("a container has no image")
	}
}
