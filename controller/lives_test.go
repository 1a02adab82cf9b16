// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/internal/testing/apiserver"
)

var (
	shellLives = flag.Uint64("shell-lives", 400, "how many random lives TestShellLives leads, and each of the others half as many")
	shellFirst = flag.Uint64("shell-first-seed", 0, "the seed of the first of them; the others count up")
	shellFails = flag.Int64("shell-failures", 1, "after how many lives that failed to stop")
	shellSeed  = flag.Int64("shell-seed", -1, "lead only the random life of this seed, and print it")
)

func TestShellLives(t *testing.T) {
	leadLives(t, *shellLives, 200, func(t *testing.T, seed uint64) (*trace, func()) {
		l := newShellLife(t, seed)
		return l.trace, l.live
	})
}

// leadLives leads a number of random lives, or the one that a flag asks for. With -short they
// are no more than short. Each is made, with its trace, in a bubble of its own. Garbage is
// collected less often meanwhile, which saves a quarter of the time.
func leadLives(t *testing.T, lives, short uint64, newLife func(t *testing.T, seed uint64) (*trace, func())) {
	quiet(t)
	percent := debug.SetGCPercent(400)
	t.Cleanup(func() { debug.SetGCPercent(percent) })
	lead := func(t *testing.T, seed uint64, verbose bool) {
		defer func() {
			if err := recover(); err != nil {
				t.Errorf("seed %d: %v", seed, err)
			}
			if t.Failed() {
				t.Logf("to see the life alone: go test ./controller -run %s -shell-seed %d -v", testName(t), seed)
			}
		}()
		synctest.Test(t, func(t *testing.T) {
			trace, live := newLife(t, seed)
			trace.verbose = verbose
			defer trace.print()
			live()
		})
	}
	if *shellSeed >= 0 {
		lead(t, uint64(*shellSeed), true)
		return
	}
	if testing.Short() {
		lives = min(lives, short)
	}
	t.Logf("leading %d lives, with the seeds %d to %d", lives, *shellFirst, *shellFirst+lives-1)
	var next atomic.Uint64
	var failed atomic.Int64
	for range runtime.GOMAXPROCS(0) {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			for i := next.Add(1) - 1; i < lives && failed.Load() < *shellFails; i = next.Add(1) - 1 {
				seed := *shellFirst + i
				if !t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { lead(t, seed, false) }) {
					failed.Add(1)
				}
			}
		})
	}
}

// testName is the name of a test without those of its parts.
func testName(t *testing.T) string {
	name, _, _ := strings.Cut(t.Name(), "/")
	return name
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
	klog.SetLogger(logr.Discard())
	utilruntime.ErrorHandlers = nil
}

// shellLife is a few Frameworks in one random cluster.
type shellLife struct {
	*cluster
	seed       uint64
	kinds      []disturbance
	frameworks []*frameworkv1.Framework
	faults     *faults
	odds       map[fault]int
	// unhindered says that nothing stands between the controller and the cluster.
	unhindered bool
	// failing has tasks fail.
	failing bool
	// calm is since when nothing is disturbed.
	calm time.Time
}

func newShellLife(t *testing.T, seed uint64) *shellLife {
	random := rand.New(rand.NewPCG(seed, 0))
	l := &shellLife{cluster: newCluster(t, random), seed: seed, odds: map[fault]int{}}
	l.faults = newFaults(seed, l.trace)
	l.server.SetHook(l.faults.befall)
	l.kinds = chooseDisturbances(random)
	l.unhindered = !slices.ContainsFunc(l.kinds, hinders)
	return l
}

// live is a while of disturbances, in some lives of one Framework only or with an
// error that stays, and then peace in which each Framework comes to its end.
func (l *shellLife) live() {
	l.trace.log("disturbed by %v", l.kinds)
	for i := range 1 + l.random.IntN(3) {
		namespace := []string{"ns", "ns", "other"}[l.random.IntN(3)]
		l.frameworks = append(l.frameworks, apiserver.Add(l.server, l.newFramework(namespace, string(rune('a'+i)))))
	}
	l.startProgram()
	switch l.random.IntN(6) {
	case 0:
		l.keepApart()
	case 1:
		l.chaos()
		l.keepError()
	default:
		l.chaos()
	}
	l.makePeace()
	l.awaitCompletion()
	l.awaitRetention()
	l.stopProgram()
	if !l.awaitPrograms(time.Minute) {
		l.t.Errorf("the controller has not ended")
	}
}

