// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package barrier

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	"github.com/lockstep-k8s/lockstep/apis/framework/statuscodec"
	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
)

// A Framework of two tasks, before and after the second has its address.
func waiting() *frameworkv1.Framework {
	return withStatus(makeFramework(role("worker", 2)), tasks("worker", "10.0.0.1", "-"))
}

func ready() *frameworkv1.Framework {
	return withStatus(makeFramework(role("worker", 2)), tasks("worker", "10.0.0.1", "10.0.0.2"))
}

// compressed stores a Framework's task statuses as the controller does from
// statuscodec.CompressionThreshold on.
func compressed(t *testing.T, f *frameworkv1.Framework) *frameworkv1.Framework {
	t.Helper()
	// A role that is not in the spec makes it large, and has no other effect.
	f.Status.AttemptStatus.TaskRoleStatuses = append(f.Status.AttemptStatus.TaskRoleStatuses,
		tasks(strings.Repeat("z", statuscodec.CompressionThreshold)))
	data, err := statuscodec.Encode(f.Status, true)
	if err != nil {
		t.Fatal(err)
	}
	f.Status = &frameworkv1.FrameworkStatus{}
	if err := json.Unmarshal(data, f.Status); err != nil {
		t.Fatal(err)
	}
	if f.Status.AttemptStatus.TaskRoleStatuses != nil {
		t.Fatal("the status is not compressed")
	}
	return f
}

// runBarrier runs a Barrier against an API server, in an empty working directory,
// with a few milliseconds for each second of a real one. It returns the files
// that are in the output directory.
func runBarrier(t *testing.T, ctx context.Context, api *fakeAPI, timeout time.Duration) (files []string, err error) {
	t.Helper()
	ctx = logTo(ctx, t)
	t.Chdir(t.TempDir())
	output := filepath.Join(t.TempDir(), "mnt", "frameworkbarrier")
	config, err := FromEnv(environment("KUBE_APISERVER_ADDRESS="+api.start(t), "BARRIER_OUTPUT_DIR="+output),
		func(string) bool { return false })
	if err != nil {
		t.Fatal(err)
	}
	config.Interval, config.Timeout = 5*time.Millisecond, timeout
	b, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	err = b.Run(ctx)
	for _, dir := range []string{".", output} {
		entries, listErr := os.ReadDir(dir)
		if listErr != nil && !errors.Is(listErr, fs.ErrNotExist) {
			t.Fatal(listErr)
		}
		for _, entry := range entries {
			info, infoErr := entry.Info()
			if infoErr != nil {
				t.Fatal(infoErr)
			}
			name := entry.Name()
			if dir == output {
				name = "output/" + name
			}
			files = append(files, info.Mode().String()+" "+name)
		}
	}
	return files, err
}

// logTo makes what is logged part of the test's output.
func logTo(ctx context.Context, t *testing.T) context.Context {
	return klog.NewContext(ctx, ktesting.NewLogger(t, ktesting.NewConfig()))
}

// Long enough never to be reached, and short enough to be waited for.
const (
	long  = 30 * time.Second
	short = 300 * time.Millisecond
)

