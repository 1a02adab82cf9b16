// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	configv1alpha1 "github.com/lockstep-k8s/lockstep/apis/config/v1alpha1"
	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/controller"
	"github.com/lockstep-k8s/lockstep/internal/testing/apiserver"
	"github.com/lockstep-k8s/lockstep/internal/testing/podways"
	podgroupcontroller "github.com/lockstep-k8s/lockstep/podgroup/controller"
)

// cluster is an API server in memory with a garbage collector, nodes, a scheduler,
// and one process of the controller, as it is shipped. It lives in a bubble of
// testing/synctest.
type cluster struct {
	// logger is where the controller logs, instead of the trace.
	logger logr.Logger
	t      *testing.T
	random *rand.Rand
	server *apiserver.Server
	config *configv1alpha1.ControllerConfiguration
	trace  *trace
	book   *book
	// program is the controller that runs now, nil between two.
	program *program
	// programs counts those that were started.
	programs int
	// stopping are programs that were told to end, or died, and have not returned.
	stopping []*program

	// lostNodes don't answer: their Pods neither change nor end.
	lostNodes map[string]bool
	// slowToEnd has Pods take their time to end when they are deleted.
	slowToEnd bool
	// busy keeps Pods from being placed.
	busy bool
	// ends says how a Pod that runs ends: with an exit code, or not yet.
	ends func(*corev1.Pod) (code int32, now bool)
	// faulty has the controller panic where it draws a UID.
	faulty atomic.Bool
}

// nodes of the cluster.
var nodeNames = []string{"node-1", "node-2", "node-3"}

func newCluster(t *testing.T, random *rand.Rand) *cluster {
	c := &cluster{
		t:         t,
		random:    random,
		server:    apiserver.New(t),
		trace:     &trace{t: t, begun: time.Now()},
		lostNodes: map[string]bool{},
		ends:      func(*corev1.Pod) (int32, bool) { return 0, true },
	}
	c.config = &configv1alpha1.ControllerConfiguration{
		WorkerNumber: ptr.To(int32(1 + random.IntN(3))),
		FrameworkMinRetryDelaySecForTransientConflictFailed: ptr.To(int64(5)),
		FrameworkMaxRetryDelaySecForTransientConflictFailed: ptr.To(int64(20)),
		ObjectLocalCacheCreationTimeoutSec:                  ptr.To(int64(60)),
		FrameworkCompletedRetainSec:                         ptr.To(retention.Nanoseconds() / int64(time.Second)),
	}
	off := ptr.To(false)
	c.config.LogObjectSnapshot.Framework = configv1alpha1.LogFrameworkSnapshot{OnFrameworkRetry: off, OnFrameworkDeletion: off}
	c.config.LogObjectSnapshot.Task = configv1alpha1.LogTaskSnapshot{OnTaskRetry: off, OnTaskDeletion: off}
	c.config.LogObjectSnapshot.Pod.OnPodDeletion = ptr.To(random.IntN(2) == 0)
	configv1alpha1.SetDefaults(c.config)
	c.book = newBook(t, c.trace)
	c.book.creationTimeout = time.Duration(*c.config.ObjectLocalCacheCreationTimeoutSec) * time.Second
	c.server.SetObserver(c.book.observe)
	c.server.StartGarbageCollector(time.Duration(random.IntN(1000)) * time.Millisecond)
	return c
}

// retention is how long a Completed Framework is kept.
const retention = 2 * time.Hour

// program is the controller's program: the controllers of Frameworks and of
// PodGroups.
type program struct {
	process    *apiserver.Process
	frameworks *controller.Controller
	name       string
	cancel     context.CancelFunc
	done       chan struct{}
	err        error
}

// programName is the name of the process of the n-th program.
func programName(n int) string { return fmt.Sprintf("controller-%d", n) }

// holdNext has the next program see nothing of a resource from now on but what it asks
// for to be current.
func (c *cluster) holdNext(resource string) {
	c.server.Process(programName(c.programs + 1)).Hold(resource)
}

// startProgram starts the controller, as cmd/controller does.
func (c *cluster) startProgram() {
	c.t.Helper()
	c.programs++
	name := programName(c.programs)
	p := &program{name: name, process: c.server.Process(name), done: make(chan struct{})}
	c.trace.log("%s begins", name)
	clients, err := controller.NewClients(p.process.Config())
	if err != nil {
		c.t.Fatal(err)
	}
	frameworks, err := controller.NewWith(clients, c.config, prometheus.NewRegistry(),
		&entropy{random: rand.New(rand.NewPCG(c.random.Uint64(), 0)), program: c.programs, faulty: &c.faulty})
	if err != nil {
		c.t.Fatal(err)
	}
	podGroups, err := podgroupcontroller.New(clients.Lockstep, clients.Kube,
		frameworks.PodGroupFactory().Scheduling().V1alpha1().PodGroups(), c.config.Namespaces)
	if err != nil {
		c.t.Fatal(err)
	}
	logger := c.logger
	if logger.GetSink() == nil {
		logger = logr.New(&logSink{trace: c.trace, process: name})
	}
	ctx, cancel := context.WithCancel(klog.NewContext(c.t.Context(), logger))
	p.cancel, p.frameworks = cancel, frameworks
	go func() {
		defer close(p.done)
		group, ctx := errgroup.WithContext(ctx)
		group.Go(func() error { return frameworks.Run(ctx) })
		group.Go(func() error { return podGroups.Run(ctx, 1) })
		p.err = group.Wait()
	}()
	c.program = p
	c.book.lead(name)
}

