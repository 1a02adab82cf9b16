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

// site is a host whose programs may come from a mirror. A flag names the mirror; without the flag, a variable of the
// environment does.
type site struct {
	host           components.Host
	has            string
	flag, variable string
}

var sites = []site{
	{components.KubernetesHost, "Kubernetes", "kubernetes-url", "LOCKSTEP_KUBERNETES_URL"},
	{components.GitHub, "etcd, containerd, runc, CNI plugins, CoreDNS and KWOK", "github-url", "LOCKSTEP_GITHUB_URL"},
}

// programFlags say where the programs of a cluster come from. `build` and `up` have the same, so that the
// one finds what the other has brought.
type programFlags struct {
	cacheDir  string
	installed bool
	// downloadOnly has nothing compiled.
	downloadOnly bool
	// addresses are the values of the flags of sites.
	addresses map[components.Host]*string
}

func (p *programFlags) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&p.cacheDir, "cache-dir", "", "directory of built components (default $LOCKSTEP_CACHE_DIR, $XDG_CACHE_HOME/lockstep-local or ~/.cache/lockstep-local)")
	f.BoolVar(&p.installed, "installed", false, "instead of building them, use etcd, containerd, runc, CNI plugins and CoreDNS of this machine where their versions fit, Kubernetes of exactly the version, and else what their projects publish")
	p.addresses = map[components.Host]*string{}
	for _, s := range sites {
		p.addresses[s.host] = f.String(s.flag, "", fmt.Sprintf("with --installed, the address or the mirror from which to download %s; empty builds what it has (default $%s or %s)", s.has, s.variable, s.host))
	}
}

// sites are where programs are downloaded; none if all are to be built.
func (p *programFlags) sites(cmd *cobra.Command) (map[components.Host]*build.Site, error) {
	found := map[components.Host]*build.Site{}
	for _, s := range sites {
		given := cmd.Flags().Changed(s.flag)
		if !p.installed {
			if given {
				return nil, errors.New("--" + s.flag + " is given without --installed: all components are built then")
			}
			continue
		}
		name, address := "--"+s.flag, *p.addresses[s.host]
		if !given {
			name, address = s.variable, string(s.host)
			if value, ok := os.LookupEnv(s.variable); ok {
				address = value
			}
		}
		site, err := build.ParseSite(s.host, address)
		if err != nil {
			return nil, fmt.Errorf("%s %w", name, err)
		}
		if site != nil {
			found[s.host] = site
		}
	}
	return found, nil
}

// ensure returns the programs of a cluster: with --installed those of the machine where they fit, and
// otherwise those of the cache, into which what is missing is brought.
func (p *programFlags) ensure(cmd *cobra.Command, wanted []components.Component) (build.Binaries, error) {
	sites, err := p.sites(cmd)
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
	builder := &build.Builder{CacheDir: absolute, Sites: sites, DownloadOnly: p.downloadOnly, Progress: progressTo(cmd.ErrOrStderr(), time.Now())}
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