func TestRunPasses(t *testing.T) {
	tests := map[string]struct {
		api         *fakeAPI
		wantGets    int
		wantWatches int
	}{
		"at the first look, without a watch": {
			api:      &fakeAPI{gets: []answer{object(ready())}},
			wantGets: 1,
		},
		"when the watch shows the last address": {
			api: &fakeAPI{
				gets:    []answer{object(waiting())},
				watches: []answer{events(event("MODIFIED", waiting()), event("MODIFIED", ready())).thenHold()},
			},
			wantGets: 1, wantWatches: 1,
		},
		"by a look after the watch has ended": {
			api: &fakeAPI{
				gets:    []answer{object(waiting()), object(ready())},
				watches: []answer{events(event("MODIFIED", waiting()))},
			},
			wantGets: 2, wantWatches: 1,
		},
		"by a look after the resource version was too old": {
			api: &fakeAPI{
				gets:    []answer{object(waiting()), object(ready())},
				watches: []answer{events(event("ERROR", status(apierrors.NewResourceExpired("too old")))).thenHold()},
			},
			wantGets: 2, wantWatches: 1,
		},
		"by a look after the watch was refused as too old": {
			api: &fakeAPI{
				gets:    []answer{object(waiting()), object(ready())},
				watches: []answer{failure(apierrors.NewResourceExpired("too old"))},
			},
			wantGets: 2, wantWatches: 1,
		},
		"by a second watch": {
			api: &fakeAPI{
				gets:    []answer{object(waiting())},
				watches: []answer{events(), events(event("MODIFIED", ready())).thenHold()},
			},
			wantGets: 2, wantWatches: 2,
		},
		"by looks alone where it may not watch, and asks to watch but once": {
			api: &fakeAPI{
				gets:    []answer{object(waiting()), object(waiting()), object(ready())},
				watches: []answer{failure(forbidden("watch"))},
			},
			wantGets: 3, wantWatches: 1,
		},
		"after the API server had trouble": {
			api: &fakeAPI{gets: []answer{
				failure(apierrors.NewInternalError(errors.New("etcd has no leader"))),
				object(ready()),
			}},
			wantGets: 2,
		},
		"with a large Framework, whose status is compressed": {
			api: &fakeAPI{
				gets:    []answer{object(compressed(t, waiting()))},
				watches: []answer{events(event("MODIFIED", compressed(t, ready()))).thenHold()},
			},
			wantGets: 1, wantWatches: 1,
		},
		"ignoring a bookmark": {
			api: &fakeAPI{
				gets:    []answer{object(waiting())},
				watches: []answer{events(event("BOOKMARK", makeFramework()), event("MODIFIED", ready())).thenHold()},
			},
			wantGets: 1, wantWatches: 1,
		},
		"after a status that can't be read": {
			api: &fakeAPI{
				gets:    []answer{object(waiting())},
				watches: []answer{events(event("MODIFIED", garbled()), event("MODIFIED", ready())).thenHold()},
			},
			wantGets: 1, wantWatches: 1,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			files, err := runBarrier(t, t.Context(), tc.api, long)
			if err != nil {
				t.Fatal(err)
			}
			wantFiles := []string{
				"-rw-r--r-- framework.json", "-rwxr-xr-x injector.sh",
				"-rw-r--r-- output/framework.json", "-rwxr-xr-x output/injector.sh",
			}
			if diff := cmp.Diff(wantFiles, files); diff != "" {
				t.Errorf("files (-want,+got):\n%s", diff)
			}
			gets, watches := tc.api.counts()
			if gets != tc.wantGets || watches != tc.wantWatches {
				t.Errorf("%d gets and %d watches, want %d and %d", gets, watches, tc.wantGets, tc.wantWatches)
			}
			for _, file := range []string{"framework.json", "injector.sh"} {
				content, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				if !strings.Contains(string(content), "10.0.0.2") || strings.Contains(string(content), "Compressed") {
					t.Errorf("%s does not have the addresses:\n%.1000s", file, content)
				}
			}
		})
	}
}

// garbled is a Framework whose compressed status is none.
func garbled() *frameworkv1.Framework {
	f := waiting()
	f.Status.AttemptStatus.TaskRoleStatuses = nil
	f.Status.AttemptStatus.TaskRoleStatusesCompressed = []byte("not gzip")
	return f
}