// entropy is the plan.Entropy of one program.
type entropy struct {
	mu      sync.Mutex
	random  *rand.Rand
	program int
	uids    int
	faulty  *atomic.Bool
}

// faultOfEntropy is what a faulty one panics with.
const faultOfEntropy = "no more UIDs"

func (e *entropy) NewUID() types.UID {
	if e.faulty.Load() {
		panic(faultOfEntropy)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.uids++
	return types.UID(fmt.Sprintf("%d-%d", e.program, e.uids))
}

func (e *entropy) Between(least, most int64) int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return least + e.random.Int64N(most-least+1)
}

// stopProgram tells the controller to end, if one runs.
func (c *cluster) stopProgram() {
	if p := c.program; p != nil {
		c.trace.log("%s is told to end", p.name)
		p.cancel()
		c.stopping = append(c.stopping, p)
		c.program = nil
	}
}

// killProgram has the controller die, if one runs.
func (c *cluster) killProgram() {
	if p := c.program; p != nil {
		p.process.Kill()
		c.buryProgram()
	}
}

// buryProgram notices that the controller has died. What is left of it in the
// bubble reaches nobody any more.
func (c *cluster) buryProgram() {
	if p := c.program; p != nil && p.process.Dead() {
		c.trace.log("%s has died", p.name)
		p.cancel()
		c.stopping = append(c.stopping, p)
		c.program = nil
	}
}

// awaitPrograms waits for those that were told to end, and says whether all have.
func (c *cluster) awaitPrograms(longest time.Duration) bool {
	timeout := time.After(longest)
	for ; len(c.stopping) > 0; c.stopping = c.stopping[1:] {
		select {
		case <-c.stopping[0].done:
			if err := c.stopping[0].err; err != nil {
				c.t.Errorf("%s ended with %v", c.stopping[0].name, err)
			}
		case <-timeout:
			return false
		}
	}
	return true
}

// pass lets time go by, and everybody do what there is to do by then.
func (c *cluster) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
	c.buryProgram()
}

// runNodes is what the scheduler and the nodes do in one look at all Pods. Each of
// it happens with a chance of 1 in odds.
func (c *cluster) runNodes(odds int) {
	pods := apiserver.All[corev1.Pod](c.server, "")
	c.schedule(pods, odds)
	for _, pod := range pods {
		if c.random.IntN(odds) == 0 {
			c.runPod(pod)
		}
	}
}

// schedule binds Pods, those of gangs together.
func (c *cluster) schedule(pods []*corev1.Pod, odds int) {
	if c.busy {
		return
	}
	members := map[[2]string][]*corev1.Pod{}
	for _, pod := range pods {
		group := pod.Labels[schedulingv1alpha1.LabelPodGroup]
		switch {
		case group != "":
			id := [2]string{pod.Namespace, group}
			members[id] = append(members[id], pod)
		case waitsForNode(pod) && c.random.IntN(odds) == 0:
			c.bind(pod)
		}
	}
	for _, group := range apiserver.All[schedulingv1alpha1.PodGroup](c.server, "") {
		all := members[[2]string{group.Namespace, group.Name}]
		if len(all) < int(group.Spec.MinMember) || c.random.IntN(odds) != 0 {
			continue
		}
		for _, pod := range all {
			if waitsForNode(pod) {
				c.bind(pod)
			}
		}
		c.markScheduled(group)
	}
}

func waitsForNode(pod *corev1.Pod) bool {
	return pod.Spec.NodeName == "" && pod.DeletionTimestamp == nil && pod.Status.Phase == corev1.PodPending
}

func (c *cluster) bind(pod *corev1.Pod) {
	node := nodeNames[c.random.IntN(len(nodeNames))]
	apiserver.ChangeAny(c.server, pod.Namespace, pod.Name, func(live *corev1.Pod) {
		if live.UID == pod.UID {
			live.Spec.NodeName = node
		}
	})
}

// markScheduled is the scheduler's word on a PodGroup.
func (c *cluster) markScheduled(group *schedulingv1alpha1.PodGroup) {
	if slices.ContainsFunc(group.Status.Conditions, func(c schedulingv1alpha1.PodGroupCondition) bool {
		return c.Type == schedulingv1alpha1.ConditionScheduled && c.Status == metav1.ConditionTrue
	}) {
		return
	}
	apiserver.ChangeAny(c.server, group.Namespace, group.Name, func(group *schedulingv1alpha1.PodGroup) {
		group.Status.Conditions = []schedulingv1alpha1.PodGroupCondition{{
			Type: schedulingv1alpha1.ConditionScheduled, Status: metav1.ConditionTrue,
			Reason: schedulingv1alpha1.ReasonScheduled, TransitionID: "1", LastTransitionTime: metav1.Now(),
		}}
	})
}

