// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestWhatDecidesCannotAct: what is told of a gang is decided by functions that know
// nothing by which they could do something, nor the time or a random number.
func TestWhatDecidesCannotAct(t *testing.T) {
	allowed := []string{
		"fmt", "maps", "slices",
		"time", // its types
		"k8s.io/api/core/v1",
		"k8s.io/apimachinery/pkg/apis/meta/v1",
		"k8s.io/apimachinery/pkg/types",
		"github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1",
		"github.com/lockstep-k8s/lockstep/internal/times",
		"github.com/lockstep-k8s/lockstep/podgroup",
		"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/line",
	}
	for _, file := range []string{"gang.go", "conditions.go", "marks.go", "capped.go"} {
		for _, pkg := range importsOf(t, file) {
			if !slices.Contains(allowed, pkg) {
				t.Errorf("%s imports %s", file, pkg)
			}
		}
	}
}

// TestTheReporterKnowsNoScheduler: of this project it knows the APIs, their client and three
// packages of the scheduler's.
func TestTheReporterKnowsNoScheduler(t *testing.T) {
	const module = "github.com/lockstep-k8s/lockstep/"
	allowed := []string{"apis/scheduling/v1alpha1", "client/applyconfiguration/scheduling/v1alpha1", "client/clientset/versioned",
		"podgroup", "scheduler-plugin/coscheduling/kube", "scheduler-plugin/coscheduling/line"}
	for _, file := range []string{"reporter.go", "metrics.go"} {
		for _, pkg := range importsOf(t, file) {
			own, ok := strings.CutPrefix(pkg, module)
			if ok && !slices.Contains(allowed, own) || strings.HasPrefix(pkg, "k8s.io/kube") {
				t.Errorf("%s imports %s", file, pkg)
			}
		}
	}
}

// importsOf are the packages that a file imports.
func importsOf(t *testing.T, file string) (imports []string) {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
	if err != nil {
		t.Fatal(err)
	}
	for _, spec := range parsed.Imports {
		pkg, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		imports = append(imports, pkg)
	}
	return imports
}