func TestRunFails(t *testing.T) {
	tests := map[string]struct {
		api      *fakeAPI
		timeout  time.Duration
		wantCode int
		want     []string
	}{
		"at once where it may not get": {
			api: &fakeAPI{gets: []answer{failure(forbidden("get"))}}, timeout: long, wantCode: 1,
			want: []string{
				`User "system:serviceaccount:default:default"`, "the verbs get, list and watch",
				"frameworks.frameworkcontroller.microsoft.com", "namespace default", "manifests/barrier",
			},
		},
		"at once where nobody knows it": {
			api: &fakeAPI{gets: []answer{failure(apierrors.NewUnauthorized("Unauthorized"))}}, timeout: long, wantCode: 1,
			want: []string{"the given credentials", "Unauthorized", "manifests/barrier"},
		},
		"at once when its rights are taken while it waits": {
			api: &fakeAPI{
				gets:    []answer{object(waiting()), failure(forbidden("get"))},
				watches: []answer{events()},
			},
			timeout: long, wantCode: 1, want: []string{"manifests/barrier"},
		},
		"at once where there is no such Framework": {
			api: &fakeAPI{gets: []answer{failure(notFound())}}, timeout: long, wantCode: 210,
			want: []string{"no such Framework as default/train"},
		},
		"at once when the Framework is deleted": {
			api: &fakeAPI{
				gets:    []answer{object(waiting())},
				watches: []answer{events(event("DELETED", waiting())).thenHold()},
			},
			timeout: long, wantCode: 210, want: []string{"no such Framework as default/train", "it was deleted"},
		},
		"at last when a task stays without an address": {
			api: &fakeAPI{
				gets:    []answer{object(waiting())},
				watches: []answer{events(event("MODIFIED", waiting())).thenHold()},
			},
			timeout: short, wantCode: 201,
			want: []string{"not every task has an address after 300ms", "1 of 2 tasks have an address, missing worker[1]"},
		},
		"at last when the API server had trouble, but showed the tasks in the end": {
			api: &fakeAPI{
				gets:    []answer{failure(apierrors.NewInternalError(errors.New("no leader"))), object(waiting())},
				watches: []answer{events().thenHold()},
			},
			timeout: short, wantCode: 201, want: []string{"missing worker[1]"},
		},
		"at last when the last look failed": {
			api: &fakeAPI{
				gets:    []answer{object(waiting()), failure(apierrors.NewInternalError(errors.New("no leader")))},
				watches: []answer{events()},
			},
			timeout: short, wantCode: 1, want: []string{"getting the Framework", "no leader"},
		},
		"at last when the status can't be read": {
			api: &fakeAPI{
				gets:    []answer{object(garbled())},
				watches: []answer{events().thenHold()},
			},
			timeout: short, wantCode: 1, want: []string{"taskRoleStatusesCompressed"},
		},
		"at last when the API server never answers": {
			api: &fakeAPI{gets: []answer{hang()}}, timeout: short, wantCode: 1,
			want: []string{"after 300ms: the API server did not answer"},
		},
		"at once when an address is a command": {
			api:     &fakeAPI{gets: []answer{object(withStatus(makeFramework(role("worker", 1)), tasks("worker", "$(reboot)")))}},
			timeout: long, wantCode: 1, want: []string{"podIP of task worker[0]"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			files, err := runBarrier(t, t.Context(), tc.api, tc.timeout)
			if got := ExitCode(err); got != tc.wantCode {
				t.Errorf("exits with %d, want %d: %v", got, tc.wantCode, err)
			}
			for _, want := range tc.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("error is %v\nwant it to say %q", err, want)
				}
			}
			if files != nil {
				t.Errorf("left the files %q", files)
			}
		})
	}
}

func TestRunEndsWhenAskedTo(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	api := &fakeAPI{
		gets:    []answer{object(waiting())},
		watches: []answer{func(http.ResponseWriter, *http.Request) { cancel(errors.New("SIGTERM")) }},
	}
	_, err := runBarrier(t, ctx, api, long)
	if !errors.Is(err, ErrTerminated) || ExitCode(err) != 143 {
		t.Errorf("got error %v, exit code %d, want 143", err, ExitCode(err))
	}
}

func TestRunAsksForOneFrameworkOnly(t *testing.T) {
	api := &fakeAPI{
		gets:    []answer{object(waiting())},
		watches: []answer{events(event("MODIFIED", ready())).thenHold()},
	}
	if _, err := runBarrier(t, t.Context(), api, long); err != nil {
		t.Fatal(err)
	}
	const path = "/apis/frameworkcontroller.microsoft.com/v1/namespaces/default/frameworks"
	want := []string{
		"GET " + path + "/train",
		"GET " + path + "?fieldSelector=metadata.name%3Dtrain&resourceVersion=1&watch=true",
	}
	if diff := cmp.Diff(want, api.requests); diff != "" {
		t.Errorf("requests (-want,+got):\n%s", diff)
	}
}

