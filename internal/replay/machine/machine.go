// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package machine plays a workload with Lockstep's scheduler itself: kube-scheduler with the plugin Coscheduling, in
// the configuration that ships, on an API server in memory. Time is virtual: Play runs in a bubble of testing/synctest,
// in which the clock goes on to the next timer as soon as all goroutines wait. So a month takes minutes, and every
// back-off, guard and resync of the scheduler is where it would be.
package machine

import (
	"context"
	"fmt"
	"math"
	"os"
	"os/signal"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/internal/cputime"
	"github.com/lockstep-k8s/lockstep/internal/replay/feed"
	"github.com/lockstep-k8s/lockstep/internal/replay/workload"
	"github.com/lockstep-k8s/lockstep/internal/testing/apiserver"
)

// unit is the resource of the nodes.
const unit corev1.ResourceName = "nvidia.com/gpu"

// schedulerName is that of all Pods.
const schedulerName = "lockstep-scheduler"

// Options say how the scheduler runs.
type Options struct {
	// Name is that of the policy in the outcome.
	Name string
	// Args are the arguments of the plugin Coscheduling as JSON.
	Args string
	// Blind means that the scheduler does not know how long jobs run. Otherwise it knows their limits: as limits if
	// Enforced is true, else as estimates.
	Blind, Enforced bool
	// Ended is called when a job has ended. Nil: it is not called.
	Ended func()
}

// DefaultArgs returns the plugin's default arguments, with the PodGroup APIs of other projects off. If starts is false,
// the scheduler computes no expected starts, which take most of the time of a replay.
func DefaultArgs(starts bool) string {
	interval := time.Duration(0)
	if starts {
		interval = time.Minute + time.Nanosecond // at no moment at which anything else happens, so that each play computes them from the same state
	}
	return fmt.Sprintf(`{"podGroupAPIs":{"native":{"mode":"Off"},"schedulerPlugins":{"mode":"Off"},"volcano":{"mode":"Off"}},"expectedStarts":{"interval":"%s"}}`, interval)
}

// Play plays jobs on nodes and returns the outcome. jobs are sorted by the time of their creation. Errors of the API
// server in memory fail t.
func Play(t *testing.T, jobs []workload.Job, nodes workload.Nodes, options Options) (workload.Outcome, error) {
	prepareSignals()
	var outcome workload.Outcome
	var err error
	synctest.Test(t, func(t *testing.T) {
		outcome, err = play(t, jobs, nodes, options)
	})
	return outcome, err
}

// patience is how long a job may wait on an empty cluster before it counts as waiting for ever. All back-offs are
// shorter.
const patience = 24 * time.Hour

// prepareSignals makes the runtime create its channel for signals outside of any testing/synctest bubble. The runtime
// creates the channel when a program first listens for a signal, as kube-scheduler does. If that happened in a bubble,
// the channel could not be used outside of this bubble, so not in the next one.
var prepareSignals = sync.OnceFunc(func() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGUSR2)
	signal.Stop(signals)
})

// player is a feed.Cluster in the API server in memory.
type player struct {
	server *apiserver.Server
	jobs   []workload.Job
	feed   *feed.Feed
	// nodes and owners have numbers, by name.
	nodes, owners map[string]int
	begin         time.Time
	options       Options

	mu   sync.Mutex
	told []workload.Told
	// bound is how many Pods of each job that has not ended have a node. used is how many units these Pods use.
	bound map[int]int
	used  int
}

// Now and After make the player a feed.Clock: the virtual time since the begin.
func (p *player) Now() time.Duration { return time.Since(p.begin) }

// After implements feed.Clock.
func (p *player) After(at time.Duration) <-chan time.Time {
	return time.After(time.Until(p.begin.Add(at)))
}

