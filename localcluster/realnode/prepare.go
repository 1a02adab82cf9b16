// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package realnode makes a node that runs containers on the machine at hand: kubelet,
// containerd, runc and a bridge, without anything installed.
//
// The runtime and the kubelet run in a PID and a mount namespace of their own, under an init
// that this package provides (Init). When that init dies, by whatever hand, the kernel kills
// every container and drops every mount of the node. What namespaces do not hold, the bridge
// and the cgroups, is marked as belonging to the cluster's directory; Cleanup finds it by that
// mark, without a record that could be lost.
package realnode

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/lockstep-k8s/lockstep/localcluster/cluster"
	"github.com/lockstep-k8s/lockstep/localcluster/components"
)

// CheckPrerequisites tells in one line why a real node cannot be had here.
func CheckPrerequisites() error {
	if runtime.GOOS != "linux" {
		return fmt.Errorf("--real-node needs Linux, this is %s: use --simulated-nodes", runtime.GOOS)
	}
	if os.Geteuid() != 0 {
		return errors.New("--real-node needs root: run as root, or use --simulated-nodes")
	}
	if _, err := hierarchies(); err != nil {
		return fmt.Errorf("--real-node: %w", err)
	}
	return nil
}

// initPlan is what Init needs to know. It lies in a file of the node's directory.
type initPlan struct {
	Runtime command `json:"runtime"`
	// Socket is where the runtime listens.
	Socket string `json:"socket"`
	// Import brings the sandbox image into the runtime.
	Import  command `json:"import"`
	Kubelet command `json:"kubelet"`
}

type command struct {
	Path string   `json:"path"`
	Args []string `json:"args"`
	Log  string   `json:"log"`
}

// Prepare writes all files of the node, makes its cgroup, and returns the file to start Init
// with.
func Prepare(plan *cluster.Plan) (planFile string, err error) {
	l := plan.Layout
	for _, dir := range []string{l.NodePath("containerd"), l.NodePath("kubelet"), l.NodePath("bin"), l.NodePath("cni", "conf"), l.NodePath("pod-logs"), l.NodePath("static-pods")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return "", fmt.Errorf("making a directory of the node: %w", err)
		}
	}
	// runc-unconfined looks for runc beside it, and containerd for plugins in one directory.
	for _, name := range []string{components.CNIBridge, components.CNILoopback, components.CNIHostLocal, components.Runc, components.RuncUnconfined} {
		if err := os.Symlink(plan.Binaries[name], l.NodePath("bin", name)); err != nil {
			return "", fmt.Errorf("linking %s: %w", name, err)
		}
	}
	if err := writePauseImage(plan.Binaries[components.Pause], l.NodePath("pause.tar")); err != nil {
		return "", err
	}
	cgroup := CgroupName(l.Dir)
	if err := createCgroup(cgroup); err != nil {
		return "", err
	}
	if err := writeConfigs(plan, cgroup); err != nil {
		return "", err
	}
	content, err := json.MarshalIndent(newInitPlan(plan), "", "  ")
	if err != nil {
		return "", fmt.Errorf("encoding the plan of the node: %w", err)
	}
	planFile = l.NodePath("init.json")
	return planFile, write(planFile, string(content))
}

func writeConfigs(plan *cluster.Plan, cgroup string) error {
	l := plan.Layout
	snapshotter, err := chooseSnapshotter(l.Node())
	if err != nil {
		return err
	}
	runc, err := chooseRunc(plan)
	if err != nil {
		return err
	}
	cni, err := cniConfig(plan)
	if err != nil {
		return err
	}
	kubelet, err := kubeletConfig(plan, cgroup, runtime.NumCPU())
	if err != nil {
		return err
	}
	for path, content := range map[string]string{
		l.NodePath("containerd.toml"):                     containerdConfig(plan, snapshotter, runc),
		l.NodePath("cni", "conf", "10-lockstep.conflist"): cni,
		l.NodePath("kubelet.json"):                        kubelet,
		// Empty: without a search domain of the machine, and CoreDNS is named by clusterDNS.
		l.NodePath("resolv.conf"): "",
	} {
		if err := write(path, content); err != nil {
			return err
		}
	}
	return nil
}

func newInitPlan(plan *cluster.Plan) initPlan {
	l := plan.Layout
	return initPlan{
		Socket: l.ContainerdSocket(),
		Runtime: command{
			Path: plan.Binaries[components.Containerd],
			Args: []string{"--config", l.NodePath("containerd.toml"), "--log-level", "warn"},
			Log:  l.Log(components.Containerd),
		},
		Import: command{
			Path: plan.Binaries[components.Ctr],
			Args: importArgs(l, l.NodePath("pause.tar")),
			Log:  l.Log(components.Containerd),
		},
		Kubelet: command{
			Path: plan.Binaries[components.Kubelet],
			Args: []string{
				"--config=" + l.NodePath("kubelet.json"),
				"--kubeconfig=" + l.ComponentKubeconfig(components.Kubelet),
				"--hostname-override=" + cluster.RealNodeName,
				"--node-ip=" + plan.Network.Bridge().String(),
				"--root-dir=" + l.NodePath("kubelet"),
				"--cert-dir=" + l.NodePath("kubelet", "pki"),
			},
			Log: l.Log(components.Kubelet),
		},
	}
}

// importArgs are arguments of ctr to import a tar of images where the kubelet finds them.
func importArgs(l cluster.Layout, tar string) []string {
	return []string{"--address", l.ContainerdSocket(), "--namespace", "k8s.io", "images", "import", "--local", tar}
}

// chooseSnapshotter returns containerd's snapshotter for a directory: overlayfs, unless the
// directory lies on an overlay itself (as in a container), which cannot hold another one.
func chooseSnapshotter(dir string) (string, error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return "", fmt.Errorf("asking for the file system of %s: %w", dir, err)
	}
	if fs.Type == unix.OVERLAYFS_SUPER_MAGIC {
		return "native", nil
	}
	return "overlayfs", nil
}

// chooseRunc returns the runc that containerd is to call: one that was built without libseccomp
// needs a helper. `runc --version` names the library if it has it.
func chooseRunc(plan *cluster.Plan) (string, error) {
	out, err := exec.Command(plan.Binaries[components.Runc], "--version").Output()
	if err != nil {
		return "", fmt.Errorf("asking runc for its version: %w", err)
	}
	if bytes.Contains(out, []byte("libseccomp")) {
		return plan.Layout.NodePath("bin", components.Runc), nil
	}
	return plan.Layout.NodePath("bin", components.RuncUnconfined), nil
}

// Cleanup removes what a node of the cluster may have left outside its directory. The
// processes of the node must be gone. A cluster whose Layout.Node does not exist had no node;
// whoever makes one creates that directory first, and removes it last.
func Cleanup(l cluster.Layout) error {
	if _, err := os.Stat(l.Node()); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return errors.Join(RemoveBridges(l.Dir), removeCgroup(CgroupName(l.Dir)))
}

func write(path, content string) error {
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		return fmt.Errorf("writing %s: %w", filepath.Base(path), err)
	}
	return nil
}
