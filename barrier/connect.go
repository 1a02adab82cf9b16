// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package barrier

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// kubeconfig is the file to take the cluster from, empty for none. One that is
// named is used even if it is not there: then it was forgotten to mount it, and
// other credentials would hide that.
func kubeconfig(getenv func(string) string, isFile func(string) bool) string {
	if file := getenv(EnvKubeconfig); file != "" {
		return file
	}
	if home := getenv("HOME"); home != "" {
		if file := filepath.Join(home, ".kube", "config"); isFile(file) {
			return file
		}
	}
	return ""
}

// restConfig says how to reach the API server.
func restConfig(c Config) (*rest.Config, error) {
	var config *rest.Config
	var err error
	if c.APIServer == "" && c.Kubeconfig == "" {
		config, err = rest.InClusterConfig()
	} else {
		config, err = clientcmd.BuildConfigFromFlags(c.APIServer, c.Kubeconfig)
	}
	if err != nil {
		return nil, err
	}
	config.QPS = -1 // No limit by the client: Config.Interval is one.
	return rest.AddUserAgent(config, "frameworkbarrier"), nil
}

// identity names who asks the API server, for people: the subject of the bearer
// token, as system:serviceaccount:{namespace}:{name}, where there is such a token.
// The token is not verified: that is the API server's matter.
func identity(config *rest.Config) string {
	const unknown = "the given credentials"
	token := config.BearerToken
	if config.BearerTokenFile != "" {
		content, err := os.ReadFile(config.BearerTokenFile)
		if err != nil {
			return unknown
		}
		token = string(content)
	}
	parts := strings.Split(strings.TrimSpace(token), ".")
	if len(parts) != 3 {
		return unknown
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return unknown
	}
	var claims struct {
		Subject string `json:"sub"`
	}
	if err := json.Unmarshal(payload, &claims); err != nil || claims.Subject == "" {
		return unknown
	}
	return claims.Subject
}
