// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	apimachineryversion "k8s.io/apimachinery/pkg/version"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/dynamic/dynamicinformer"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	"k8s.io/kubernetes/pkg/scheduler"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/kube"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/kube/program"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/status"
)

// discoveryOnly is an API server that says what it serves, group version by group
// version, and of which nothing can be had.
func discoveryOnly(t *testing.T, serves map[string][]string) (url string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		version := strings.TrimPrefix(request.URL.Path, "/apis/")
		resources, ok := serves[version]
		var body any
		switch {
		case request.URL.Path == "/version":
			body = apimachineryversion.Info{GitVersion: "v1.36.2"}
		case ok:
			list := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: version}
			for _, name := range resources {
				list.APIResources = append(list.APIResources, metav1.APIResource{Name: name})
			}
			body = list
		default:
			http.NotFound(w, request)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(body) // an error is the client's business
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// devices are what an API server serves of resource.k8s.io/v1.
func devices(more ...string) map[string][]string {
	return map[string][]string{"resource.k8s.io/v1": append([]string{"resourceclaims", "resourceslices", "deviceclasses"}, more...)}
}

func TestFeaturesThatTheAPIServerLacksAreRefused(t *testing.T) {
	tests := map[string]struct {
		serves map[string][]string
		gate   string
		want   string
	}{
		"rules of device taints": {
			devices(), "DRADeviceTaintRules=true",
			"the feature gate DRADeviceTaintRules is on, but API server v1.36.2 does not serve devicetaintrules of resource.k8s.io/v1",
		},
		"PodGroups of Kubernetes": {
			devices("devicetaintrules"), "GenericWorkload=true",
			"the feature gate GenericWorkload is on, but API server v1.36.2 does not serve podgroups of scheduling.k8s.io/v1beta1",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			refused(t, tc.want, "--secure-port=0", "--kubeconfig="+kubeconfigOf(t, discoveryOnly(t, tc.serves)), "--feature-gates="+tc.gate)
		})
	}
}

// TestTheConfigurationIsWrittenWithoutACluster: to look at it, none is needed.
func TestTheConfigurationIsWrittenWithoutACluster(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.yaml")
	if out, ok := execute(t, "--secure-port=0", "--kubeconfig="+kubeconfigOf(t, "https://127.0.0.1:1"), "--write-config-to="+path); !ok {
		t.Fatal(out)
	}
	written, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(written), "name: "+coscheduling.Name) {
		t.Errorf("it wrote (%v)\n%s", err, written)
	}
}

// output is what a process has printed so far.
type output struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (o *output) Write(text []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.all.Write(text)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.all.String()
}

// sharedPort is a port of 127.0.0.1 on which nobody but a program that permits sharing can
// listen while the test runs: it is bound already, by a socket that does not listen.
func sharedPort(t *testing.T) int {
	t.Helper()
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(socket) })
	if err := unix.SetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1); err != nil {
		t.Fatal(err)
	}
	if err := unix.Bind(socket, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	bound, err := unix.Getsockname(socket)
	if err != nil {
		t.Fatal(err)
	}
	return bound.(*unix.SockaddrInet4).Port
}

// TestASchedulerWhoseInformersHaveNotSyncedIsNotReady, on an API server that lacks
// more than the program can do without.
func TestASchedulerWhoseInformersHaveNotSyncedIsNotReady(t *testing.T) {
	port := sharedPort(t)
	said := &output{}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "--kubeconfig="+kubeconfigOf(t, discoveryOnly(t, devices())),
		"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", port), "--permit-port-sharing")
	cmd.Env = append(os.Environ(), runMain+"=1")
	cmd.Stdout, cmd.Stderr = said, said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()
	})
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	var code int
	var body []byte
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		response, err := client.Get(fmt.Sprintf("https://127.0.0.1:%d/readyz", port))
		if err != nil {
			return false, nil // it does not serve yet
		}
		defer response.Body.Close()
		code = response.StatusCode
		body, err = io.ReadAll(response.Body)
		return true, err
	})
	if err != nil || code == http.StatusOK || !strings.Contains(string(body), "[-]sched-handler-sync failed") {
		t.Errorf("/readyz says (%v) %d\n%s\nwant that sched-handler-sync failed; the program said\n%s", err, code, body, said)
	}
	if n := strings.Count(said.String(), "API server v1.36.2 does not serve devicetaintrules"); n != 1 {
		t.Errorf("what the API server lacks is said %d times, want once:\n%s", n, said)
	}
}

