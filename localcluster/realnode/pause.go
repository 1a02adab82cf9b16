// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package realnode

import "github.com/lockstep-k8s/lockstep/localcluster/image"

// pauseImage is the reference of the sandbox image. Nothing ever pulls it.
const pauseImage = "lockstep.local/pause:1"

// writePauseImage packs the binary as an image that containerd can import.
func writePauseImage(binary, target string) error {
	return image.Image{
		Reference:  pauseImage,
		Binaries:   []image.File{{Path: "/pause", Source: binary}},
		Entrypoint: []string{"/pause"},
	}.Write(target)
}
