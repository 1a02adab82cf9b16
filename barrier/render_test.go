// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package barrier

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/interp"
	"mvdan.cc/sh/v3/syntax"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
)

// dualStack is a Framework of three roles, one of them empty.
func dualStack() *frameworkv1.Framework {
	return withStatus(makeFramework(role("server", 1), role("worker", 2), role("0", 0)),
		tasks("worker", "10.0.0.1", "10.0.0.2"), tasks("gone", "10.0.0.9"), tasks("server", "fd00::a"), tasks("0"))
}

func TestRenderInjector(t *testing.T) {
	tests := map[string]struct {
		framework *frameworkv1.Framework
		want      []string
	}{
		"without a status there is nothing to set": {
			framework: makeFramework(role("worker", 0)),
			want:      []string{"#!/bin/bash"},
		},
		"all IPS before all ADDRESSES, roles in the order of the status": {
			framework: dualStack(),
			want: []string{
				"#!/bin/bash",
				`echo "Setting the addresses of the tasks."`,
				"export FB_WORKER_IPS=10.0.0.1,10.0.0.2",
				`echo "FB_WORKER_IPS=${FB_WORKER_IPS}"`,
				"export FB_SERVER_IPS=fd00::a",
				`echo "FB_SERVER_IPS=${FB_SERVER_IPS}"`,
				"export FB_0_IPS=",
				`echo "FB_0_IPS=${FB_0_IPS}"`,
				"export FB_WORKER_ADDRESSES=10.0.0.1:${FB_WORKER_PORT},10.0.0.2:${FB_WORKER_PORT}",
				`echo "FB_WORKER_ADDRESSES=${FB_WORKER_ADDRESSES}"`,
				"export FB_SERVER_ADDRESSES=[fd00::a]:${FB_SERVER_PORT}",
				`echo "FB_SERVER_ADDRESSES=${FB_SERVER_ADDRESSES}"`,
				"export FB_0_ADDRESSES=",
				`echo "FB_0_ADDRESSES=${FB_0_ADDRESSES}"`,
				`echo "The addresses of the tasks are set."`,
			},
		},
		"tasks beyond the spec are left out": {
			framework: withStatus(makeFramework(role("worker", 1)), tasks("worker", "10.0.0.1", "10.0.0.2")),
			want: []string{
				"#!/bin/bash",
				`echo "Setting the addresses of the tasks."`,
				"export FB_WORKER_IPS=10.0.0.1",
				`echo "FB_WORKER_IPS=${FB_WORKER_IPS}"`,
				"export FB_WORKER_ADDRESSES=10.0.0.1:${FB_WORKER_PORT}",
				`echo "FB_WORKER_ADDRESSES=${FB_WORKER_ADDRESSES}"`,
				`echo "The addresses of the tasks are set."`,
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := RenderInjector(tc.framework)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(strings.Join(tc.want, "\n")+"\n", string(got)); diff != "" {
				t.Errorf("script (-want,+got):\n%s", diff)
			}
		})
	}
}

func TestRenderInjectorRefuses(t *testing.T) {
	tests := map[string]struct{ role, ip, want string }{
		"a command for an address":  {"worker", "$(reboot)", `podIP of task worker[0] is "$(reboot)", which is not an IP address`},
		"a second line":             {"worker", "10.0.0.1\nreboot", "not an IP address"},
		"a zone, which may be text": {"worker", "fe80::1%;reboot", "not an IP address"},
		"a host name":               {"worker", "localhost", "not an IP address"},
		"a command for a role":      {"w;reboot;", "10.0.0.1", `task role "w;reboot;" is not named by lower-case letters and digits`},
		"a nameless role":           {"", "10.0.0.1", "not named by"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := RenderInjector(withStatus(makeFramework(role(tc.role, 1)), tasks(tc.role, tc.ip)))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got error %v, want one with %q", err, tc.want)
			}
		})
	}
}

func TestRenderFramework(t *testing.T) {
	f := withStatus(makeFramework(role("worker", 1)), tasks("worker", "10.0.0.1"))
	f.Spec.TaskRoles[0].Task.Pod = runtime.RawExtension{Raw: []byte(`{ "spec": {"fieldOfTomorrow": 1} }`)}
	got, err := RenderFramework(f)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`{"metadata":{"name":"train"`, `"podIP":"10.0.0.1"`, `"pod":{"spec":{"fieldOfTomorrow":1}}`} {
		if !bytes.Contains(got, []byte(want)) {
			t.Errorf("%s is not in %s", want, got)
		}
	}
	for _, unwanted := range []string{"apiVersion", `"kind"`, "\n"} {
		if bytes.Contains(got, []byte(unwanted)) {
			t.Errorf("%q is in %s", unwanted, got)
		}
	}
	if f.Kind != "Framework" {
		t.Error("the object that was rendered has changed")
	}
}

