// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	lockstep "github.com/lockstep-k8s/lockstep/client/clientset/versioned"
	"github.com/lockstep-k8s/lockstep/internal/localenv"
	"github.com/lockstep-k8s/lockstep/internal/testing/apiserver"
	"github.com/lockstep-k8s/lockstep/internal/testing/hangup"
)

// visit is the demo in the cluster of an API server, and its CRDs.
func visit(t *testing.T, server *apiserver.Server) (*guest, dynamic.ResourceInterface) {
	t.Helper()
	cluster := &localenv.Cluster{Config: server.Config()}
	client, err := dynamic.NewForConfig(server.Config())
	if err != nil {
		t.Fatal(err)
	}
	if cluster.Kube, err = kubernetes.NewForConfig(server.Config()); err != nil {
		t.Fatal(err)
	}
	if cluster.Lockstep, err = lockstep.NewForConfig(server.Config()); err != nil {
		t.Fatal(err)
	}
	return &guest{cluster: cluster}, client.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
}

// TestTheKindsOfADemoThatWasKilledGoWithTheNextOne, and those that are somebody's stay.
func TestTheKindsOfADemoThatWasKilledGoWithTheNextOne(t *testing.T) {
	install := func(t *testing.T, crds dynamic.ResourceInterface) {
		want, err := readKinds()
		for _, crd := range want {
			_, applyErr := crds.Apply(t.Context(), crd.GetName(), crd, metav1.ApplyOptions{FieldManager: "kubectl", Force: true})
			err = errors.Join(err, applyErr)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, tc := range map[string]struct {
		before   func(t *testing.T, server *apiserver.Server, crds dynamic.ResourceInterface)
		during   func(t *testing.T, crds dynamic.ResourceInterface)
		deleting func(t *testing.T, crds dynamic.ResourceInterface) // before the first deletion is carried out
		stay     bool
	}{
		"there are none": {},
		"left by a demo that was killed": {before: func(t *testing.T, server *apiserver.Server, _ dynamic.ResourceInterface) {
			killed, _ := visit(t, server)
			if err := killed.makeKinds(t.Context()); err != nil {
				t.Fatal(err)
			}
		}},
		"left by a demo, and used since": {stay: true, before: func(t *testing.T, server *apiserver.Server, _ dynamic.ResourceInterface) {
			killed, _ := visit(t, server)
			if err := killed.makeKinds(t.Context()); err != nil {
				t.Fatal(err)
			}
			apiserver.Add(server, &frameworkv1.Framework{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "job"}})
		}},
		"left by a demo, and installed over since": {stay: true, before: func(t *testing.T, server *apiserver.Server, crds dynamic.ResourceInterface) {
			killed, _ := visit(t, server)
			if err := killed.makeKinds(t.Context()); err != nil {
				t.Fatal(err)
			}
			install(t, crds)
		}},
		"installed over while the demo runs":     {stay: true, during: install},
		"installed over in the very last moment": {stay: true, deleting: install},
		"somebody's": {stay: true, before: func(t *testing.T, _ *apiserver.Server, crds dynamic.ResourceInterface) {
			want, err := readKinds()
			for _, crd := range want {
				_, createErr := crds.Create(t.Context(), crd, metav1.CreateOptions{})
				err = errors.Join(err, createErr)
			}
			if err != nil {
				t.Fatal(err)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			server := apiserver.New(t)
			g, crds := visit(t, server)
			g.cluster.Config.Wrap(func(next http.RoundTripper) http.RoundTripper {
				return roundTrip(func(r *http.Request) (*http.Response, error) {
					if r.Method == http.MethodDelete && tc.deleting != nil {
						tc.deleting(t, crds)
						tc.deleting = nil
					}
					return next.RoundTrip(r)
				})
			})
			if tc.before != nil {
				tc.before(t, server, crds)
			}
			if err := g.makeKinds(t.Context()); err != nil {
				t.Fatal(err)
			}
			if during, err := crds.List(t.Context(), metav1.ListOptions{}); err != nil || len(during.Items) != 2 {
				t.Errorf("the demo has %d CRDs (%v), want 2", len(during.Items), err)
			}
			if tc.during != nil {
				tc.during(t, crds)
			}
			if err := g.Leave(t.Context()); err != nil {
				t.Error(err)
			}
			if after, err := crds.List(t.Context(), metav1.ListOptions{}); err != nil || (len(after.Items) == 2) != tc.stay || len(after.Items) == 1 {
				t.Errorf("%d CRDs are left (%v), want them to stay: %t", len(after.Items), err, tc.stay)
			}
		})
	}
}

// roundTrip is a transport.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestTheDemoRemovesNoNamespaceButItsOwn, and its own one also if it is not told that it has made it.
func TestTheDemoRemovesNoNamespaceButItsOwn(t *testing.T) {
	for name, tc := range map[string]struct {
		somebodys bool // there is one
		befalls   apiserver.Fault
		wantErr   string
	}{
		"it is made":                              {},
		"it is made, and the answer is lost":      {befalls: apiserver.Fault{LoseAnswer: true}, wantErr: "creating a namespace"},
		"it may not be made":                      {befalls: apiserver.Fault{Refusal: apiserver.NoRight("create", "namespaces", "")}, wantErr: "cannot create"},
		"there is one":                            {somebodys: true, wantErr: "delete it first"},
		"there is one, and it may not be made":    {somebodys: true, befalls: apiserver.Fault{Refusal: apiserver.NoRight("create", "namespaces", "")}, wantErr: "cannot create"},
		"there is one, and the connection breaks": {somebodys: true, befalls: apiserver.Fault{Refusal: apiserver.ConnectionLost()}, wantErr: "creating a namespace"},
	} {
		t.Run(name, func(t *testing.T) {
			server := apiserver.New(t)
			g, _ := visit(t, server)
			if tc.somebodys {
				apiserver.Add(server, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: guestNamespace}})
				apiserver.Add(server, &frameworkv1.Framework{ObjectMeta: metav1.ObjectMeta{Namespace: guestNamespace, Name: "job"}})
			}
			apiserver.Add(server, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: guestNamespace, Name: "default"}})
			server.SetHook(func(r *apiserver.Request) apiserver.Fault {
				if r.Resource == "namespaces" && r.Verb == apiserver.Create {
					return tc.befalls
				}
				return apiserver.Fault{}
			})
			if err := g.makeNamespace(t.Context()); (err == nil) != (tc.wantErr == "") || err != nil && !strings.Contains(err.Error(), tc.wantErr) {
				t.Errorf("error %v, want %q", err, tc.wantErr)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if err := g.Leave(ctx); err != nil {
				t.Error(err)
			}
			namespaces, jobs := apiserver.All[corev1.Namespace](server, ""), apiserver.All[frameworkv1.Framework](server, "")
			if stays := len(namespaces) == 1; stays != tc.somebodys || len(jobs) != len(namespaces) {
				t.Errorf("left are %d namespaces and %d Frameworks, want them to stay: %t", len(namespaces), len(jobs), tc.somebodys)
			}
		})
	}
}

