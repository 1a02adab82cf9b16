// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Command runc-unconfined is a runc that leaves out system call filters: it removes them from
// the specification of a container and becomes the runc that lies beside it.
//
// It is for a runc that was built without libseccomp, which refuses every specification with a
// filter; and the kubelet asks for one for each sandbox.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

func main() {
	fmt.Fprintf(os.Stderr, "runc-unconfined: %v\n", become())
	os.Exit(1)
}

// become turns this process into runc; it returns only if that fails.
func become() error {
	if bundle, ok := bundleOf(os.Args[1:]); ok {
		if err := removeFilter(filepath.Join(bundle, "config.json")); err != nil {
			return err
		}
	}
	runc := filepath.Join(filepath.Dir(os.Args[0]), "runc")
	return fmt.Errorf("running %s: %w", runc, syscall.Exec(runc, append([]string{runc}, os.Args[1:]...), os.Environ()))
}

// bundleOf finds the argument that names the folder with the specification.
func bundleOf(args []string) (string, bool) {
	for i, arg := range args {
		if value, ok := strings.CutPrefix(arg, "--bundle="); ok {
			return value, true
		}
		if arg == "--bundle" && i+1 < len(args) {
			return args[i+1], true
		}
	}
	return "", false
}

// removeFilter removes linux.seccomp from a specification and leaves all else as it is.
func removeFilter(path string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var spec, linux map[string]json.RawMessage
	if err := json.Unmarshal(content, &spec); err != nil {
		return fmt.Errorf("reading %s: %w", path, err)
	}
	if spec["linux"] == nil {
		return nil
	}
	if err := json.Unmarshal(spec["linux"], &linux); err != nil {
		return fmt.Errorf("reading %s: %w", path, err)
	}
	delete(linux, "seccomp")
	if spec["linux"], err = json.Marshal(linux); err != nil {
		return err
	}
	if content, err = json.Marshal(spec); err != nil {
		return err
	}
	return os.WriteFile(path, content, 0o644)
}
