// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package realnode

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// CgroupName is the cgroup under which the kubelet of the cluster in dir keeps its Pods.
func CgroupName(dir string) string {
	sum := sha256.Sum256([]byte(dir))
	return "lockstep-local-" + hex.EncodeToString(sum[:4])
}

// hierarchy is a mounted cgroup file system.
type hierarchy struct {
	mount string
	// v2 says that it is the unified one.
	v2 bool
}

// createCgroup makes the cgroup in every hierarchy: the kubelet wants its root to exist.
func createCgroup(name string) error {
	hierarchies, err := hierarchies()
	if err != nil {
		return err
	}
	for _, h := range hierarchies {
		dir := filepath.Join(h.mount, name)
		if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("making a cgroup: %w", err)
		}
		if h.v2 {
			enableControllers(h.mount)
			enableControllers(dir)
		} else {
			inheritCpuset(h.mount, dir)
		}
	}
	return nil
}

// enableControllers hands all controllers of a v2 cgroup on to its children. The kubelet says
// what is missing if one of those that it needs cannot be had.
func enableControllers(dir string) {
	available, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
	if err != nil {
		return
	}
	for controller := range strings.FieldsSeq(string(available)) {
		os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+"+controller), 0o644)
	}
}

// inheritCpuset fills in what a new v1 cpuset lacks: it has no processors at first, and no
// process can be put into it or below. In other hierarchies the files do not exist.
func inheritCpuset(parent, dir string) {
	for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
		content, err := os.ReadFile(filepath.Join(parent, file))
		if err == nil {
			os.WriteFile(filepath.Join(dir, file), content, 0o644)
		}
	}
}

// removeCgroup removes the cgroup with all below it. The processes in it have been killed, but
// the kernel may take a moment to let go of them.
func removeCgroup(name string) error {
	hierarchies, err := hierarchies()
	if err != nil {
		return err
	}
	var failed error
	for _, h := range hierarchies {
		if err := removeTree(filepath.Join(h.mount, name), time.Now().Add(10*time.Second)); err != nil {
			failed = errors.Join(failed, err)
		}
	}
	return failed
}

// removeTree removes the directories of a cgroup, children first. The files in them belong to
// the kernel.
func removeTree(root string, deadline time.Time) error {
	var dirs []string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			return err
		}
		if entry.IsDir() {
			dirs = append(dirs, path)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("listing cgroups: %w", err)
	}
	slices.Reverse(dirs)
	for _, dir := range dirs {
		for {
			err := os.Remove(dir)
			if err == nil || errors.Is(err, fs.ErrNotExist) {
				break
			}
			if time.Now().After(deadline) {
				return fmt.Errorf("removing a cgroup: %w", err)
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
	return nil
}

// hierarchies lists the mounted cgroup file systems.
func hierarchies() ([]hierarchy, error) {
	f, err := os.Open("/proc/self/mounts")
	if err != nil {
		return nil, fmt.Errorf("listing mounts: %w", err)
	}
	defer f.Close()
	var out []hierarchy
	for scanner := bufio.NewScanner(f); scanner.Scan(); {
		fields := strings.Fields(scanner.Text())
		if len(fields) < 3 {
			continue
		}
		if kind := fields[2]; kind == "cgroup" || kind == "cgroup2" {
			out = append(out, hierarchy{mount: fields[1], v2: kind == "cgroup2"})
		}
	}
	if len(out) == 0 {
		return nil, errors.New("no cgroup file system is mounted, and a real node needs one")
	}
	return out, nil
}