func (l *shellLife) chaos() {
	l.slowToEnd = l.random.IntN(3) == 0
	l.ends = func(*corev1.Pod) (int32, bool) {
		code := int32(0)
		if l.failing {
			code = []int32{0, 1, 200, 201, 210, anyWay}[l.random.IntN(6)]
		}
		return code, l.random.IntN(4) == 0
	}
	for range 20 + l.random.IntN(20) {
		if l.random.IntN(3) > 0 {
			l.disturb()
		}
		l.runNodes(1 + l.random.IntN(3))
		if slices.Contains(l.kinds, disturbWatches) && l.random.IntN(6) == 0 {
			l.holdNext(watched[l.random.IntN(len(watched))])
		}
		if l.program == nil && l.random.IntN(3) == 0 {
			l.startProgram()
		}
		l.pass(l.pause())
		if l.unhindered {
			l.book.findOverdue(l.busy)
		}
	}
}

// pause is how long the next look at the cluster is away.
func (l *shellLife) pause() time.Duration {
	longest := []time.Duration{50 * time.Millisecond, time.Second, 5 * time.Second, 40 * time.Second}[l.random.IntN(4)]
	if l.random.IntN(40) == 0 {
		longest = 3 * time.Minute
	}
	return time.Duration(l.random.Int64N(int64(longest)))
}

// makePeace ends all that disturbs, and gives each Framework a reason to end.
func (l *shellLife) makePeace() {
	l.trace.log("peace begins")
	l.faults.set(nil)
	l.faults.drop("")
	clear(l.lostNodes)
	l.busy, l.failing, l.slowToEnd = false, false, false
	l.giveNamesBack()
	if l.program == nil {
		l.startProgram()
	}
	l.program.process.KillAfter(-1)
	l.clearWatches()
	for _, f := range l.frameworks {
		gentle := l.random.IntN(3) > 0
		l.edit(f, func(spec *frameworkv1.FrameworkSpec) {
			tasks := int32(0)
			for _, role := range spec.TaskRoles {
				tasks += role.TaskNumber
			}
			switch {
			case !gentle || tasks == 0:
				spec.ExecutionType = frameworkv1.ExecutionStop
			case spec.ExecutionType == frameworkv1.ExecutionCreate:
				spec.ExecutionType = frameworkv1.ExecutionStart
			}
		})
	}
	l.ends = func(*corev1.Pod) (int32, bool) { return 0, true }
	l.calm = time.Now()
}

// awaitCompletion holds that each Framework comes to its end, and is not late with
// anything on the way.
func (l *shellLife) awaitCompletion() {
	for time.Since(l.calm) < longestPeace {
		running := false
		for _, f := range l.frameworks {
			if s := l.statusOf(f.Namespace, f.Name); apiserver.Find[frameworkv1.Framework](l.server, f.Namespace, f.Name) != nil &&
				(s == nil || s.State != frameworkv1.FrameworkCompleted) {
				running = true
			}
		}
		if !running {
			return
		}
		l.pass(time.Second)
		l.runNodes(1)
		if l.book.findLate(l.calm) {
			return
		}
	}
	l.t.Errorf("after %v of peace, not all Frameworks have completed", longestPeace)
}

// longestPeace is how long a Framework may take to complete.
const longestPeace = time.Hour

// awaitRetention holds that the controller is at rest when all is done, and that
// nothing is left of Frameworks in the end.
func (l *shellLife) awaitRetention() {
	for range 10 {
		l.pass(30 * time.Second)
		l.runNodes(1)
	}
	before := l.requests()
	l.pass(time.Hour)
	if after := l.requests(); after != before {
		l.t.Errorf("there were %d requests in an hour in which there was nothing to do", after-before)
	}
	l.pass(retention)
	for range 5 {
		l.runNodes(1)
		l.pass(10 * time.Second)
	}
	if known := l.program.frameworks.Known(); known > 0 {
		l.t.Errorf("the controller remembers %d Frameworks when all are gone", known)
	}
	for _, f := range apiserver.All[frameworkv1.Framework](l.server, "") {
		l.t.Errorf("Framework %s is still there after its retention: %s", f.Name, brief(f.Status))
	}
	for _, configMap := range apiserver.All[corev1.ConfigMap](l.server, "") {
		l.t.Errorf("ConfigMap %s is left behind", configMap.Name)
	}
	for _, pod := range apiserver.All[corev1.Pod](l.server, "") {
		if metav1.GetControllerOf(pod) != nil { // Somebody has orphaned it.
			l.t.Errorf("Pod %s is left behind", pod.Name)
		}
	}
}

// requests is how many the controller has made for Frameworks.
func (l *shellLife) requests() int {
	total := 0
	for _, f := range l.frameworks {
		requests, _ := l.faults.count(f.Namespace + "/" + f.Name)
		total += requests
	}
	return total
}
