// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package barrier

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// environment of a Pod of the Framework default/train, with overrides given as
// KEY=VALUE.
func environment(overrides ...string) func(string) string {
	env := map[string]string{
		"FC_FRAMEWORK_NAMESPACE": "default",
		"FC_FRAMEWORK_NAME":      "train",
	}
	for _, override := range overrides {
		key, value, _ := strings.Cut(override, "=")
		env[key] = value
	}
	return func(key string) string { return env[key] }
}

func TestFromEnv(t *testing.T) {
	defaults := Config{
		Namespace: "default",
		Name:      "train",
		Interval:  10 * time.Second,
		Timeout:   10 * time.Minute,
		OutputDir: "/mnt/frameworkbarrier",
	}
	with := func(change func(*Config)) Config {
		c := defaults
		change(&c)
		return c
	}
	tests := map[string]struct {
		env   []string
		files []string
		want  Config
	}{
		"what the controller sets is enough": {want: defaults},
		"an empty variable is as good as none": {
			env:  []string{"BARRIER_CHECK_INTERVAL_SEC=", "BARRIER_CHECK_TIMEOUT_SEC=", "BARRIER_OUTPUT_DIR="},
			want: defaults,
		},
		"the shortest times": {
			env: []string{"BARRIER_CHECK_INTERVAL_SEC=5", "BARRIER_CHECK_TIMEOUT_SEC=60"},
			want: with(func(c *Config) {
				c.Interval, c.Timeout = 5*time.Second, time.Minute
			}),
		},
		"a timeout beyond FrameworkController's 20 minutes": {
			env:  []string{"BARRIER_CHECK_TIMEOUT_SEC=86400"},
			want: with(func(c *Config) { c.Timeout = 24 * time.Hour }),
		},
		"another folder": {
			env:  []string{"BARRIER_OUTPUT_DIR=/peers"},
			want: with(func(c *Config) { c.OutputDir = "/peers" }),
		},
		"a kubeconfig that is named is used, there or not": {
			env:   []string{"KUBECONFIG=/missing", "HOME=/root", "KUBE_APISERVER_ADDRESS=https://api:6443"},
			files: []string{"/root/.kube/config"},
			want: with(func(c *Config) {
				c.Kubeconfig, c.APIServer = "/missing", "https://api:6443"
			}),
		},
		"a kubeconfig at home is found": {
			env:   []string{"HOME=/root"},
			files: []string{"/root/.kube/config"},
			want:  with(func(c *Config) { c.Kubeconfig = "/root/.kube/config" }),
		},
		"a home without one means the service account": {
			env:  []string{"HOME=/root"},
			want: defaults,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			isFile := func(path string) bool {
				for _, file := range tc.files {
					if file == path {
						return true
					}
				}
				return false
			}
			got, err := FromEnv(environment(tc.env...), isFile)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("config (-want,+got):\n%s", diff)
			}
		})
	}
}

func TestFromEnvRefuses(t *testing.T) {
	const (
		interval = `BARRIER_CHECK_INTERVAL_SEC is %q, it must be a whole number of seconds from 5 to 9223372036`
		timeout  = `BARRIER_CHECK_TIMEOUT_SEC is %q, it must be a whole number of seconds from 60 to 9223372036`
	)
	tests := map[string]struct{ env, want string }{
		"no name of a Framework":  {"FC_FRAMEWORK_NAME=", "FC_FRAMEWORK_NAME is empty"},
		"no namespace":            {"FC_FRAMEWORK_NAMESPACE=", "FC_FRAMEWORK_NAMESPACE is empty"},
		"too short an interval":   {"BARRIER_CHECK_INTERVAL_SEC=4", strings.Replace(interval, "%q", `"4"`, 1)},
		"a fraction of a second":  {"BARRIER_CHECK_INTERVAL_SEC=5.5", strings.Replace(interval, "%q", `"5.5"`, 1)},
		"a duration with a unit":  {"BARRIER_CHECK_TIMEOUT_SEC=10m", strings.Replace(timeout, "%q", `"10m"`, 1)},
		"too short a timeout":     {"BARRIER_CHECK_TIMEOUT_SEC=59", strings.Replace(timeout, "%q", `"59"`, 1)},
		"a negative timeout":      {"BARRIER_CHECK_TIMEOUT_SEC=-1", strings.Replace(timeout, "%q", `"-1"`, 1)},
		"a timeout of ages":       {"BARRIER_CHECK_TIMEOUT_SEC=9223372037", strings.Replace(timeout, "%q", `"9223372037"`, 1)},
		"more than an int64 is":   {"BARRIER_CHECK_TIMEOUT_SEC=9223372036854775808", "BARRIER_CHECK_TIMEOUT_SEC"},
		"a word for a number":     {"BARRIER_CHECK_TIMEOUT_SEC=forever", "BARRIER_CHECK_TIMEOUT_SEC"},
		"blanks around a number":  {"BARRIER_CHECK_TIMEOUT_SEC= 60 ", "BARRIER_CHECK_TIMEOUT_SEC"},
		"two lines in a variable": {"BARRIER_CHECK_TIMEOUT_SEC=60\n70", "BARRIER_CHECK_TIMEOUT_SEC"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := FromEnv(environment(tc.env), func(string) bool { return false })
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("got error %v, want one with %q", err, tc.want)
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("the error is not one line: %v", err)
			}
			if !errors.Is(err, ErrConfig) || ExitCode(err) != 210 {
				t.Errorf("exits with %d, want 210", ExitCode(err))
			}
		})
	}
}