// TestWhatADemoThatWasKilledLeavesRunningEndsWithItsNamespace, as it leads by Leases there. Who starts the next one is
// told to delete it.
func TestWhatADemoThatWasKilledLeavesRunningEndsWithItsNamespace(t *testing.T) {
	server := apiserver.New(t)
	g, _ := visit(t, server)
	g.cluster.Dir = t.TempDir()
	g.cluster.Kubeconfig = filepath.Join(g.cluster.Dir, "kubeconfig")
	if err := os.Mkdir(g.cluster.Logs(), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, program := range []string{"lockstep-controller", "lockstep-scheduler"} {
		if err := os.WriteFile(filepath.Join(g.cluster.Dir, program), []byte("#!/bin/sh\necho $@\necho begun\nexec sleep 600\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", g.cluster.Dir+":"+os.Getenv("PATH"))
	holder, seconds := "left", int32(3600)
	apiserver.Add(server, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: guestNamespace}})
	for _, program := range []string{"lockstep-controller", "lockstep-scheduler"} {
		apiserver.Add(server, &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Namespace: guestNamespace, Name: program},
			Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &seconds, RenewTime: &metav1.MicroTime{Time: time.Now()}},
		})
	}
	err := g.start(t.Context())
	t.Cleanup(localenv.KillProcesses)
	if err != nil {
		t.Fatal(err)
	}
	var flags string
	err = localenv.Await(t.Context(), "the scheduler to begin", func(context.Context) (bool, string, error) {
		log, err := os.ReadFile(filepath.Join(g.cluster.Logs(), "lockstep-scheduler.log"))
		flags = string(log)
		return strings.Contains(flags, "begun"), flags, err
	})
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(flags, "--leader-elect=false") || !strings.Contains(flags, "--leader-elect-resource-namespace="+guestNamespace+" ") {
		t.Errorf("the scheduler leads for ever: %s", flags)
	}
	config, err := os.ReadFile(filepath.Join(g.cluster.Dir, "controller.yaml"))
	if err != nil || !strings.Contains(string(config), "leaderElection: {enabled: true, namespace: "+guestNamespace+"}") {
		t.Errorf("the controller leads for ever (%v): %s", err, config)
	}

	next, _ := visit(t, server)
	if err := next.enter(t.Context()); err == nil || !strings.Contains(err.Error(), "delete it first") {
		t.Errorf("the next demo: %v", err)
	}
}

