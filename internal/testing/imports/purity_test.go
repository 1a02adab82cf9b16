// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package imports

import (
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// purePackages are the packages that are pure, as docs/architecture.md has it.
func purePackages() []string {
	return []string{
		"apis/framework/statuscodec",
		"controller/engine/plan",
		"controller/history",
		"controller/jobpods",
		"controller/kubeflow",
		"controller/lifecycle",
		"controller/pacing",
		"controller/volcano",
		"internal/controlled",
		"internal/podend",
		"internal/quantity",
		"internal/terminal",
		"internal/text",
		"internal/times",
		"internal/view",
		"internal/why",
		"podgroup",
		"scheduler-plugin/coscheduling/dialect",
		"scheduler-plugin/coscheduling/ends",
		"scheduler-plugin/coscheduling/gangs",
		"scheduler-plugin/coscheduling/queue",
		"scheduler-plugin/coscheduling/news",
		"scheduler-plugin/coscheduling/planner",
		"scheduler-plugin/coscheduling/provision",
		"scheduler-plugin/coscheduling/victims",
		"scheduler-plugin/answers",
		"scheduler-plugin/whatif",
	}
}

// TestPurePackagesHaveNoClient holds that what decides can't act.
func TestPurePackagesHaveNoClient(t *testing.T) {
	const module = "github.com/lockstep-k8s/lockstep/"
	for _, pkg := range purePackages() {
		t.Run(pkg, func(t *testing.T) {
			deps, err := exec.CommandContext(t.Context(), "go", "list", "-deps", module+pkg).CombinedOutput()
			if err != nil {
				t.Fatalf("listing the dependencies: %v\n%s", err, deps)
			}
			for dep := range strings.Lines(string(deps)) {
				if strings.HasPrefix(dep, "k8s.io/client-go") {
					t.Errorf("%s depends on %s", pkg, strings.TrimSpace(dep))
				}
			}
		})
	}
}

// TestTheTypesAndTheClientDoNotDependOnKubernetesItself: programs that use them do not have to compile kube-scheduler.
func TestTheTypesAndTheClientDoNotDependOnKubernetesItself(t *testing.T) {
	deps, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "github.com/lockstep-k8s/lockstep/apis/...", "github.com/lockstep-k8s/lockstep/client/...").CombinedOutput()
	if err != nil {
		t.Fatalf("listing the dependencies: %v\n%s", err, deps)
	}
	for dep := range strings.Lines(string(deps)) {
		if strings.HasPrefix(dep, "k8s.io/kubernetes/") {
			t.Errorf("they depend on %s", strings.TrimSpace(dep))
		}
	}
}

// TestPurePackagesHaveNoClock holds that what decides is told the time and what is random, and
// neither logs nor asks the system.
func TestPurePackagesHaveNoClock(t *testing.T) {
	acting := []string{"crypto/rand", "log", "log/slog", "math/rand", "math/rand/v2", "net", "net/http", "os", "os/exec", "syscall",
		"k8s.io/klog/v2", "k8s.io/utils/clock", "k8s.io/apimachinery/pkg/util/rand", "k8s.io/apimachinery/pkg/util/wait"}
	ofTime := []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTicker", "NewTimer"}
	for _, pkg := range purePackages() {
		t.Run(pkg, func(t *testing.T) {
			dir := filepath.Join("..", "..", "..", filepath.FromSlash(pkg))
			found, err := build.ImportDir(dir, 0)
			if err != nil {
				t.Fatal(err)
			}
			for _, imported := range found.Imports {
				if slices.Contains(acting, imported) {
					t.Errorf("%s imports %s", pkg, imported)
				}
			}
			files := token.NewFileSet()
			for _, name := range found.GoFiles {
				file, err := parser.ParseFile(files, filepath.Join(dir, name), nil, 0)
				if err != nil {
					t.Fatal(err)
				}
				ast.Inspect(file, func(node ast.Node) bool {
					used, ok := node.(*ast.SelectorExpr)
					if !ok {
						return true
					}
					of, _ := used.X.(*ast.Ident)
					if of != nil && (of.Name == "time" && slices.Contains(ofTime, used.Sel.Name) || of.Name == "metav1" && used.Sel.Name == "Now") {
						t.Errorf("%s: %s.%s", files.Position(used.Pos()), of.Name, used.Sel.Name)
					}
					return true
				})
			}
		})
	}
}
