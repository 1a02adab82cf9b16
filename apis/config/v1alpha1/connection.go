// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"path/filepath"
	"strings"
)

// ServiceAccountNamespace is the file that says in a Pod in which namespace that is.
const ServiceAccountNamespace = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// SetConnectionDefaults fills kubeApiServerAddress and kubeConfigFilePath, as FrameworkController does: the address
// from KUBE_APISERVER_ADDRESS; the file from KUBECONFIG, or else $HOME/.kube/config, if there is such a file. Both
// stay empty in a Pod: the service account then has the address of the API server. getenv is os.Getenv; isFile says
// whether a path is a file that exists.
func SetConnectionDefaults(c *ControllerConfiguration, getenv func(string) string, isFile func(string) bool) {
	setDefault(&c.KubeAPIServerAddress, getenv("KUBE_APISERVER_ADDRESS"))

	candidates := []string{getenv("KUBECONFIG")}
	if home := getenv("HOME"); home != "" {
		candidates = append(candidates, filepath.Join(home, ".kube", "config"))
	}
	file := ""
	for _, candidate := range candidates {
		if candidate != "" && isFile(candidate) {
			file = candidate
			break
		}
	}
	setDefault(&c.KubeConfigFilePath, file)
}

// SetElectionDefaults fills leaderElection, after SetConnectionDefaults. What runs in a Pod may run twice, as a Deployment has
// it, so replicas there elect the one that acts. The Lease is in the namespace of the Pod, where its role allows it, if the
// API server is that of its service account. getenv is os.Getenv, readFile os.ReadFile.
func SetElectionDefaults(c *ControllerConfiguration, getenv func(string) string, readFile func(string) ([]byte, error)) {
	setDefault(&c.LeaderElection.Enabled, getenv("KUBERNETES_SERVICE_HOST") != "")
	namespace := "lockstep-system"
	if *c.KubeAPIServerAddress == "" && *c.KubeConfigFilePath == "" {
		if own, err := readFile(ServiceAccountNamespace); err == nil {
			namespace = strings.TrimSpace(string(own))
		}
	}
	setDefault(&c.LeaderElection.Namespace, namespace)
	setDefault(&c.LeaderElection.Name, "lockstep-controller")
}
