// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/internal/testing/apiserver"
)

var (
	shellLives = flag.Uint64("shell-lives", 2000, "how many random lives TestShellLives leads")
	shellFirst = flag.Uint64("shell-first-seed", 0, "the seed of the first of them; the others count up")
	shellSeed  = flag.Int64("shell-seed", -1, "lead only the random life of this seed, and print it")
)

func TestShellLives(t *testing.T) {
	quiet(t)
	if *shellSeed >= 0 {
		leadShellLife(t, uint64(*shellSeed), true)
		return
	}
	lives := *shellLives
	if testing.Short() {
		lives = min(lives, 200)
	}
	t.Logf("leading %d lives, with the seeds %d to %d", lives, *shellFirst, *shellFirst+lives-1)
	var next atomic.Uint64
	for range runtime.GOMAXPROCS(0) {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			for i := next.Add(1) - 1; i < lives && !t.Failed(); i = next.Add(1) - 1 {
				leadShellLife(t, *shellFirst+i, false)
			}
		})
	}
}

// quiet has nobody write to the log, and no handler of errors sleep by a clock that
// it shares with other bubbles.
func quiet(t *testing.T) {
	state := klog.CaptureState()
	handlers := utilruntime.ErrorHandlers
	t.Cleanup(func() {
		state.Restore()
		utilruntime.ErrorHandlers = handlers
	})
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	utilruntime.ErrorHandlers = nil
}

// leadShellLife leads one life in a bubble of its own.
func leadShellLife(t *testing.T, seed uint64, verbose bool) {
	defer func() {
		if err := recover(); err != nil {
			t.Errorf("the bubble of seed %d: %v", seed, err)
		}
		if t.Failed() {
			t.Logf("to see the life alone: go test ./controller -run TestShellLives -shell-seed %d -v", seed)
		}
	}()
	synctest.Test(t, func(t *testing.T) {
		l := newShellLife(t, seed)
		l.trace.verbose = verbose
		defer l.trace.print()
		l.live()
	})
}

// shellLife is a few Frameworks in one random cluster.
type shellLife struct {
	*cluster
	seed       uint64
	frameworks []*frameworkv1.Framework
}

func newShellLife(t *testing.T, seed uint64) *shellLife {
	random := rand.New(rand.NewPCG(seed, 0))
	return &shellLife{cluster: newCluster(t, random), seed: seed}
}

func (l *shellLife) live() {
	for i := range 1 + l.random.IntN(3) {
		f := l.newFramework(fmt.Sprintf("%c", 'a'+i))
		l.frameworks = append(l.frameworks, apiserver.Add(l.server, f))
	}
	l.startProgram()
	l.peace()
	l.stopProgram()
	if !l.awaitPrograms(time.Minute) {
		l.t.Errorf("the controller has not ended")
	}
}

func (l *shellLife) peace() {
	begun := time.Now()
	for time.Since(begun) < 20*time.Minute && !l.allCompleted() {
		l.pass(time.Second)
		l.runNodes(1)
	}
	for _, f := range l.frameworks {
		if s := l.statusOf(f.Namespace, f.Name); s == nil || s.State != frameworkv1.FrameworkCompleted {
			l.t.Errorf("%s is %+v after peace", f.Name, s)
		}
	}
}

func (l *shellLife) allCompleted() bool {
	for _, f := range l.frameworks {
		if s := l.statusOf(f.Namespace, f.Name); s == nil || s.State != frameworkv1.FrameworkCompleted {
			return false
		}
	}
	return true
}

func (l *shellLife) newFramework(name string) *frameworkv1.Framework {
	return &frameworkv1.Framework{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name},
		Spec: frameworkv1.FrameworkSpec{
			ExecutionType: frameworkv1.ExecutionStart,
			TaskRoles: []frameworkv1.TaskRoleSpec{{
				Name: "w", TaskNumber: 3,
				FrameworkAttemptCompletionPolicy: frameworkv1.CompletionPolicySpec{MinFailedTaskCount: ptr.To(int32(1)), MinSucceededTaskCount: ptr.To(int32(-1))},
			}},
		},
	}
}
