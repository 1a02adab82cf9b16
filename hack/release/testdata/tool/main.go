// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Command tool is what the tests make a release of: small, and with a dependency.
package main

import specs "github.com/opencontainers/image-spec/specs-go"

func main() { println(specs.Version) }
