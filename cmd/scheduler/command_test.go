// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-k8s/lockstep/internal/buildinfo"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/kube"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/kube/program"
)

// kubeconfig is a file for a cluster that serves all APIs and has nothing in it:
// what is tested fails before it is asked for more.
func kubeconfig(t *testing.T) string {
	t.Helper()
	return kubeconfigOf(t, discoveryOnly(t, devices("devicetaintrules")))
}

// kubeconfigOf is a file for the API server at a URL.
func kubeconfigOf(t *testing.T, url string) string {
	t.Helper()
	return write(t, "kubeconfig", `{apiVersion: v1, kind: Config, current-context: c,
clusters: [{name: c, cluster: {server: "`+url+`"}}],
users: [{name: u, user: {token: t}}],
contexts: [{name: c, context: {cluster: c, user: u}}]}`)
}

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// runMain, in the environment, makes the test binary the program itself: its
// logging and feature gates can be set up only once in a process.
const runMain = "LOCKSTEP_TEST_RUN_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(runMain) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// execute runs the program with arguments and returns what it printed, and
// whether it ended well.
func execute(t *testing.T, args ...string) (string, bool) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = append(os.Environ(), runMain+"=1")
	out, err := cmd.CombinedOutput()
	return string(out), err == nil
}

func TestDefaultConfiguration(t *testing.T) {
	type seen struct {
		Scheduler  string
		Enabled    bool
		QPS        float32
		Burst      int32
		Elects     bool
		Lease      string
		Profiles   int
		LastPlugin string
	}
	tests := map[string]struct {
		kubeconfig string
		wantElects bool
	}{
		"in a Pod there may be others to elect a leader from": {wantElects: true},
		"with a kubeconfig it runs alone":                     {kubeconfig: "some.kubeconfig"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p, err := program.New(defaults)
			if err != nil {
				t.Fatal(err)
			}
			if err := p.Flags().FlagSet("deprecated").Set("kubeconfig", tc.kubeconfig); err != nil {
				t.Fatal(err)
			}
			cfg, err := p.Configuration()
			if err != nil {
				t.Fatal(err)
			}
			enabled := cfg.Profiles[0].Plugins.MultiPoint.Enabled
			want := seen{
				Scheduler: "lockstep-scheduler", QPS: 1000, Burst: 2000, Elects: tc.wantElects,
				Lease: "lockstep-system/lockstep-scheduler", Profiles: 1, LastPlugin: coscheduling.Name,
			}
			got := seen{
				Scheduler: cfg.Profiles[0].SchedulerName, QPS: cfg.ClientConnection.QPS, Burst: cfg.ClientConnection.Burst,
				Elects:   cfg.LeaderElection.LeaderElect,
				Lease:    cfg.LeaderElection.ResourceNamespace + "/" + cfg.LeaderElection.ResourceName,
				Profiles: len(cfg.Profiles), LastPlugin: enabled[len(enabled)-1].Name,
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("configuration (-want, +got):\n%s", diff)
			}
			if !kube.Profiles(cfg.Profiles).Attachable(coscheduling.Name) {
				t.Error("no profile enables the plugin")
			}
		})
	}
}

