// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lockstep-k8s/lockstep/localcluster/components"
)

// askTimeout bounds how long a program may take to print its version. A large one on a busy machine, beside
// compilers, takes seconds.
const askTimeout = 15 * time.Second

// FindInstalled returns the programs of the machine that may stand in for wanted components, and tells
// which ones. Those of one project are taken together or not at all: they have to fit each other.
func FindInstalled(ctx context.Context, wanted []components.Component, progress func(format string, args ...any)) Binaries {
	found := Binaries{}
	for _, group := range byPin(wanted) {
		programs, about := installedGroup(ctx, group)
		for name, path := range programs {
			found[name] = path
			progress("%s %s of this machine is used: %s", name, about[name], path)
		}
	}
	return found
}

// installedGroup finds all components of a pin, or none. It also tells their versions.
func installedGroup(ctx context.Context, group []components.Component) (Binaries, map[string]string) {
	found, versions := Binaries{}, map[string]string{}
	for _, c := range group {
		how, ok := c.Installed()
		if !ok {
			return nil, nil
		}
		path := lookFor(c.Name, how.Folders)
		if path == "" {
			return nil, nil
		}
		version, err := how.Fits(ask(ctx, path, how.Ask))
		if err != nil {
			return nil, nil
		}
		found[c.Name], versions[c.Name] = path, version
	}
	return found, versions
}

// lookFor returns the path of a program in one of the folders, which are those of PATH if none are
// given; empty if there is none.
func lookFor(name string, folders []string) string {
	if folders == nil {
		folders = filepath.SplitList(os.Getenv("PATH"))
	}
	for _, folder := range folders {
		path, err := exec.LookPath(filepath.Join(folder, name))
		if err == nil && filepath.IsAbs(path) {
			return lasting(path)
		}
	}
	return ""
}

// lasting follows a link to a program of the same name: the bin folder of another cluster, which users have
// in their PATH, goes with that cluster. A link to another name may be how a program tells what it is to be.
func lasting(path string) string {
	target, err := filepath.EvalSymlinks(path)
	if err != nil || filepath.Base(target) != filepath.Base(path) {
		return path
	}
	return target
}

// ask returns what a program prints about itself. Its exit code does not matter: a CNI plugin that is
// asked nothing may call that a mistake.
func ask(ctx context.Context, path string, args []string) string {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	for {
		cmd := exec.CommandContext(ctx, path, args...)
		cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return len(v) > 4 && v[:4] == "CNI_" })
		cmd.WaitDelay = time.Second
		out, err := cmd.CombinedOutput()
		// A process that was started while the program was written may still hold it open for a moment.
		if errors.Is(err, unix.ETXTBSY) && ctx.Err() == nil {
			continue
		}
		return string(out)
	}
}