// TestSeatsThatADemoHasLeftAreTakenAway, on whichever node they are.
func TestSeatsThatADemoHasLeftAreTakenAway(t *testing.T) {
	server := apiserver.New(t)
	for _, name := range []string{"a", "b"} {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		if name == "b" {
			seats := corev1.ResourceList{seat: resource.MustParse("4")}
			node.Status.Capacity, node.Status.Allocatable = seats, seats
		}
		apiserver.Add(server, node)
	}
	g, _ := visit(t, server)
	wantSeats := func(want ...string) {
		t.Helper()
		var have []string
		for _, node := range apiserver.All[corev1.Node](server, "") {
			_, total := node.Status.Capacity[seat]
			if _, free := node.Status.Allocatable[seat]; total || free {
				have = append(have, node.Name)
			}
		}
		if strings.Join(have, " ") != strings.Join(want, " ") {
			t.Errorf("there are seats on %v, want %v", have, want)
		}
	}
	if err := g.makeRoom(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantSeats("a")
	if err := g.Leave(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantSeats()
}

// TestADemoWhoseTerminalClosesTakesItsClusterDown runs main in a process of its own. Its lockstep-local closes the
// terminal while the cluster starts, and once more while it is taken down. The cluster is below the user's own folder.
func TestADemoWhoseTerminalClosesTakesItsClusterDown(t *testing.T) {
	if os.Getenv("DEMO") != "" {
		os.Args = []string{"lockstep-demo"}
		main()
		return
	}
	hangup.Heed(t)
	dir := t.TempDir()
	calls := filepath.Join(dir, "calls")
	script := "#!/bin/sh\ncase $1 in\n" +
		"up) trap 'exit 1' TERM HUP; kill -HUP -$GROUP; while :; do sleep 0.01; done ;;\n" +
		"down) kill -HUP -$GROUP; sleep 0.1; echo $@ >> " + calls + " ;;\nesac\n"
	if err := os.WriteFile(filepath.Join(dir, "lockstep-local"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	// The group is that of a shell, as in a terminal.
	cmd := exec.CommandContext(t.Context(), "setsid", "sh", "-c", `trap : HUP; export GROUP=$$; "$0" -test.run=^TestADemoWhoseTerminalClosesTakesItsClusterDown$; exit 0`, os.Args[0])
	cmd.Env = append(os.Environ(), "DEMO=yes", "XDG_STATE_HOME="+filepath.Join(dir, "state"), "PATH="+dir+":"+os.Getenv("PATH"))
	// Nobody reads what it says.
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	read.Close()
	defer write.Close()
	cmd.Stdout, cmd.Stderr = write, write
	err = cmd.Run()
	want := "down --keep-logs --dir " + filepath.Join(dir, "state", "lockstep-local", "demo") + "\n"
	if got, readErr := os.ReadFile(calls); string(got) != want {
		t.Errorf("the cluster was taken down by %q (%v), want %q, and the demo ended with %v", got, readErr, want, err)
	}
}
