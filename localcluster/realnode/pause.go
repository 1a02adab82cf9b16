package realnode

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"os"
	"runtime"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// pauseImage is the reference of the sandbox image. Nothing ever pulls it.
const pauseImage = "lockstep.local/pause:1"

// writePauseImage packs the binary as an image that containerd can import.
func writePauseImage(binary, target string) error {
	content, err := os.ReadFile(binary)
	if err != nil {
		return fmt.Errorf("reading the pause binary: %w", err)
	}
	var layerTar bytes.Buffer
	w := tar.NewWriter(&layerTar)
	header := &tar.Header{Name: "pause", Mode: 0o755, Size: int64(len(content)), ModTime: time.Unix(0, 0)}
	if err := w.WriteHeader(header); err != nil {
		return fmt.Errorf("packing the pause image: %w", err)
	}
	if _, err := w.Write(content); err != nil {
		return fmt.Errorf("packing the pause image: %w", err)
	}
	if err := w.Close(); err != nil {
		return fmt.Errorf("packing the pause image: %w", err)
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(layerTar.Bytes())), nil
	})
	if err != nil {
		return fmt.Errorf("packing the pause image: %w", err)
	}
	image, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		return fmt.Errorf("packing the pause image: %w", err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		return fmt.Errorf("packing the pause image: %w", err)
	}
	config = config.DeepCopy()
	// Without a platform containerd takes the image for one of another machine.
	config.OS, config.Architecture = "linux", runtime.GOARCH
	config.Config = v1.Config{Entrypoint: []string{"/pause"}}
	image, err = mutate.ConfigFile(image, config)
	if err != nil {
		return fmt.Errorf("packing the pause image: %w", err)
	}
	tag, err := name.NewTag(pauseImage)
	if err != nil {
		return fmt.Errorf("naming the pause image: %w", err)
	}
	if err := tarball.WriteToFile(target, tag, image); err != nil {
		return fmt.Errorf("writing the pause image: %w", err)
	}
	return nil
}
