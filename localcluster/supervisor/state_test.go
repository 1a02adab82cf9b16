// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-k8s/lockstep/internal/localenv"
	"github.com/lockstep-k8s/lockstep/localcluster/cluster"
	"github.com/lockstep-k8s/lockstep/localcluster/process"
)

// TestTheStateIsWhatLocalenvReads holds the state file and the lock to what the
// tests, the benchmarks and the demo of Lockstep make of them.
func TestTheStateIsWhatLocalenvReads(t *testing.T) {
	layout := cluster.Layout{Dir: t.TempDir()}
	lockFile, err := lock(layout)
	if err != nil {
		t.Fatal(err)
	}
	defer lockFile.Close()
	err = writeState(layout, &State{
		PID: 2, Phase: Ready, Started: time.Now(),
		Address: map[string]string{cluster.Controller: "127.0.0.1:7"},
		Programs: []process.Status{
			{Name: "etcd", PID: 3, State: process.Restarting, Restarts: 1, Since: time.Now()},
			{Name: cluster.Controller, PID: 4, State: process.Running, Since: time.Now()},
		},
	})
	if err != nil {
		t.Fatal(err)
	}

	controller := localenv.Program{Name: cluster.Controller, PID: 4, State: string(process.Running), Address: "127.0.0.1:7"}
	want := &localenv.State{Phase: string(Ready), Programs: []localenv.Program{
		{Name: "etcd", PID: 3, State: string(process.Restarting), Restarts: 1}, controller,
	}}
	got, err := localenv.ReadState(layout.Dir)
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("the state is read as (-want,+got), %v:\n%s", err, diff)
	}
	local := &localenv.Cluster{Dir: layout.Dir}
	if program, err := local.Program(cluster.Controller); program != controller || err != nil {
		t.Errorf("the controller is %+v, %v", program, err)
	}
	if program, err := local.Program("etcd"); err == nil {
		t.Errorf("a program that is just restarted is found: %+v", program)
	}
	if local.Bin() != layout.Bin() || local.Logs() != layout.Logs() {
		t.Errorf("localenv looks for %s and %s, not for %s and %s", local.Bin(), local.Logs(), layout.Bin(), layout.Logs())
	}

	lockFile.Close() // as if the supervisor was killed
	if program, err := local.Program(cluster.Controller); err == nil {
		t.Errorf("a program of a cluster that was killed is found: %+v", program)
	}
}
