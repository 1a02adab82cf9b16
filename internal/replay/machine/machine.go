// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package machine plays a workload with Lockstep's scheduler itself: kube-scheduler with the plugin Coscheduling, in the configuration that
// ships, on an API server in memory. Time is virtual: Play runs in a bubble of testing/synctest, in which the clock goes on to the next timer as soon as all
// goroutines wait. So a month takes minutes, and every back-off, guard and resync of the scheduler is where it would be.
package machine

import (
	"context"
	"fmt"
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
	// Blind says that the scheduler does not know how long jobs run. Else their limits are estimates, or limits if Enforced says that
	// they are enforced.
	Blind, Enforced bool
}

// DefaultArgs returns the plugin's default arguments, without PodGroups of other projects, which do not exist here. If
// starts is false, the scheduler computes no expected starts, since these take most of the time of a replay.
func DefaultArgs(starts bool) string {
	interval := time.Duration(0)
	if starts {
		interval = time.Minute
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

// patience is how long a job may wait on an empty cluster before it counts as waiting for ever. It is longer than all
// back-offs.
const patience = 24 * time.Hour

// prepareSignals makes the runtime create its channel for signals, which it does when a program first listens for one,
// as kube-scheduler does. Otherwise the channel would belong to the first bubble.
var prepareSignals = sync.OnceFunc(func() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGUSR2)
	signal.Stop(signals)
})

// player feeds the scheduler with jobs, and ends jobs when their time is over.
type player struct {
	t      *testing.T
	server *apiserver.Server
	jobs   []workload.Job
	// nodes and owners have numbers, by name.
	nodes, owners map[string]int
	begin         time.Time
	options       Options

	// bound has what the API server was asked to bind since the player looked last.
	mu    sync.Mutex
	bound []binding
	told  []workload.Told
	rings chan struct{}

	started  []started
	running  workload.Running
	finished int
	outcome  workload.Outcome
}

// binding is one Pod that has got its node.
type binding struct {
	job, pod int
	node     string
}

// started is what of a job has a node.
type started struct {
	since time.Time
	nodes []int
	bound int
}

func play(t *testing.T, jobs []workload.Job, nodes workload.Nodes, options Options) (workload.Outcome, error) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	p := &player{t: t, server: apiserver.New(t, append(unknownResources(), apiserver.WithDiscovery())...), jobs: jobs, nodes: map[string]int{}, owners: map[string]int{}, options: options,
		rings: make(chan struct{}, 1), started: make([]started, len(jobs)), outcome: workload.Outcome{Policy: options.Name}}
	before, err := cputime.Used()
	if err != nil {
		return workload.Outcome{}, err
	}
	stop, err := runScheduler(ctx, p.server.Process("lockstep-scheduler").Config(), options.Args)
	if err != nil {
		return workload.Outcome{}, err
	}
	p.addNodes(nodes) // One by one: the scheduler takes a list of them in an order that chance decides.
	time.Sleep(time.Minute)
	p.begin = time.Now()
	p.server.SetObserver(p.observe)
	p.run()
	cancel()
	stop()
	time.Sleep(time.Minute) // What the scheduler has begun beside its loop ends, too.
	after, err := cputime.Used()
	p.outcome.CPU, p.outcome.Told = after-before, p.told
	return p.outcome, err
}

// run plays all jobs until each has ended.
func (p *player) run() {
	for next := 0; p.finished < len(p.jobs); {
		now := time.Since(p.begin)
		for run, ok := p.running.Ended(now); ok; run, ok = p.running.Ended(now) {
			p.end(run.Job)
		}
		for next < len(p.jobs) && p.jobs[next].Submit <= now {
			p.create(next)
			next++
		}
		p.server.ClearJournal()
		at, running := p.running.End()
		switch {
		case next < len(p.jobs) && (!running || p.jobs[next].Submit < at):
			at = p.jobs[next].Submit
		case !running:
			at = now + patience
		}
		select {
		case <-time.After(time.Until(p.begin.Add(at))):
			if next == len(p.jobs) && !running {
				return // What waits now would wait for ever: the cluster is empty.
			}
		case <-p.rings:
			p.take()
		}
	}
}