// TestInjectorInShells sources the script as the example does, twice with
// different ports, in every shell that there is here.
func TestInjectorInShells(t *testing.T) {
	script, err := RenderInjector(dualStack())
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	injector := filepath.Join(dir, "injector.sh")
	if err := os.WriteFile(injector, script, 0o755); err != nil {
		t.Fatal(err)
	}
	command := fmt.Sprintf(`set -eu; unset FB_WORKER_PORT
FB_0_PORT=1; FB_SERVER_PORT=4001 FB_WORKER_PORT=5001 . %[1]s >/dev/null && echo "$FB_WORKER_ADDRESSES" &&
FB_SERVER_PORT=4002 FB_WORKER_PORT=5002 . %[1]s >/dev/null &&
echo "$FB_WORKER_IPS" "$FB_WORKER_ADDRESSES" "$FB_SERVER_IPS" "$FB_SERVER_ADDRESSES" "<$FB_0_IPS$FB_0_ADDRESSES>"`, injector)
	const want = "10.0.0.1:5001,10.0.0.2:5001\n" +
		"10.0.0.1,10.0.0.2 10.0.0.1:5002,10.0.0.2:5002 fd00::a [fd00::a]:4002 <>\n"

	run := map[string]func() (string, error){
		"mvdan.cc/sh": func() (string, error) {
			var out bytes.Buffer
			_, err := interpret(t.Context(), command, &out, interp.Env(expand.ListEnviron()))
			return out.String(), err
		},
	}
	for _, shell := range []string{"sh", "bash", "dash", "ksh", "zsh", "busybox"} {
		path, err := exec.LookPath(shell)
		if err != nil {
			continue
		}
		args := []string{"-c", command}
		if shell == "busybox" {
			args = append([]string{"sh"}, args...)
		}
		run[shell] = func() (string, error) {
			out, err := exec.CommandContext(t.Context(), path, args...).CombinedOutput()
			return string(out), err
		}
	}
	for name, run := range run {
		t.Run(name, func(t *testing.T) {
			got, err := run()
			if err != nil {
				t.Fatalf("%v\n%s", err, got)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("output (-want,+got):\n%s", diff)
			}
		})
	}
}

// interpret runs a script in a shell made in Go, and returns it for its
// variables.
func interpret(ctx context.Context, script string, out *bytes.Buffer, options ...interp.RunnerOption) (*interp.Runner, error) {
	parsed, err := syntax.NewParser().Parse(strings.NewReader(script), "script")
	if err != nil {
		return nil, err
	}
	runner, err := interp.New(append([]interp.RunnerOption{interp.StdIO(nil, out, out)}, options...)...)
	if err != nil {
		return nil, err
	}
	return runner, runner.Run(ctx, parsed)
}

// FuzzRenderInjector: whatever a Framework says, the script runs no command and
// sets no variable but its own.
func FuzzRenderInjector(f *testing.F) {
	f.Add("worker", "10.0.0.1", "fd00::1")
	f.Add("0", "::ffff:10.0.0.1", "::")
	f.Add("path", "10.0.0.1", "1.1.1.1;reboot")
	f.Add("a b", "fe80::1%$(reboot)", "[::1]")
	f.Add("a\nreboot\n", "10.0.0.1", "10.0.0.1`reboot`")
	f.Fuzz(func(t *testing.T, name, first, second string) {
		framework := withStatus(makeFramework(role(name, 2)), tasks(name, "-", "-"))
		for i, ip := range []string{first, second} {
			framework.Status.AttemptStatus.TaskRoleStatuses[0].TaskStatuses[i].AttemptStatus.PodIP = &ip
		}
		script, err := RenderInjector(framework)
		if err != nil {
			return
		}
		refuse := func(interp.ExecHandlerFunc) interp.ExecHandlerFunc {
			return func(_ context.Context, args []string) error {
				t.Errorf("the script runs %q:\n%s", args, script)
				return interp.ExitStatus(1)
			}
		}
		var out bytes.Buffer
		upper := strings.ToUpper(name)
		runner, err := interpret(t.Context(), string(script), &out,
			interp.Env(expand.ListEnviron("FB_"+upper+"_PORT=80")), interp.ExecHandlers(refuse))
		if err != nil {
			t.Fatalf("%v:\n%s", err, script)
		}
		var exported []string
		for variable, value := range runner.Vars {
			if value.Exported && strings.HasPrefix(variable, "FB_") && variable != "FB_"+upper+"_PORT" {
				exported = append(exported, variable)
			}
		}
		slices.Sort(exported)
		if diff := cmp.Diff([]string{"FB_" + upper + "_ADDRESSES", "FB_" + upper + "_IPS"}, exported); diff != "" {
			t.Errorf("variables (-want,+got):\n%s", diff)
		}
		if got, want := runner.Vars["FB_"+upper+"_IPS"].Str, first+","+second; got != want {
			t.Errorf("IPS are %q, want %q", got, want)
		}
	})
}
