// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package realnode

import "github.com/lockstep-k8s/lockstep/localcluster/image"

// pauseReference names the sandbox image. Nothing ever pulls it: it is packed on the machine
// that uses it.
const pauseReference = "lockstep.local/pause:1"

// writePauseImage packs the binary of the sandbox as an image that containerd can import.
func writePauseImage(binary, target string) error {
	return image.Image{
		Reference:  pauseReference,
		Binaries:   []image.File{{Path: "/pause", Source: binary}},
		Entrypoint: []string{"/pause"},
	}.Write(target)
}