// take looks at what was bound.
func (p *player) take() {
	p.mu.Lock()
	bound := p.bound
	p.bound = nil
	p.mu.Unlock()
	now := time.Now()
	for _, b := range bound {
		job, s := &p.jobs[b.job], &p.started[b.job]
		if s.bound == 0 {
			s.since, s.nodes = now, make([]int, job.Pods)
		}
		s.nodes[b.pod] = p.nodes[b.node]
		if s.bound++; s.bound < job.Pods {
			continue
		}
		p.outcome.PartTime += now.Sub(s.since)
		start := now.Sub(p.begin)
		run := workload.Run{Job: b.job, Start: start, End: start + job.Runtime, Nodes: s.nodes}
		p.outcome.Runs = append(p.outcome.Runs, run)
		p.running.Add(run)
		for i := range job.Pods {
			apiserver.Change(p.server, p.namespaceOf(b.job), podName(b.job, i), func(pod *corev1.Pod) {
				pod.Status.Phase, pod.Status.StartTime = corev1.PodRunning, &metav1.Time{Time: now}
			})
		}
	}
}

// observe records each Pod that gets a node. The API server holds its lock during the call.
func (p *player) observe(w *apiserver.Written) {
	if w.Resource == schedulingv1alpha1.PodGroupPlural && !w.Created() && !w.Removed() {
		p.hear(apiserver.Before[schedulingv1alpha1.PodGroup](w), apiserver.After[schedulingv1alpha1.PodGroup](w))
	}
	if w.Resource != "pods" || w.Created() || w.Removed() {
		return
	}
	before, after := apiserver.Before[corev1.Pod](w), apiserver.After[corev1.Pod](w)
	if before.Spec.NodeName != "" || after.Spec.NodeName == "" {
		return
	}
	job, _ := strconv.Atoi(after.Annotations["job"])
	pod, _ := strconv.Atoi(after.Annotations["pod"])
	p.mu.Lock()
	p.bound = append(p.bound, binding{job: job, pod: pod, node: after.Spec.NodeName})
	p.mu.Unlock()
	select {
	case p.rings <- struct{}{}:
	default:
	}
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

// end removes what is left of a job.
func (p *player) end(job int) {
	name, namespace := groupName(job), p.namespaceOf(job)
	apiserver.Remove[schedulingv1alpha1.PodGroup](p.server, namespace, name)
	for i := range p.jobs[job].Pods {
		apiserver.Remove[corev1.Pod](p.server, namespace, podName(job, i))
	}
	p.finished++
}

// create makes a job's PodGroup and Pods.
func (p *player) create(number int) {
	job := &p.jobs[number]
	namespace := p.namespaceOf(number)
	group := &schedulingv1alpha1.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: groupName(number), Annotations: map[string]string{"job": strconv.Itoa(number)}},
		Spec:       schedulingv1alpha1.PodGroupSpec{MinMember: int32(job.Pods)},
	}
	var owners []metav1.OwnerReference
	if seconds := ptr.To(int32(max(1, min(job.Limit.Seconds(), schedulingv1alpha1.MaxRuntimeSeconds)))); job.Limit > 0 && p.options.Enforced {
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
}

func (p *player) addNodes(nodes workload.Nodes) {
	for i, units := range nodes {
		name := fmt.Sprintf("node-%d", i)
		p.nodes[name] = i
		has := corev1.ResourceList{unit: *resource.NewQuantity(int64(units), resource.DecimalSI), corev1.ResourcePods: resource.MustParse("110")}
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

// namespaceOf returns the namespace of a job's owner. It has a number, as an owner may have any name.
func (p *player) namespaceOf(job int) string {
	owner := p.jobs[job].Owner
	number, known := p.owners[owner]
	if !known {
		number = len(p.owners)
		p.owners[owner] = number
	}
	return fmt.Sprintf("owner-%d", number)
}
