// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Command release makes what a release of Lockstep consists of, without a container engine: for
// each program an image for amd64 and arm64, as an OCI layout, and a list of what is in it (SBOM); the
// plugin of kubectl, with a manifest for krew; and the wheel of the Python package. hack/release.sh puts all of it together.
// The same source and the same version of Go make the same bytes. It is a module of its own, so
// that Lockstep does not depend on what it needs.
package main

import (
	"context"
	"crypto/ecdsa"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// programs are those of a release.
var programs = []program{
	{Image: "controller", Binary: "lockstep-controller", Package: "./cmd/controller", Description: "Runs Frameworks: gangs of Pods that start whole, with retries."},
	{Image: "scheduler", Binary: "lockstep-scheduler", Package: "./cmd/scheduler", Description: "kube-scheduler that places gangs of Pods whole."},
	{Image: "dashboard", Binary: "lockstep-dashboard", Package: "./cmd/dashboard", Description: "Serves a web page of jobs with each visitor's own rights."},
	{Image: "frameworkbarrier", Binary: "frameworkbarrier", Package: "./cmd/frameworkbarrier", Description: "Has the tasks of a Framework wait for each other."},
}

// architectures are those that images are made for.
var architectures = []string{"amd64", "arm64"}

// pushing is how long a push of all images may take.
const pushing = 30 * time.Minute

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(args []string, log io.Writer) error {
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	source := flags.String("source", ".", "folder of the source")
	out := flags.String("out", "dist/images", "folder to write; what is in it is replaced")
	version := flags.String("version", "", "version, which is the tag of the images")
	ldflags := flags.String("ldflags", "", "flags of Go's linker")
	registry := flags.String("push", "", "where to push the images, such as registry.example.com/lockstep; with the credentials of `docker login`")
	address := flags.String("krew", "", "make no images, but the plugin of kubectl and its manifest for krew: the address below which the archives will be, such as https://example.com/v1")
	isWheel := flags.Bool("wheel", false, "make no images, but the wheel of the Python package")
	keyFile := flags.String("sign", "", "file of a private key, ECDSA on P-256 in PEM, to sign the lists of parts with")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *version == "" || flags.NArg() > 0 {
		return fmt.Errorf("-version is needed, and no arguments")
	}
	var key *ecdsa.PrivateKey
	if *keyFile != "" {
		var err error
		if key, err = readKey(*keyFile); err != nil {
			return err
		}
	}
	// Before anything is removed.
	if *isWheel {
		if _, err := pythonVersion(*version); err != nil {
			return err
		}
	}
	if *address != "" {
		if err := checkKrew(*version, *address); err != nil {
			return err
		}
	}
	revision, created, err := commit(*source)
	if err != nil {
		return err
	}
	if err := os.RemoveAll(*out); err != nil {
		return err
	}
	r := release{
		Source: *source, Out: *out, Version: *version, Revision: revision, Created: created,
		LDFlags: *ldflags, System: "linux", Architectures: architectures,
	}
	if *isWheel {
		file, err := r.wheel()
		fmt.Fprintln(log, file)
		return err
	}
	if *address != "" {
		files, err := r.krew(plugin, *address)
		for _, file := range files {
			fmt.Fprintln(log, file)
		}
		return err
	}
	for _, p := range programs {
		digest, err := r.make(p)
		if err != nil {
			return fmt.Errorf("making the image of %s: %w", p.Image, err)
		}
		fmt.Fprintf(log, "%s %s\n", filepath.Join(*out, p.Image), digest)
	}
	if key != nil {
		if err := signAll(filepath.Join(*out, "sbom"), key); err != nil {
			return err
		}
	}
	if *registry == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), pushing)
	defer cancel()
	for _, p := range programs {
		pushed, err := r.push(ctx, p, *registry)
		if err != nil {
			return fmt.Errorf("pushing the image of %s: %w", p.Image, err)
		}
		fmt.Fprintln(log, "pushed", pushed)
	}
	return nil
}

// commit is the revision of the source, and when it was made: the only time that is in an image.
func commit(source string) (revision string, created time.Time, err error) {
	git := exec.Command("git", "-C", source, "log", "-1", "--format=%H %cI")
	git.Stderr = os.Stderr
	out, err := git.Output()
	if err != nil {
		return "", time.Time{}, fmt.Errorf("asking git for the commit: %w", err)
	}
	revision, when, _ := strings.Cut(strings.TrimSpace(string(out)), " ")
	created, err = time.Parse(time.RFC3339, when)
	return revision, created.UTC(), err
}
