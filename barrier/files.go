// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package barrier

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"k8s.io/klog/v2"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
)

// file is a file to be written.
type file struct {
	name    string
	mode    fs.FileMode
	content []byte
}

// render makes the files of a Framework that has passed.
func render(framework *frameworkv1.Framework) ([]file, error) {
	object, err := RenderFramework(framework)
	if err != nil {
		return nil, err
	}
	injector, err := RenderInjector(framework)
	if err != nil {
		return nil, err
	}
	return []file{
		{name: "framework.json", mode: 0o644, content: object},
		{name: "injector.sh", mode: 0o755, content: injector},
	}, nil
}

// writeAll writes the files to the working directory, and then to outputDir,
// which it makes. FrameworkController's barrier does both, the latter by a script
// of its image. In an image that runs as an ordinary user, or on a read-only root,
// the working directory can't be written, and nobody needs it to be.
func writeAll(ctx context.Context, files []file, outputDir string) error {
	if err := write(ctx, files, "."); errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
		klog.FromContext(ctx).V(2).Info("Left the working directory as it is", "reason", err.Error())
	} else if err != nil {
		return err
	}
	if err := os.MkdirAll(outputDir, 0o755); err != nil {
		return fmt.Errorf("making the folder of %s: %w", EnvOutputDir, err)
	}
	return write(ctx, files, outputDir)
}

func write(ctx context.Context, files []file, dir string) error {
	for _, f := range files {
		path := filepath.Join(dir, f.name)
		if err := os.WriteFile(path, f.content, f.mode); err != nil {
			return fmt.Errorf("writing a file: %w", err)
		}
		// The containers that read it may run as other users, whatever the umask.
		if err := os.Chmod(path, f.mode); err != nil {
			return fmt.Errorf("opening a file to other users: %w", err)
		}
		klog.FromContext(ctx).Info("Wrote a file", "path", path, "mode", f.mode, "bytes", len(f.content))
	}
	return nil
}