func play(t *testing.T, jobs []workload.Job, nodes workload.Nodes, options Options) (workload.Outcome, error) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	p := &player{server: apiserver.New(t, append(unknownResources(), apiserver.WithDiscovery())...), jobs: jobs, nodes: map[string]int{}, owners: map[string]int{}, bound: map[int]int{}, options: options}
	p.feed = feed.New(options.Name, jobs, p, p, patience)
	before, err := cputime.Used()
	if err != nil {
		return workload.Outcome{}, err
	}
	held := newHeld()
	stop, err := runScheduler(ctx, p.server.Process("lockstep-scheduler").Config(), options.Args, held)
	if err != nil {
		return workload.Outcome{}, err
	}
	p.addNodes(nodes) // One by one: the scheduler takes a list of them in an order that chance decides.
	time.Sleep(time.Minute)
	p.begin = time.Now()
	p.server.SetObserver(p.observe)
	watched := make(chan error, 1)
	free := func() int {
		p.mu.Lock()
		defer p.mu.Unlock()
		return nodes.Units() - p.used
	}
	go func() { watched <- held.watch(ctx, p.begin.Add(lastOf(jobs)), free) }()
	outcome, err := p.feed.Run(ctx)
	if err != nil {
		return workload.Outcome{}, err
	}
	cancel()
	stop()
	if err := <-watched; err != nil {
		return workload.Outcome{}, err
	}
	time.Sleep(time.Minute) // What the scheduler has begun beside its loop ends, too.
	after, err := cputime.Used()
	outcome.CPU, outcome.Told, outcome.Held = after-before, p.told, held.unitSeconds
	return outcome, err
}

// lastOf returns when the last job is created.
func lastOf(jobs []workload.Job) time.Duration {
	if len(jobs) == 0 {
		return 0
	}
	return jobs[len(jobs)-1].Submit
}

// Started has the Pods of a job run.
func (p *player) Started(_ context.Context, job int) {
	now := metav1.Now()
	for i := range p.jobs[job].Pods {
		apiserver.ChangeAny(p.server, p.namespaceOf(job), podName(job, i), func(pod *corev1.Pod) {
			pod.Status.Phase, pod.Status.StartTime = corev1.PodRunning, &now
		})
	}
	p.tidy()
}

// remembered is for how long the API server remembers changes: longer than a watch may last without an event.
const remembered = time.Hour

// tidy has the API server forget what nobody asks for.
func (p *player) tidy() {
	p.server.ClearJournal()
	p.server.DropBefore(time.Now().Add(-remembered))
}

// observe records each Pod that gets a node or is evicted. The API server holds its lock during the call.
func (p *player) observe(w *apiserver.Written) {
	if w.Resource == schedulingv1alpha1.PodGroupPlural && !w.Created() && !w.Removed() {
		p.hear(apiserver.Before[schedulingv1alpha1.PodGroup](w), apiserver.After[schedulingv1alpha1.PodGroup](w))
	}
	if w.Resource != "pods" || w.Created() || w.Removed() {
		return
	}
	before, after := apiserver.Before[corev1.Pod](w), apiserver.After[corev1.Pod](w)
	job, _ := strconv.Atoi(after.Annotations["job"])
	switch {
	case before.DeletionTimestamp == nil && after.DeletionTimestamp != nil:
		p.feed.Evicted(job)
	case before.Spec.NodeName == "" && after.Spec.NodeName != "":
		pod, _ := strconv.Atoi(after.Annotations["pod"])
		p.feed.Bound(job, pod, p.nodes[after.Spec.NodeName])
		p.use(job)
	}
}

// use counts a Pod of a job that has got a node.
func (p *player) use(job int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.bound[job]++
	p.used += p.jobs[job].Units
}

// giveBack counts what the Pods of a job that has ended used.
func (p *player) giveBack(job int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.used -= p.bound[job] * p.jobs[job].Units
	delete(p.bound, job)
}

// hear records an expected start that the scheduler writes for a job.
func (p *player) hear(before, after *schedulingv1alpha1.PodGroup) {
	start := after.Status.ExpectedStart
	if start == nil || before.Status.ExpectedStart != nil && *before.Status.ExpectedStart == *start {
		return
	}
	in := func(at metav1.Time) time.Duration {
		if at.IsZero() {
			return -1
		}
		return at.Sub(p.begin)
	}
	job, _ := strconv.Atoi(after.Annotations["job"])
	p.mu.Lock()
	defer p.mu.Unlock()
	p.told = append(p.told, workload.Told{Job: job, At: time.Since(p.begin), Latest: in(start.Latest), Probable: in(start.Probable)})
}

