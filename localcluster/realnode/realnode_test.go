// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package realnode

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/lockstep-k8s/lockstep/localcluster/cluster"
)

func testPlan() *cluster.Plan {
	return &cluster.Plan{
		Options: cluster.Options{Dir: "/state/c", RealNode: true},
		Layout:  cluster.Layout{Dir: "/state/c"},
		Ports:   cluster.Ports{Kubelet: 20008, KubeletHealth: 20009},
		Network: cluster.Network{X: 150},
	}
}

func TestKubeletReservesWhatPodsMayNotHave(t *testing.T) {
	tests := map[string]struct {
		cpu  string
		want string
	}{
		"all processors by default": {"", ""},
		"one of four":               {"1", "3"},
		"half a processor":          {"500m", "3500m"},
		"as many as there are":      {"4", ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			plan := testPlan()
			if tc.cpu != "" {
				q := resource.MustParse(tc.cpu)
				plan.Options.RealNodeCPU = &q
			}
			content, err := kubeletConfig(plan, "group", 4)
			if err != nil {
				t.Fatal(err)
			}
			var config struct {
				SystemReserved map[string]string `json:"systemReserved"`
				CgroupRoot     string            `json:"cgroupRoot"`
			}
			if err := json.Unmarshal([]byte(content), &config); err != nil {
				t.Fatal(err)
			}
			if got := config.SystemReserved["cpu"]; got != tc.want {
				t.Errorf("reserved %q, want %q", got, tc.want)
			}
			if config.CgroupRoot != "/group" {
				t.Errorf("cgroup root %q", config.CgroupRoot)
			}
		})
	}
}

func TestEachDirHasACgroupOfItsOwn(t *testing.T) {
	if a, b := CgroupName("/a"), CgroupName("/b"); a == b {
		t.Errorf("two directories share cgroup %s", a)
	}
}

func TestRemoveTreeRemovesChildrenFirst(t *testing.T) {
	root := filepath.Join(t.TempDir(), "group")
	if err := os.MkdirAll(filepath.Join(root, "pods", "a", "b"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := removeTree(root, time.Now()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(root); !os.IsNotExist(err) {
		t.Error("the tree is still there")
	}
	if err := removeTree(root, time.Now()); err != nil {
		t.Errorf("removing what is gone: %v", err)
	}
}

func TestInitRefusesToRunOutsideItsNamespace(t *testing.T) {
	if err := Init("none"); err == nil || !strings.Contains(err.Error(), "process 1") {
		t.Errorf("error %v", err)
	}
}

func TestPodsGetAddressesBehindTheBridge(t *testing.T) {
	content, err := cniConfig(testPlan())
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"subnet": "10.150.0.0/24"`, `"rangeStart": "10.150.0.2"`, `"gateway": "10.150.0.1"`, `"dataDir": "/state/c/node/cni/addresses"`} {
		if !strings.Contains(content, want) {
			t.Errorf("no %s in\n%s", want, content)
		}
	}
}