// runPod is what the kubelet does next with a Pod.
func (c *cluster) runPod(pod *corev1.Pod) {
	switch {
	case c.lostNodes[pod.Spec.NodeName]:
	case pod.DeletionTimestamp != nil && c.slowToEnd && c.random.IntN(8) != 0:
	case pod.DeletionTimestamp != nil:
		apiserver.DeleteObject[corev1.Pod](c.server, pod.Namespace, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)})
	case pod.Spec.NodeName == "":
	case pod.Status.Phase == corev1.PodPending:
		c.setPhase(pod, corev1.PodRunning, 0)
	case pod.Status.Phase == corev1.PodRunning:
		code, now := c.ends(pod)
		switch {
		case !now:
		case code == anyWay:
			ways := podways.Ways()
			c.endIn(pod, ways[c.random.IntN(len(ways))])
		case code == 0:
			c.setPhase(pod, corev1.PodSucceeded, 0)
		default:
			c.setPhase(pod, corev1.PodFailed, code)
		}
	}
}

// anyWay stands for one of the ways in which Kubernetes ends Pods, in place of an exit code.
const anyWay = -1

// endIn has a Pod end in a way.
func (c *cluster) endIn(pod *corev1.Pod, way podways.Way) {
	if way.Deletes() {
		apiserver.DeleteObject[corev1.Pod](c.server, pod.Namespace, pod.Name, metav1.DeleteOptions{})
	}
	uid := pod.UID
	apiserver.ChangeAny(c.server, pod.Namespace, pod.Name, func(pod *corev1.Pod) {
		if pod.UID == uid {
			way.Happen(pod, time.Now())
		}
	})
}

// setPhase is what a kubelet reports.
func (c *cluster) setPhase(pod *corev1.Pod, phase corev1.PodPhase, code int32) {
	uid := pod.UID
	apiserver.ChangeAny(c.server, pod.Namespace, pod.Name, func(pod *corev1.Pod) {
		if pod.UID != uid {
			return
		}
		pod.Status.Phase = phase
		if pod.Status.StartTime == nil {
			pod.Status.StartTime = ptr.To(metav1.Now())
		}
		pod.Status.PodIP = "10.0.0.1"
		if phase == corev1.PodSucceeded || phase == corev1.PodFailed {
			pod.Status.ContainerStatuses = nil
			for _, container := range pod.Spec.Containers {
				pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{
					Name: container.Name, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, FinishedAt: metav1.Now()}},
				})
			}
		}
	})
}

// statusOf is the stored status of a Framework, nil if there is none.
func (c *cluster) statusOf(namespace, name string) *frameworkv1.FrameworkStatus {
	if f := apiserver.Find[frameworkv1.Framework](c.server, namespace, name); f != nil {
		return f.Status
	}
	return nil
}

// trace is what happened in a life, in order, if somebody wants to see it; and how
// much of it was logged.
type trace struct {
	t     *testing.T
	begun time.Time

	mu      sync.Mutex
	verbose bool
	lines   []string
	// logged counts lines of the controller's log, by the Framework that they name.
	logged map[string]int
}

func (tr *trace) log(format string, args ...any) {
	if !tr.verbose {
		return
	}
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.lines = append(tr.lines, fmt.Sprintf("%10.3f  ", time.Since(tr.begun).Seconds())+fmt.Sprintf(format, args...))
}

// print shows the trace.
func (tr *trace) print() {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	if len(tr.lines) > 0 {
		tr.t.Logf("the life:\n%s", strings.Join(tr.lines, "\n"))
	}
}

// linesOf is how many lines the controller has logged about a Framework.
func (tr *trace) linesOf(framework string) int {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return tr.logged[framework]
}

// logSink takes the controller's log.
type logSink struct {
	trace   *trace
	process string
	values  []any
}

func (s *logSink) Init(logr.RuntimeInfo)  {}
func (s *logSink) Enabled(level int) bool { return level <= 2 }

func (s *logSink) Info(level int, message string, values ...any) {
	s.write(fmt.Sprintf("V%d", level), message, values)
}

func (s *logSink) Error(err error, message string, values ...any) {
	s.write("error", message, append(values, "err", err))
}

func (s *logSink) WithName(string) logr.LogSink { return s }

func (s *logSink) WithValues(values ...any) logr.LogSink {
	return &logSink{trace: s.trace, process: s.process, values: append(slices.Clone(s.values), values...)}
}

func (s *logSink) write(severity, message string, values []any) {
	values = append(slices.Clone(s.values), values...)
	framework := ""
	for i := 0; i+1 < len(values); i += 2 {
		if values[i] == "framework" {
			framework = fmt.Sprint(values[i+1])
		}
	}
	s.trace.mu.Lock()
	if s.trace.logged == nil {
		s.trace.logged = map[string]int{}
	}
	s.trace.logged[framework]++
	s.trace.mu.Unlock()
	s.trace.log("%s logs %s: %s %v", s.process, severity, message, values)
}
