// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Command pack-image packs static binaries into a container image:
//
//	pack-image --name example.com/tool:v1 --out tool.tar \
//	  --binary /bin/tool=build/tool --link /bin/sh=/bin/tool --entrypoint /bin/tool
package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"github.com/lockstep-k8s/lockstep/localcluster/image"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "pack-image: %v\n", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	flags := pflag.NewFlagSet("pack-image", pflag.ContinueOnError)
	var i image.Image
	flags.StringVar(&i.Reference, "name", "", "name and tag of the image")
	out := flags.String("out", "", "tar file to write")
	binaries := flags.StringArray("binary", nil, "PATH=FILE: the path in the image of a program of this machine")
	links := flags.StringArray("link", nil, "PATH=TARGET: a symbolic link in the image")
	flags.StringSliceVar(&i.Entrypoint, "entrypoint", nil, "what a container without a command runs")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if i.Reference == "" || *out == "" || len(*binaries) == 0 {
		return fmt.Errorf("--name, --out and at least one --binary are needed")
	}
	var err error
	if i.Binaries, err = files("--binary", *binaries); err != nil {
		return err
	}
	if i.Links, err = files("--link", *links); err != nil {
		return err
	}
	return i.Write(*out)
}

func files(flag string, pairs []string) ([]image.File, error) {
	var files []image.File
	for _, pair := range pairs {
		path, source, ok := strings.Cut(pair, "=")
		if !ok || !strings.HasPrefix(path, "/") || source == "" {
			return nil, fmt.Errorf("%s %q: want an absolute path in the image, =, and what it stands for", flag, pair)
		}
		files = append(files, image.File{Path: path, Source: source})
	}
	return files, nil
}