// End removes what is left of a job. An evicted Pod is gone at once.
func (p *player) End(_ context.Context, job int, done bool) {
	name, namespace := groupName(job), p.namespaceOf(job)
	apiserver.Remove[schedulingv1alpha1.PodGroup](p.server, namespace, name)
	for i := range p.jobs[job].Pods {
		apiserver.Remove[corev1.Pod](p.server, namespace, podName(job, i))
	}
	p.giveBack(job)
	p.tidy()
	if done && p.options.Ended != nil {
		p.options.Ended()
	}
}

// Create makes a job's PodGroup and Pods.
func (p *player) Create(_ context.Context, number int) {
	job := &p.jobs[number]
	namespace := p.namespaceOf(number)
	group := &schedulingv1alpha1.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: groupName(number), Annotations: map[string]string{"job": strconv.Itoa(number)}},
		Spec:       schedulingv1alpha1.PodGroupSpec{MinMember: int32(job.Pods)},
	}
	var owners []metav1.OwnerReference
	if seconds := ptr.To(int32(math.Ceil(min(job.Limit.Seconds(), schedulingv1alpha1.MaxRuntimeSeconds)))); job.Limit > 0 && p.options.Enforced {
		owners = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: groupName(number), UID: types.UID(groupName(number)), Controller: ptr.To(true)}}
		group.OwnerReferences, group.Spec.MaxRuntimeSeconds = owners, seconds
	} else if job.Limit > 0 && !p.options.Blind {
		group.Spec.ExpectedRuntimeSeconds = seconds
	}
	apiserver.Add(p.server, group)
	for i := range job.Pods {
		amount := corev1.ResourceList{unit: *resource.NewQuantity(int64(job.Units), resource.DecimalSI)}
		apiserver.Add(p.server, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: podName(number, i),
				OwnerReferences: owners,
				Labels:          map[string]string{schedulingv1alpha1.LabelPodGroup: groupName(number)},
				Annotations:     map[string]string{"job": strconv.Itoa(number), "pod": strconv.Itoa(i)}},
			Spec: corev1.PodSpec{SchedulerName: schedulerName, RestartPolicy: corev1.RestartPolicyNever,
				Containers: []corev1.Container{{Name: "main", Image: "job", Resources: corev1.ResourceRequirements{Requests: amount, Limits: amount}}}},
			Status: corev1.PodStatus{Phase: corev1.PodPending},
		})
	}
	p.tidy()
}

func (p *player) addNodes(nodes workload.Nodes) {
	for i, units := range nodes {
		name := fmt.Sprintf("node-%d", i)
		p.nodes[name] = i
		has := corev1.ResourceList{unit: *resource.NewQuantity(int64(units), resource.DecimalSI), corev1.ResourcePods: *resource.NewQuantity(int64(max(110, units)), resource.DecimalSI)}
		apiserver.Add(p.server, &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}, UID: types.UID(name)},
			Status: corev1.NodeStatus{Capacity: has, Allocatable: has,
				Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
		})
	}
}

// groupName returns the name of a job's PodGroup. The names sort in the order of the jobs, since gangs that are
// created in the same second are planned in the order of their names.
func groupName(job int) string { return fmt.Sprintf("job-%07d", job) }

func podName(job, pod int) string { return fmt.Sprintf("job-%07d-%d", job, pod) }

// namespaceOf returns the namespace of a job's owner. Its name has a number in place of the owner's name, which may be
// no valid name of a namespace.
func (p *player) namespaceOf(job int) string {
	owner := p.jobs[job].Owner
	number, known := p.owners[owner]
	if !known {
		number = len(p.owners)
		p.owners[owner] = number
	}
	return fmt.Sprintf("owner-%d", number)
}
