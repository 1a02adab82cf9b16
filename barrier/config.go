// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package barrier

import (
	"fmt"
	"math"
	"strconv"
	"time"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
)

// Environment variables that configure FrameworkBarrier, beside
// FC_FRAMEWORK_NAMESPACE and FC_FRAMEWORK_NAME, which the controller sets. All
// but EnvOutputDir are those of FrameworkController's barrier.
const (
	EnvInterval   = "BARRIER_CHECK_INTERVAL_SEC"
	EnvTimeout    = "BARRIER_CHECK_TIMEOUT_SEC"
	EnvOutputDir  = "BARRIER_OUTPUT_DIR"
	EnvAPIServer  = "KUBE_APISERVER_ADDRESS"
	EnvKubeconfig = "KUBECONFIG"
)

// Defaults and lower bounds of Config. FrameworkController has the same, and an
// upper bound of 20 minutes for the timeout, which Lockstep has not: a large
// job may wait for hours.
const (
	DefaultInterval  = 10 * time.Second
	DefaultTimeout   = 600 * time.Second
	DefaultOutputDir = "/mnt/frameworkbarrier"

	minInterval = 5 * time.Second
	minTimeout  = 60 * time.Second
)

// Config is what FrameworkBarrier is told by its environment.
type Config struct {
	// Namespace and Name are the Framework.
	Namespace, Name string
	// Interval is the least time between two looks at the Framework, and the
	// time between them where it can't be watched. 5s or more; default 10s.
	Interval time.Duration
	// Timeout is how long to wait for all tasks. 60s or more; default 10m.
	Timeout time.Duration
	// OutputDir is where the files are left for the other containers of the Pod.
	// Default /mnt/frameworkbarrier.
	OutputDir string
	// APIServer overrides the API server's address of the kubeconfig or, without
	// one, is asked without credentials. Default empty.
	APIServer string
	// Kubeconfig is the file to take the cluster from. Default: $HOME/.kube/config
	// if there is one, else, with an empty Kubeconfig, the Pod's service account.
	Kubeconfig string
}

// FromEnv reads the configuration. A variable that is empty counts as unset.
// getenv is os.Getenv; isFile says whether a path is a file that exists. Every
// error is an ErrConfig that names the variable and what it may be.
func FromEnv(getenv func(string) string, isFile func(string) bool) (Config, error) {
	c := Config{
		Namespace: getenv(frameworkv1.KeyFrameworkNamespace),
		Name:      getenv(frameworkv1.KeyFrameworkName),
		OutputDir: getenv(EnvOutputDir),
		APIServer: getenv(EnvAPIServer),
	}
	for _, key := range []string{frameworkv1.KeyFrameworkNamespace, frameworkv1.KeyFrameworkName} {
		if getenv(key) == "" {
			return Config{}, fmt.Errorf("%w: %s is empty; the controller sets it in the Pods of a Framework", ErrConfig, key)
		}
	}
	var err error
	if c.Interval, err = seconds(getenv, EnvInterval, DefaultInterval, minInterval); err != nil {
		return Config{}, err
	}
	if c.Timeout, err = seconds(getenv, EnvTimeout, DefaultTimeout, minTimeout); err != nil {
		return Config{}, err
	}
	if c.OutputDir == "" {
		c.OutputDir = DefaultOutputDir
	}
	c.Kubeconfig = kubeconfig(getenv, isFile)
	return c, nil
}

// seconds reads a whole number of seconds.
func seconds(getenv func(string) string, key string, byDefault, least time.Duration) (time.Duration, error) {
	text := getenv(key)
	if text == "" {
		return byDefault, nil
	}
	// The most that a time.Duration holds: 292 years.
	const most = math.MaxInt64 / int64(time.Second)
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < int64(least/time.Second) || n > most {
		return 0, fmt.Errorf("%w: %s is %q, it must be a whole number of seconds from %d to %d",
			ErrConfig, key, text, int64(least/time.Second), most)
	}
	return time.Duration(n) * time.Second, nil
}
