// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/lockstep-k8s/lockstep/localcluster/build"
	"github.com/lockstep-k8s/lockstep/localcluster/components"
)

const (
	kubernetesURLFlag     = "kubernetes-url"
	kubernetesURLVariable = "LOCKSTEP_KUBERNETES_URL"
)

// programFlags say where the programs of a cluster come from. `build` and `up` have the same, so that the
// one finds what the other has brought.
type programFlags struct {
	cacheDir      string
	installed     bool
	kubernetesURL string
}

func (p *programFlags) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&p.cacheDir, "cache-dir", "", "directory of built components (default $LOCKSTEP_CACHE_DIR, $XDG_CACHE_HOME/lockstep-local or ~/.cache/lockstep-local)")
	f.BoolVar(&p.installed, "installed", false, "instead of building them, use etcd, containerd, runc, CNI plugins and CoreDNS of this machine where their versions fit, and Kubernetes as it is installed or as its project publishes it, of exactly the version")
	f.StringVar(&p.kubernetesURL, kubernetesURLFlag, "", fmt.Sprintf("with --installed, the address or the mirror from which Kubernetes is downloaded; empty has it built (default $%s or %s)", kubernetesURLVariable, build.KubernetesURL))
}

// published is where Kubernetes is downloaded from, or nil if it is to be built.
func (p *programFlags) published(cmd *cobra.Command) (*build.Published, error) {
	given := cmd.Flags().Changed(kubernetesURLFlag)
	if !p.installed {
		if given {
			return nil, errors.New("--" + kubernetesURLFlag + " is given without --installed: all components are built then")
		}
		return nil, nil
	}
	name, address := "--"+kubernetesURLFlag, p.kubernetesURL
	if !given {
		name, address = kubernetesURLVariable, build.KubernetesURL
		if value, ok := os.LookupEnv(kubernetesURLVariable); ok {
			address = value
		}
	}
	published, err := build.ParsePublished(address)
	if err != nil {
		return nil, fmt.Errorf("%s %w", name, err)
	}
	return published, nil
}

// ensure returns the programs of a cluster: with --installed those of the machine where they fit, and
// otherwise those of the cache, into which what is missing is brought.
func (p *programFlags) ensure(cmd *cobra.Command, wanted []components.Component) (build.Binaries, error) {
	published, err := p.published(cmd)
	if err != nil {
		return nil, err
	}
	cacheDir := p.cacheDir
	if cacheDir == "" {
		if cacheDir, err = build.DefaultCacheDir(); err != nil {
			return nil, err
		}
	}
	absolute, err := filepath.Abs(cacheDir)
	if err != nil {
		return nil, fmt.Errorf("--cache-dir: %w", err)
	}
	builder := &build.Builder{CacheDir: absolute, Published: published, Progress: progressTo(cmd.ErrOrStderr(), time.Now())}
	taken := build.Binaries{}
	if p.installed {
		taken = build.FindInstalled(cmd.Context(), wanted, builder.Progress)
	}
	binaries, err := builder.Ensure(cmd.Context(), slices.DeleteFunc(wanted, func(c components.Component) bool { return taken[c.Name] != "" }))
	if err != nil {
		return nil, err
	}
	maps.Copy(binaries, taken)
	return binaries, nil
}