// TestWrongUse: each mistake is one line that says what is wrong and what would
// be right.
// TestWrongUse: what is wrong is told, and before the API server is asked for anything, which
// may not answer for long.
func TestWrongUse(t *testing.T) {
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		asked.Add(1)
		http.NotFound(w, request)
	}))
	t.Cleanup(server.Close)
	cluster := "--kubeconfig=" + kubeconfigOf(t, server.URL)
	config := func(profiles string) string {
		return "--config=" + write(t, "config.yaml", "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"+
			"leaderElection: {leaderElect: false}\nclientConnection: {kubeconfig: "+kubeconfigOf(t, server.URL)+"}\n"+profiles)
	}
	const plugin = "plugins: {multiPoint: {enabled: [{name: Coscheduling}]}}"
	tests := map[string]struct {
		args []string
		want string
	}{
		"an argument that is no flag": {
			args: []string{"now", cluster},
			want: `lockstep-scheduler takes flags only, got "now"`,
		},
		"a namespace that can't be": {
			args: []string{cluster, "--namespaces=a,b.c"},
			want: `--namespaces[1]: Invalid value: "b.c": must not contain dots`,
		},
		"a flag that does not exist": {
			args: []string{"--kubekonfig=x"},
			want: "unknown flag: --kubekonfig",
		},
		"a port that is none": {
			args: []string{cluster, "--secure-port=70000"},
			want: "--secure-port 70000 must be between 1 and 65535",
		},
		"a feature gate that does not exist": {
			args: []string{cluster, "--feature-gates=GangGang=true"},
			want: "unrecognized feature gate: GangGang",
		},
		"a format of logs that does not exist": {
			args: []string{cluster, "--logging-format=verse"},
			want: `Unsupported log format`,
		},
		"a lease that is renewed too late": {
			args: []string{cluster, "--leader-elect", "--leader-elect-lease-duration=1s"},
			want: "leaderElection.leaseDuration: Invalid value",
		},
		"a kubeconfig that does not exist": {
			args: []string{"--kubeconfig=/does/not/exist"},
			want: "stat /does/not/exist: no such file or directory",
		},
		"a file that does not exist": {
			args: []string{"--config=/does/not/exist.yaml"},
			want: "open /does/not/exist.yaml: no such file or directory",
		},
		"a field that a configuration does not have": {
			args: []string{config("profils: []")},
			want: `unknown field "profils"`,
		},
		"two profiles of one name": {
			args: []string{config("profiles: [{schedulerName: s, " + plugin + "}, {schedulerName: s}]")},
			want: "profiles[1].schedulerName: Duplicate value",
		},
		"a configuration without the plugin": {
			args: []string{config("profiles: [{schedulerName: s}]")},
			want: "no profile enables the plugin Coscheduling: add it to plugins.multiPoint.enabled",
		},
		"an argument of the plugin out of range": {
			args: []string{config("profiles: [{schedulerName: s, " + plugin + ", pluginConfig: [{name: Coscheduling, args: {bindRetries: 11}}]}]")},
			want: "arguments of plugin Coscheduling: bindRetries: Invalid value: 11: must be from 0 to 10",
		},
		"a scheduler name that is none": {
			args: []string{cluster, "--also-serve=Volcano!"},
			want: `--also-serve: "Volcano!" is no name of a scheduler`,
		},
		"a scheduler name that is served already": {
			args: []string{cluster, "--also-serve=volcano,lockstep-scheduler"},
			want: "--also-serve: the scheduler name lockstep-scheduler is served already",
		},
		"an argument that the plugin does not have": {
			args: []string{config("profiles: [{schedulerName: s, " + plugin + ", pluginConfig: [{name: Coscheduling, args: {bindRetrys: 1}}]}]")},
			want: `unknown field "bindRetrys"`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			refused(t, tc.want, append([]string{"--secure-port=0"}, tc.args...)...)
			if n := asked.Swap(0); n > 0 {
				t.Errorf("the API server was asked %d times before that", n)
			}
		})
	}
}

// TestAPluginThatIsEnabledTwiceIsRefused, though only when the scheduler is made.
func TestAPluginThatIsEnabledTwiceIsRefused(t *testing.T) {
	config := write(t, "config.yaml", "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"+
		"leaderElection: {leaderElect: false}\nclientConnection: {kubeconfig: "+kubeconfig(t)+"}\n"+
		"profiles: [{schedulerName: s, plugins: {multiPoint: {enabled: [{name: Coscheduling}, {name: Coscheduling}]}}}]")
	refused(t, `plugin "Coscheduling" already registered`, "--secure-port=0", "--config="+config)
}

// refused runs the program, which must end with an error.
func refused(t *testing.T, want string, args ...string) {
	t.Helper()
	out, ok := execute(t, args...)
	if ok {
		t.Fatalf("it ended well and said\n%s", out)
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	last := lines[len(lines)-1]
	if !strings.HasPrefix(last, "Error: ") || !strings.Contains(last, want) {
		t.Errorf("it said\n%s\nwant an error with %s", out, want)
	}
}

func TestVersionAndHelp(t *testing.T) {
	out, ok := execute(t, "--version")
	if !ok {
		t.Fatal(out)
	}
	if out != "lockstep-scheduler version "+buildinfo.Version()+"\n" {
		t.Errorf("it prints %q, want the version of this build", out)
	}
	if out, ok = execute(t, "--help"); !ok {
		t.Fatal(out)
	}
	for _, want := range []string{"a PodGroup (scheduling.lockstep.dev)", "--kubeconfig", "--config", `"lockstep-system"`, "(default 1000)"} {
		if !strings.Contains(out, want) {
			t.Errorf("the help lacks %q", want)
		}
	}
}
