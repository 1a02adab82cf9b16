// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/lockstep-k8s/lockstep/internal/localenv"
)

// RunDashboard starts a lockstep-dashboard until the test ends, and returns its address. It has the
// rights of manifests/dashboard and no others. More args are added to its command line.
func (c *Cluster) RunDashboard(t testing.TB, args ...string) string {
	t.Helper()
	rendered, err := c.Kubectl(t.Context(), "kustomize", "../../manifests/dashboard")
	if err != nil {
		t.Fatal(err, rendered)
	}
	manifest := filepath.Join(t.TempDir(), "dashboard.yaml")
	// The Deployment has no node that would run it: the program runs here, with its service account.
	if err := os.WriteFile(manifest, []byte(strings.ReplaceAll(rendered, "replicas: 1", "replicas: 0")), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := c.Kubectl(t.Context(), "apply", "--server-side", "-f", manifest); err != nil {
		t.Fatal(err, out)
	}
	address, err := FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	args = append([]string{"--bind-address=127.0.0.1", "--secure-port=" + port, "--kubeconfig=" + c.KubeconfigOf(t, "lockstep-system", "lockstep-dashboard")}, args...)
	if _, err := localenv.Start(t.Context(), filepath.Join(c.Logs(), "dashboard.log"), "lockstep-dashboard", args...); err != nil {
		t.Fatal(err)
	}
	url := "https://" + address
	Eventually(t, "lockstep-dashboard", func(ctx context.Context) (bool, string, error) {
		status, body, err := Ask(ctx, url+"/readyz", "")
		return status == http.StatusOK, fmt.Sprint(status, body, err), nil
	})
	return url
}

// KubeconfigOf is a file by which a program is a service account.
func (c *Cluster) KubeconfigOf(t testing.TB, namespace, account string) string {
	t.Helper()
	config, err := clientcmd.LoadFromFile(c.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	for name := range config.AuthInfos {
		config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: c.Token(t, namespace, account)}
	}
	path := filepath.Join(t.TempDir(), account)
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	return path
}