// TestWriteAll: an image may run as a user that can't write
// there. Root can write anywhere, so a directory in the way of a file stands in
// for what no user can do.
func TestWriteAll(t *testing.T) {
	files := []file{{name: "injector.sh", mode: 0o755, content: []byte("#!/bin/bash\n")}}
	tests := map[string]struct {
		obstacle string
		output   string
		want     string
	}{
		"the output folder is a file":             {obstacle: "out", output: "out/", want: "making the folder of BARRIER_OUTPUT_DIR"},
		"a folder is in the way of a file":        {obstacle: "injector.sh/", output: "out", want: "writing a file"},
		"a folder is in the way of the copy":      {obstacle: "out/injector.sh/", output: "out", want: "writing a file"},
		"nothing is in the way":                   {output: "out"},
		"the output is the working directory":     {output: "."},
		"the files are there from an earlier run": {obstacle: "injector.sh", output: "out"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			if folder, ok := strings.CutSuffix(tc.obstacle, "/"); ok {
				if err := os.MkdirAll(folder, 0o755); err != nil {
					t.Fatal(err)
				}
			} else if tc.obstacle != "" {
				if err := os.WriteFile(tc.obstacle, []byte("old and longer than the new"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			err := writeAll(logTo(t.Context(), t), files, tc.output)
			if tc.want != "" {
				if err == nil || !strings.Contains(err.Error(), tc.want) || ExitCode(err) != 1 {
					t.Errorf("got error %v, want one with %q and exit code 1", err, tc.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, dir := range []string{".", tc.output} {
				path := filepath.Join(dir, "injector.sh")
				info, err := os.Stat(path)
				if err != nil {
					t.Fatal(err)
				}
				content, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				if info.Mode() != 0o755 || string(content) != "#!/bin/bash\n" {
					t.Errorf("%s has mode %v and content %q", path, info.Mode(), content)
				}
			}
		})
	}
}

func TestNewRefusesAnUnusableKubeconfig(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(empty, []byte("apiVersion: v1\nkind: Config\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	for name, kubeconfig := range map[string]string{
		"a file that is missing":    "/missing/config",
		"a file without a cluster":  empty,
		"no file, and not in a Pod": "",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := New(Config{Namespace: "default", Name: "train", Kubeconfig: kubeconfig})
			if err == nil || ExitCode(err) != 1 {
				t.Errorf("got error %v, want one, and exit code 1", err)
			}
		})
	}
}

func TestDeniedNamesTheServiceAccount(t *testing.T) {
	const account = "system:serviceaccount:team:trainer"
	token := filepath.Join(t.TempDir(), "token")
	claims := base64.RawURLEncoding.EncodeToString([]byte(`{"sub":"` + account + `"}`))
	if err := os.WriteFile(token, []byte("e30."+claims+".c2ln\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	api := &fakeAPI{gets: []answer{failure(apierrors.NewUnauthorized("Unauthorized"))}}
	kubeconfig := filepath.Join(t.TempDir(), "config")
	content := `{"apiVersion":"v1","kind":"Config","current-context":"c",
"contexts":[{"name":"c","context":{"cluster":"c","user":"c"}}],
"clusters":[{"name":"c","cluster":{"server":"` + api.startTLS(t) + `","insecure-skip-tls-verify":true}}],
"users":[{"name":"c","user":{"tokenFile":"` + token + `"}}]}`
	if err := os.WriteFile(kubeconfig, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	b, err := New(Config{Namespace: "team", Name: "train", Kubeconfig: kubeconfig, Interval: time.Second, Timeout: long})
	if err != nil {
		t.Fatal(err)
	}
	if err = b.Run(logTo(t.Context(), t)); err == nil || !strings.Contains(err.Error(), account) {
		t.Errorf("got error %v, want one that names %s", err, account)
	}
}
