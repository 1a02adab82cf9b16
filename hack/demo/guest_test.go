// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

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
	for name, tc := range map[string]struct {
		before func(t *testing.T, server *apiserver.Server, crds dynamic.ResourceInterface)
		stay   bool
	}{
		"there are none": {before: func(*testing.T, *apiserver.Server, dynamic.ResourceInterface) {}},
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
			tc.before(t, server, crds)
			if err := g.makeKinds(t.Context()); err != nil {
				t.Fatal(err)
			}
			if during, err := crds.List(t.Context(), metav1.ListOptions{}); err != nil || len(during.Items) != 2 {
				t.Errorf("the demo has %d CRDs (%v), want 2", len(during.Items), err)
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
