// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package live plays a workload on a real cluster with any scheduler. It creates nodes that KWOK simulates, creates
// each job when the job is due, and deletes its Pods when its run time is over. Time in the workload runs faster than
// time in the cluster.
package live

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/lockstep-k8s/lockstep/internal/replay/feed"
	"github.com/lockstep-k8s/lockstep/internal/replay/workload"
)

// Options say on which cluster, and how.
type Options struct {
	// Name is that of the policy in the outcome.
	Name string
	// Config is how to reach the cluster, with the rights to create nodes, namespaces, Pods and PodGroups.
	Config *rest.Config
	// SchedulerName is that of all Pods.
	SchedulerName string
	// PodGroups is the API group of the PodGroups that the scheduler knows, one of Kinds.
	PodGroups string
	// Speed is how many seconds of the workload pass in a second of the cluster, above 0.
	Speed float64
}

const (
	// writers is how many requests are under way at a time.
	writers = 32
	// ready is how long the replay waits at most until its nodes are ready, and until the objects of an earlier replay
	// are gone.
	ready = 2 * time.Minute
	// patience is how long jobs may wait while no job runs, before they count as waiting for ever.
	patience = 5 * time.Minute
)

// Play plays jobs on nodes and returns the outcome. jobs must be sorted by the time of their creation. At the end Play
// removes everything that it has created.
func Play(ctx context.Context, jobs []workload.Job, nodes workload.Nodes, o Options) (outcome workload.Outcome, err error) {
	config := rest.CopyConfig(o.Config)
	config.QPS = -1
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return outcome, fmt.Errorf("making a client: %w", err)
	}
	groups, err := dynamic.NewForConfig(config)
	if err != nil {
		return outcome, fmt.Errorf("making a client: %w", err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	p := &player{
		kube: kube, groups: groups, kind: kinds[o.PodGroups], options: o, jobs: jobs, nodes: map[string]int{}, owners: map[string]string{}, fail: cancel,
	}
	p.feed = feed.New(o.Name, jobs, p, p, time.Duration(float64(patience)*o.Speed))
	p.writes.SetLimit(writers)
	if err := p.clean(ctx); err != nil {
		return outcome, fmt.Errorf("removing what an earlier replay has left: %w", err)
	}
	defer func() {
		p.writes.Wait()
		if left := p.clean(context.WithoutCancel(ctx)); left != nil {
			err = errors.Join(err, fmt.Errorf("removing what the replay has created: %w", left))
		}
	}()
	if err := p.addNodes(ctx, nodes); err != nil {
		return outcome, err
	}
	if err := p.watch(ctx); err != nil {
		return outcome, err
	}
	p.begin = time.Now()
	return p.feed.Run(ctx)
}

// player is a feed.Cluster in a cluster.
type player struct {
	kube    kubernetes.Interface
	groups  dynamic.Interface
	kind    kind
	options Options
	jobs    []workload.Job
	feed    *feed.Feed
	// nodes have numbers, owners namespaces, by name.
	nodes  map[string]int
	owners map[string]string
	begin  time.Time

	// writes are the requests under way. If one fails, fail ends the replay.
	writes errgroup.Group
	fail   context.CancelCauseFunc
}

// Now returns the time of the workload.
func (p *player) Now() time.Duration {
	return time.Duration(float64(time.Since(p.begin)) * p.options.Speed)
}

// After returns a channel that receives when a time of the workload has come.
func (p *player) After(at time.Duration) <-chan time.Time {
	return time.After(time.Until(p.begin.Add(time.Duration(float64(at) / p.options.Speed))))
}

// watch notes each Pod that gets a node, from now on.
func (p *player) watch(ctx context.Context) error {
	factory := informers.NewSharedInformerFactoryWithOptions(p.kube, 0, informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = label }))
	informer := factory.Core().V1().Pods().Informer()
	has := func(object any) bool { return object.(*corev1.Pod).Spec.NodeName != "" }
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) {
			if has(object) {
				p.note(object.(*corev1.Pod))
			}
		},
		UpdateFunc: func(before, after any) {
			if !has(before) && has(after) {
				p.note(after.(*corev1.Pod))
			}
		},
	}); err != nil {
		return fmt.Errorf("watching Pods: %w", err)
	}
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return fmt.Errorf("watching Pods: %w", context.Cause(ctx))
	}
	return nil
}

func (p *player) note(pod *corev1.Pod) {
	job, err1 := strconv.Atoi(pod.Annotations[annotationJob])
	index, err2 := strconv.Atoi(pod.Annotations[annotationPod])
	if err1 != nil || err2 != nil || job < 0 || job >= len(p.jobs) || index < 0 || index >= p.jobs[job].Pods {
		return // somebody else's
	}
	p.feed.Bound(job, index, p.nodes[pod.Spec.NodeName])
}

