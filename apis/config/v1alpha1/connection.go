// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import "path/filepath"

// SetConnectionDefaults fills kubeApiServerAddress and kubeConfigFilePath, as
// FrameworkController does: the address from KUBE_APISERVER_ADDRESS; the file
// from KUBECONFIG, or else $HOME/.kube/config, if there is such a file. Both
// stay empty in a Pod, whose service account then tells how to reach the API
// server. getenv is os.Getenv; isFile says whether a path is a file that exists.
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
