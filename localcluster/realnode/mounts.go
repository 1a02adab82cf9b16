// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package realnode

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// hidden lists, by parent, the directories that the programs of a node have built in and that
// no flag moves. Each node gets its own, which vanish with it: it must not share them with
// another node, nor with a kubelet or a containerd of the machine.
var hidden = map[string][]string{
	"/run":     {"containerd", "netns", "nri", "runc", sysctlsDir},
	"/var/lib": {"cni", "kubelet"},
	"/var/log": {"containers"},
}

// sysctlsDir is the directory in /run of the files that shield settings.
const sysctlsDir = "lockstep-sysctls"

// isolateMounts gives this mount namespace a /proc of its own, empty directories in place of
// the hidden ones, and settings of the kernel that only seem to change.
func isolateMounts() error {
	// First nothing may get out; then, within the namespace, mounts are shared, because runc
	// wants that of mounts which Pods are to see.
	for _, flags := range []uintptr{unix.MS_REC | unix.MS_PRIVATE, unix.MS_REC | unix.MS_SHARED} {
		if err := unix.Mount("none", "/", "", flags, ""); err != nil {
			return fmt.Errorf("isolating mounts: %w", err)
		}
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mounting /proc: %w", err)
	}
	for parent, names := range hidden {
		if err := hide(parent, names); err != nil {
			return fmt.Errorf("making a private %s: %w", parent, err)
		}
	}
	return shieldSysctls()
}

// hide replaces parent by a directory in memory that shows everything that parent held, apart
// from the given names, which become empty directories. Mounting over the names themselves
// would be simpler, but they would have to exist on the machine, and stay behind.
func hide(parent string, names []string) error {
	// A directory handle goes on showing what parent held once it is covered.
	before, err := os.Open(parent)
	if err != nil {
		return err
	}
	defer before.Close()
	entries, err := before.ReadDir(-1)
	if err != nil {
		return err
	}
	if err := unix.Mount("tmpfs", parent, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=755"); err != nil {
		return err
	}
	isHidden := map[string]bool{}
	for _, name := range names {
		isHidden[name] = true
		if err := os.Mkdir(filepath.Join(parent, name), 0o755); err != nil {
			return err
		}
	}
	for _, entry := range entries {
		if isHidden[entry.Name()] {
			continue
		}
		source := fmt.Sprintf("/proc/self/fd/%d/%s", before.Fd(), entry.Name())
		err := show(source, filepath.Join(parent, entry.Name()), entry.Type())
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // it may be gone by now
			return err
		}
	}
	return nil
}

// show makes source appear at target.
func show(source, target string, kind fs.FileMode) error {
	switch {
	case kind&fs.ModeSymlink != 0:
		link, err := os.Readlink(source)
		if err != nil {
			return err
		}
		return os.Symlink(link, target)
	case kind.IsDir():
		if err := os.Mkdir(target, 0o755); err != nil {
			return err
		}
	default:
		if err := os.WriteFile(target, nil, 0o644); err != nil {
			return err
		}
	}
	return unix.Mount(source, target, "", unix.MS_BIND|unix.MS_REC, "")
}

// shieldedSysctls are settings of the kernel that the kubelet and the CNI plugins insist on.
// They concern the whole machine, and a local cluster can do without.
var shieldedSysctls = map[string]string{
	"vm/overcommit_memory":      "1",
	"vm/panic_on_oom":           "0",
	"kernel/panic":              "10",
	"kernel/panic_on_oops":      "1",
	"kernel/keys/root_maxkeys":  "1000000",
	"kernel/keys/root_maxbytes": "25000000",
	"net/ipv4/ip_forward":       "1",
}

// shieldSysctls puts ordinary files over settings that the programs of the node would change,
// holding what they want to see.
func shieldSysctls() error {
	for name, value := range shieldedSysctls {
		setting := filepath.Join("/proc/sys", name)
		if _, err := os.Stat(setting); err != nil {
			continue // this kernel does not have it, and nobody will set it
		}
		file := filepath.Join("/run", sysctlsDir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return fmt.Errorf("shielding %s: %w", name, err)
		}
		if err := os.WriteFile(file, []byte(value+"\n"), 0o644); err != nil {
			return fmt.Errorf("shielding %s: %w", name, err)
		}
		if err := unix.Mount(file, setting, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("shielding %s: %w", name, err)
		}
	}
	return nil
}
