// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Command registry is a registry of images in memory, by which a release is tried: registry ADDRESS, such as 127.0.0.1:5001.
package main

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: registry ADDRESS")
		os.Exit(2)
	}
	server := &http.Server{
		Addr:              os.Args[1],
		Handler:           registry.New(registry.Logger(log.New(io.Discard, "", 0))),
		ReadHeaderTimeout: 10 * time.Second,
	}
	fmt.Fprintln(os.Stderr, "registry:", server.ListenAndServe())
	os.Exit(1)
}