// informers are those that the scheduler asks for, and waits for. The plugin can be
// attached once in a process.
func informers(t *testing.T, attach bool) []string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	p, err := program.New(defaults)
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := p.Configuration()
	if err != nil {
		t.Fatal(err)
	}
	client := fake.NewClientset()
	typed := kube.NewInformerFactory(client, nil)
	untyped := dynamicinformer.NewDynamicSharedInformerFactory(dynamicfake.NewSimpleDynamicClient(runtime.NewScheme()), 0)
	sched, err := scheduler.New(ctx, client, typed, untyped,
		func(string) events.EventRecorderLogger { return events.NewFakeRecorder(100) },
		scheduler.WithProfiles(cfg.Profiles...),
		scheduler.WithKubeConfig(&rest.Config{Host: discoveryOnly(t, nil)}), // PodGroup APIs are looked up
		scheduler.WithFrameworkOutOfTreeRegistry(frameworkruntime.Registry{coscheduling.Name: coscheduling.New}))
	if err != nil {
		t.Fatal(err)
	}
	if attach {
		inside, err := kube.Of(sched)
		if err != nil {
			t.Fatal(err)
		}
		if err := coscheduling.Attach(ctx, inside, nil, status.ServedRegistry(), func(string) {}); err != nil {
			t.Fatal(err)
		}
	}
	// A factory says which informers it has when they are started and waited for.
	cancel()
	typed.StartWithContext(ctx)
	untyped.Start(ctx.Done())
	var found []schema.GroupVersionResource
	for kind := range typed.WaitForCacheSyncWithContext(ctx).Synced {
		kinds, _, err := clientscheme.Scheme.ObjectKinds(reflect.New(kind.Elem()).Interface().(runtime.Object))
		if err != nil {
			t.Fatal(err)
		}
		resource, _ := meta.UnsafeGuessKindToResource(kinds[0])
		found = append(found, resource)
	}
	for resource := range untyped.WaitForCacheSync(ctx.Done()) {
		found = append(found, resource)
	}
	var names []string
	for _, resource := range found {
		names = append(names, resource.Resource+" of "+resource.GroupVersion().String())
	}
	slices.Sort(names)
	return names
}

var quoted = regexp.MustCompile("`([^`]+)`")

// documented are the informers in the table of docs/operating.md: those that are there
// by default, or those of a feature that is off by default.
func documented(t *testing.T, off bool) []string {
	t.Helper()
	document, err := os.ReadFile("../../docs/operating.md")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	_, table, _ := strings.Cut(string(document), "\n| group version | resources |")
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		if strings.TrimSpace(line) == "" {
			break
		}
		if len(cells) < 4 || strings.HasSuffix(strings.TrimSpace(cells[3]), ", off") != off {
			continue
		}
		for _, version := range quoted.FindAllStringSubmatch(cells[1], -1) {
			for _, resource := range quoted.FindAllStringSubmatch(cells[2], -1) {
				names = append(names, resource[1]+" of "+version[1])
			}
		}
	}
	slices.Sort(names)
	return names
}

// TestTheInformersOfTheSchedulerAreDocumented: a Kubernetes that watches more may
// wait for ever on an API server that this program has run on before. Whoever
// takes it decides what to do without the new API, in scheduler-plugin/served, and
// tells of it in the document.
func TestTheInformersOfTheSchedulerAreDocumented(t *testing.T) {
	byDefault := informers(t, true)
	if diff := cmp.Diff(documented(t, false), byDefault); diff != "" {
		t.Errorf("by default (-docs/operating.md, +scheduler):\n%s", diff)
	}
	featuregatetesting.SetFeatureGatesDuringTest(t, utilfeature.DefaultFeatureGate, featuregatetesting.FeatureOverrides{
		"AllAlpha": true, "AllBeta": true,
	})
	more := slices.DeleteFunc(informers(t, false), func(name string) bool { return slices.Contains(byDefault, name) })
	if diff := cmp.Diff(documented(t, true), more); diff != "" {
		t.Errorf("with all features on (-docs/operating.md, +scheduler):\n%s", diff)
	}
}