// write sends a request in parallel to others. An error ends the replay.
func (p *player) write(what string, request func() error) {
	p.writes.Go(func() error {
		if err := request(); err != nil {
			p.fail(fmt.Errorf("%s: %w", what, err))
		}
		return nil
	})
}

// Create makes a job's PodGroup and then its Pods.
func (p *player) Create(ctx context.Context, number int) {
	job, namespace := &p.jobs[number], p.namespaceOf(ctx, number)
	if p.kind.group != "" {
		estimate := int64(0)
		if job.Limit > 0 {
			estimate = int64(math.Ceil(job.Limit.Seconds() / p.options.Speed))
		}
		_, err := p.groups.Resource(p.kind.resource()).Namespace(namespace).Create(ctx, p.kind.podGroup(number, job, estimate), metav1.CreateOptions{})
		if err != nil {
			p.fail(fmt.Errorf("creating the PodGroup of a job: %w", err))
			return
		}
	}
	for i := range job.Pods {
		p.write("creating a Pod", func() error {
			_, err := p.kube.CoreV1().Pods(namespace).Create(ctx, p.kind.pod(number, i, job, p.options.SchedulerName), metav1.CreateOptions{})
			return err
		})
	}
}

// Started implements feed.Cluster: KWOK runs the Pods.
func (p *player) Started(context.Context, int) {}

// End removes a job.
func (p *player) End(ctx context.Context, number int, _ bool) {
	namespace := p.namespaceOf(ctx, number)
	for i := range p.jobs[number].Pods {
		p.write("deleting a Pod", func() error {
			name := p.kind.pod(number, i, &p.jobs[number], "").Name
			return ignoreNotFound(p.kube.CoreV1().Pods(namespace).Delete(ctx, name, metav1.DeleteOptions{}))
		})
	}
	if p.kind.group != "" {
		p.write("deleting a PodGroup", func() error {
			return ignoreNotFound(p.groups.Resource(p.kind.resource()).Namespace(namespace).Delete(ctx, jobName(number), metav1.DeleteOptions{}))
		})
	}
}

// namespaceOf returns the namespace of a job's owner, and creates it for the owner's first job.
func (p *player) namespaceOf(ctx context.Context, number int) string {
	owner := p.jobs[number].Owner
	if name, known := p.owners[owner]; known {
		return name
	}
	name := fmt.Sprintf("replay-owner-%d", len(p.owners))
	p.owners[owner] = name
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{label: "true"}}}
	if _, err := p.kube.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil {
		p.fail(fmt.Errorf("creating a namespace: %w", err))
	}
	return name
}

// addNodes makes the nodes, and waits until all are ready.
func (p *player) addNodes(ctx context.Context, nodes workload.Nodes) error {
	for i, units := range nodes {
		p.nodes[nodeName(i)] = i
		p.write("creating a node", func() error {
			_, err := p.kube.CoreV1().Nodes().Create(ctx, node(i, units), metav1.CreateOptions{})
			return err
		})
	}
	err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, ready, true, func(ctx context.Context) (bool, error) {
		list, err := p.kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: label})
		if err != nil {
			return false, err
		}
		n := 0
		for i := range list.Items {
			for _, c := range list.Items[i].Status.Conditions {
				if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
					n++
				}
			}
		}
		return n == len(nodes), nil
	})
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return fmt.Errorf("not all nodes of the replay became ready: does KWOK run in the cluster, and play nodes with the annotation kwok.x-k8s.io/node or the label type=kwok? %w", err)
	}
	return nil
}

// clean removes all objects of a replay, and waits until they are gone.
func (p *player) clean(ctx context.Context) error {
	of := metav1.ListOptions{LabelSelector: label}
	if err := p.kube.CoreV1().Nodes().DeleteCollection(ctx, metav1.DeleteOptions{}, of); err != nil {
		return err
	}
	namespaces, err := p.kube.CoreV1().Namespaces().List(ctx, of)
	if err != nil {
		return err
	}
	for i := range namespaces.Items {
		if err := ignoreNotFound(p.kube.CoreV1().Namespaces().Delete(ctx, namespaces.Items[i].Name, metav1.DeleteOptions{})); err != nil {
			return err
		}
	}
	return wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, ready, true, func(ctx context.Context) (bool, error) {
		namespaces, err := p.kube.CoreV1().Namespaces().List(ctx, of)
		if err != nil {
			return false, err
		}
		nodes, err := p.kube.CoreV1().Nodes().List(ctx, of)
		return err == nil && len(namespaces.Items)+len(nodes.Items) == 0, err
	})
}

// ignoreNotFound is the error of a deletion, unless the object is gone already.
func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
