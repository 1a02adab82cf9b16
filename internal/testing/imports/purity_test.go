// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package imports

import (
	"os/exec"
	"strings"
	"testing"
)

// TestPurePackagesHaveNoClient holds that what decides can't act. docs/architecture.md
// has the packages as pure.
func TestPurePackagesHaveNoClient(t *testing.T) {
	const module = "github.com/lockstep-k8s/lockstep/"
	for _, pkg := range []string{
		"apis/framework/statuscodec",
		"controller/engine/plan",
		"controller/history",
		"controller/jobpods",
		"controller/lifecycle",
		"controller/pacing",
		"controller/volcano",
		"internal/controlled",
		"internal/text",
		"internal/times",
		"podgroup",
		"scheduler-plugin/coscheduling/gangs",
		"scheduler-plugin/coscheduling/line",
		"scheduler-plugin/coscheduling/news",
		"scheduler-plugin/coscheduling/planner",
		"scheduler-plugin/coscheduling/podwatch",
		"scheduler-plugin/coscheduling/victims",
	} {
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
