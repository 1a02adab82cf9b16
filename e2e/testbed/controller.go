// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// Controller is a lockstep-controller that a test has started itself, on a
// cluster that runs none.
type Controller struct {
	cmd *exec.Cmd
	log string
	// ended is closed when the process is gone; err is how it ended.
	ended chan struct{}
	err   error
}

// ControllerOptions are how a controller is started.
type ControllerOptions struct {
	// Config is the configuration file's content; empty means no file.
	Config string
	// Kubeconfig is that of the user as whom the controller comes; empty means its
	// own service account, with the rights that the manifests give it.
	Kubeconfig string
	// Args are further arguments.
	Args []string
}

// StartController starts lockstep-controller and returns at once. When the test
// ends, it is killed if it still runs; if the test failed, the end of its log is
// told.
func (c *Cluster) StartController(t testing.TB, o ControllerOptions) *Controller {
	t.Helper()
	if o.Kubeconfig == "" {
		o.Kubeconfig = filepath.Join(c.Dir, "kubeconfigs", "controller")
	}
	dir := t.TempDir()
	args := append([]string{"--kubeconfig", o.Kubeconfig, "--health-address", "127.0.0.1:0"}, o.Args...)
	if o.Config != "" {
		config := filepath.Join(dir, "config.yaml")
		if err := os.WriteFile(config, []byte(o.Config), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, "--config", config)
	}
	p := &Controller{cmd: exec.Command("lockstep-controller", args...), log: filepath.Join(dir, "log"), ended: make(chan struct{})}
	log, err := os.Create(p.log)
	if err != nil {
		t.Fatal(err)
	}
	p.cmd.Stdout, p.cmd.Stderr = log, log
	err = p.cmd.Start()
	log.Close()
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.ended)
	}()
	t.Cleanup(func() {
		p.Kill()
		if t.Failed() {
			t.Logf("log of the controller with process %d:\n%s", p.cmd.Process.Pid, tail(p.Log(t), 8000))
		}
	})
	return p
}

// Kill ends the controller as a crash would.
func (p *Controller) Kill() {
	_ = p.cmd.Process.Kill() // or it has ended already
	<-p.ended
}

// Terminate asks the controller to end, as a kubelet does, and returns how it
// ended.
func (p *Controller) Terminate(t testing.TB) error {
	t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	Eventually(t, "the controller to end", func(context.Context) (bool, string, error) {
		return p.Ended(), "it runs", nil
	})
	return p.err
}

// Ended says whether the controller has ended.
func (p *Controller) Ended() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// Log is what the controller has written so far.
func (p *Controller) Log(t testing.TB) string {
	t.Helper()
	log, err := os.ReadFile(p.log)
	if err != nil {
		t.Fatal(err)
	}
	return string(log)
}

// WaitLog waits until the controller has written a text.
func (p *Controller) WaitLog(t testing.TB, text string) {
	t.Helper()
	Eventually(t, fmt.Sprintf("the controller to log %q", text), func(context.Context) (bool, string, error) {
		log := p.Log(t)
		if strings.Contains(log, text) {
			return true, "", nil
		}
		if p.Ended() {
			return false, tail(log, 2000), fmt.Errorf("it has ended: %w", p.err)
		}
		return false, tail(log, 2000), nil
	})
}

// healthAddress finds where the controller says that it serves its health.
var healthAddress = regexp.MustCompile(`"Serving health and metrics" address="([^"]+)"`)

// WaitReady waits until the controller says that it is ready.
func (p *Controller) WaitReady(t testing.TB) {
	t.Helper()
	Eventually(t, "the controller to be ready", func(ctx context.Context) (bool, string, error) {
		found := healthAddress.FindStringSubmatch(p.Log(t))
		if found == nil {
			return false, "it does not serve yet", nil
		}
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+found[1]+"/readyz", nil)
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
