// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"maps"
	"reflect"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/lockstep-k8s/lockstep/internal/replay/workload"
)

// TestPlaysOfOneWorkloadAreTheSame: each job starts at the same time on the same nodes, and gets the same expected
// starts, on any number of processors and beside any load.
func TestPlaysOfOneWorkloadAreTheSame(t *testing.T) {
	nodes := workload.Uniform(12, 8)
	for name, jobs := range map[string][]workload.Job{
		"training":   workload.Estimates(workload.Training(80, nodes, 1.2, 5), 4, 5),
		"capability": workload.Capability(40, workload.Uniform(12, 8), 1, 5),
	} {
		t.Run(name, func(t *testing.T) {
			jobs, _ := workload.Prepare(jobs, nodes)
			first := playOn(t, 1, 0, jobs, nodes)
			for _, other := range []workload.Outcome{playOn(t, 4, 0, jobs, nodes), playOn(t, 2, 2, jobs, nodes)} {
				if len(other.Runs) != len(first.Runs) || len(other.Told) != len(first.Told) {
					t.Fatalf("%d starts and %d times told in one play, %d and %d in another", len(first.Runs), len(first.Told), len(other.Runs), len(other.Told))
				}
				if !maps.Equal(first.Held, other.Held) {
					t.Fatalf("%v unit-seconds are held in one play and %v in another", first.Held, other.Held)
				}
				for i := range first.Runs {
					if a, b := first.Runs[i], other.Runs[i]; !reflect.DeepEqual(a, b) {
						t.Fatalf("start %d of %d is %+v in one play and %+v in another", i, len(first.Runs), a, b)
					}
				}
				for i := range first.Told {
					if a, b := first.Told[i], other.Told[i]; a != b {
						t.Fatalf("what was told as number %d of %d is %+v in one play and %+v in another", i, len(first.Told), a, b)
					}
				}
			}
		})
	}
}

// playOn plays on a number of processors, beside goroutines that are busy.
func playOn(t *testing.T, processors, busy int, jobs []workload.Job, nodes workload.Nodes) workload.Outcome {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(processors))
	var over atomic.Bool
	defer over.Store(true)
	for range busy {
		go func() {
			for i := 0; !over.Load(); i++ {
				if i%20_000 == 0 {
					runtime.Gosched()
				}
			}
		}()
	}
	outcome, err := Play(t, jobs, nodes, Options{Name: "lockstep", Args: DefaultArgs(true)})
	if err != nil {
		t.Fatal(err)
	}
	return outcome
}
