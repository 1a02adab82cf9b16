// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package localenv

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
)

// Controller is a lockstep-controller that was started beside a cluster that runs
// none.
type Controller struct {
	*Process
}

// ControllerOptions are how a controller is started.
type ControllerOptions struct {
	// Config is the content of the configuration file; empty means no file.
	Config string
	// Kubeconfig is the path of the kubeconfig that the controller uses. Empty means the rights of its service account,
	// as in the manifests.
	Kubeconfig string
	// Args are further arguments.
	Args []string
	// Program is the path of another lockstep-controller than the one in PATH.
	Program string
}

// StartController starts lockstep-controller and returns at once. The controller is killed when ctx ends.
func (c *Cluster) StartController(ctx context.Context, o ControllerOptions) (*Controller, error) {
	if o.Kubeconfig == "" {
		o.Kubeconfig = filepath.Join(c.Dir, "kubeconfigs", "controller")
	}
	dir, err := os.MkdirTemp(c.Dir, "controller-")
	if err != nil {
		return nil, fmt.Errorf("making a folder for a controller: %w", err)
	}
	args := append([]string{"--kubeconfig", o.Kubeconfig, "--health-address", "127.0.0.1:0", "--secure-port", "0"}, o.Args...)
	if o.Config != "" {
		config := filepath.Join(dir, "config.yaml")
		if err := os.WriteFile(config, []byte(o.Config), 0o600); err != nil {
			return nil, fmt.Errorf("writing the configuration of a controller: %w", err)
		}
		args = append(args, "--config", config)
	}
	process, err := Start(ctx, filepath.Join(dir, "log"), cmp.Or(o.Program, "lockstep-controller"), args...)
	if err != nil {
		return nil, err
	}
	return &Controller{process}, nil
}

// healthAddress reads from the log where the controller serves health.
var healthAddress = regexp.MustCompile(`"Serving health and metrics" address="([^"]+)"`)

// Address returns where the controller serves health and metrics, host:port; empty before that.
func (p *Controller) Address() (string, error) {
	log, err := p.Log()
	if err != nil {
		return "", err
	}
	if found := healthAddress.FindStringSubmatch(log); found != nil {
		return found[1], nil
	}
	return "", nil
}

// WaitReady waits until the controller reports ready.
func (p *Controller) WaitReady(ctx context.Context) error {
	return Await(ctx, "the controller to be ready", func(ctx context.Context) (bool, string, error) {
		address, err := p.Address()
		if err != nil || address == "" {
			return false, "it does not serve yet", err
		}
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/readyz", nil)
		if err != nil {
			return false, "", err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return false, "", err
		}
		defer response.Body.Close()
		return response.StatusCode == http.StatusOK, response.Status, nil
	})
}
