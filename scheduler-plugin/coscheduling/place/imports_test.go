// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package place

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/lockstep-k8s/lockstep/internal/testing/imports"
)

// TestPlaceImportsNothingThatActs: no client, and of the plugin's packages only those that
// decide, and kube, of which the next test has the names.
func TestPlaceImportsNothingThatActs(t *testing.T) {
	const ours = "github.com/lockstep-k8s/lockstep/"
	allowed := []string{
		ours + "apis/config/v1alpha1",
		ours + "apis/scheduling/v1alpha1",
		ours + "internal/times",
		ours + "podgroup",
		ours + "scheduler-plugin/coscheduling/dialect",
		ours + "scheduler-plugin/coscheduling/ends",
		ours + "scheduler-plugin/coscheduling/gangs",
		ours + "scheduler-plugin/coscheduling/kube",
		ours + "scheduler-plugin/coscheduling/queue",
		ours + "scheduler-plugin/coscheduling/planner",
		ours + "scheduler-plugin/coscheduling/podclass",
		ours + "scheduler-plugin/coscheduling/provision",
		ours + "scheduler-plugin/coscheduling/room",
		ours + "scheduler-plugin/coscheduling/victims",
		"k8s.io/component-helpers/scheduling/corev1",
		"k8s.io/component-helpers/scheduling/corev1/nodeaffinity",
		"k8s.io/component-helpers/storage/ephemeral",
		"k8s.io/dynamic-resource-allocation/cel",
		"k8s.io/dynamic-resource-allocation/resourceclaim",
		"k8s.io/dynamic-resource-allocation/structured",
		"k8s.io/klog/v2",
		"k8s.io/kube-scheduler/framework",
		"k8s.io/kubernetes/pkg/scheduler/framework",
	}
	for _, pkg := range imports.Of(t) {
		isType := strings.HasPrefix(pkg, "k8s.io/api/") || strings.HasPrefix(pkg, "k8s.io/apimachinery/")
		if !isType && !slices.Contains(allowed, pkg) {
			t.Errorf("the package imports %s", pkg)
		}
	}
}

// TestPlaceUsesNothingOfTheSchedulerThatActs: of package kube the snapshot and what decides,
// and no client of a profile. The Reserve plugins are the exception that the package's
// documentation tells of.
func TestPlaceUsesNothingOfTheSchedulerThatActs(t *testing.T) {
	ofKube := []string{
		"Snapshot", "InPlace", "Placement", "AssumedPod", "UndoReserve", "MayShare", "EnabledIn", "OnlyUpstream", "ReasonNodeAffinity", "PendingClaimsLast", "Unit", "Violations",
		"BalancedAllocation", "ImageLocality", "InterPodAffinity", "NodeAffinity", "NodeName", "NodePorts", "NodeResourcesFit", "NodeUnschedulable",
		"PodTopologySpread", "TaintToleration",
	}
	ofProfiles := []string{"ClientSet", "KubeConfig", "EventRecorder", "Activate", "AddNominatedPod", "DeleteNominatedPodIfExists",
		"RunPermitPlugins", "RunPreBindPlugins", "RunBindPlugins", "RunPostFilterPlugins", "RejectWaitingPod"}
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), ".go") || strings.HasSuffix(entry.Name(), "_test.go") {
			continue
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, entry.Name(), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(node ast.Node) bool {
			used, ok := node.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			of, isName := used.X.(*ast.Ident)
			if isName && of.Name == "kube" && !slices.Contains(ofKube, used.Sel.Name) {
				t.Errorf("%s uses kube.%s", files.Position(used.Pos()), used.Sel.Name)
			}
			if slices.Contains(ofProfiles, used.Sel.Name) {
				t.Errorf("%s uses %s", files.Position(used.Pos()), used.Sel.Name)
			}
			return true
		})
	}
}
