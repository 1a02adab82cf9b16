// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/internal/localenv"
	"github.com/lockstep-k8s/lockstep/podgroup"
)

// The two jobs.
const (
	first   = "training-a"
	second  = "training-b"
	workers = 4
)

// play performs the demo and checks, scene by scene, that what it promises is
// what happens.
type play struct {
	options
	cluster *localenv.Cluster
	screen  *screen
}

// view is what the cluster shows of one job at one moment.
type view struct {
	framework *frameworkv1.Framework
	group     *schedulingv1alpha1.PodGroup // nil while there is none
	pods      []corev1.Pod
}

// bound counts the Pods that hold a place on a node.
func (v view) bound() int {
	n := 0
	for _, pod := range v.pods {
		if pod.Spec.NodeName != "" {
			n++
		}
	}
	return n
}

func (v view) attempt() int32 {
	if v.framework == nil || v.framework.Status == nil {
		return -1
	}
	return v.framework.Status.AttemptStatus.ID
}

func (v view) state() frameworkv1.FrameworkState {
	if v.framework == nil || v.framework.Status == nil {
		return ""
	}
	return v.framework.Status.State
}

func (v view) runningTasks() int32 {
	if v.framework == nil || v.framework.Status == nil || v.framework.Status.Tasks == nil {
		return 0
	}
	return v.framework.Status.Tasks.Running
}

// succeeded says whether the job is over with code 0; its error says that it is
// over otherwise.
func (v view) succeeded() (bool, error) {
	if v.state() != frameworkv1.FrameworkCompleted {
		return false, nil
	}
	if done := v.framework.Status.AttemptStatus.CompletionStatus; done == nil || done.Code != frameworkv1.CodeSucceeded {
		return false, fmt.Errorf("%s did not succeed: %+v", v.framework.Name, done)
	}
	return true, nil
}

// unschedulable is the condition that says why the gang waits; nil while it
// does not.
func (v view) unschedulable() *schedulingv1alpha1.PodGroupCondition {
	if v.group == nil {
		return nil
	}
	condition := podgroup.Condition(v.group, schedulingv1alpha1.ConditionUnschedulable)
	if condition == nil || condition.Status != metav1.ConditionTrue {
		return nil
	}
	return condition
}

func (p *play) perform(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	p.screen.say("%s is submitted: %d workers that train one model and need each other. There is room for them, and no more.", first, workers)
	if err := p.submit(ctx, first, true); err != nil {
		return err
	}
	if err := p.until(ctx, first+" to run whole", func(a, _ view) (bool, error) {
		return a.attempt() == 0 && a.runningTasks() == workers, nil
	}); err != nil {
		return err
	}
	p.screen.say("%s runs, all %d workers at once. One of them is about to fail with exit code 200, a transient failure.", first, workers)
	if err := p.until(ctx, first+" to be retried and run whole again", func(a, _ view) (bool, error) {
		return a.attempt() == 1 && a.runningTasks() == workers, nil
	}); err != nil {
		return err
	}

	p.screen.say("The whole attempt was retried, as attempt 1. Now %s, just as large, is submitted: there is no room for it.", second)
	if err := p.submit(ctx, second, false); err != nil {
		return err
	}
	if err := p.secondWaits(ctx); err != nil {
		return err
	}
	if err := p.secondRuns(ctx); err != nil {
		return err
	}

	p.screen.say("Both are done.")
	if !p.simulated() && !p.screen.lossFell(first, second) {
		return errors.New("the loss that the jobs printed did not fall")
	}
	return p.list(ctx)
}

// secondWaits sees the second job wait whole and say why.
func (p *play) secondWaits(ctx context.Context) error {
	err := p.until(ctx, second+" to say why it waits", func(a, b view) (bool, error) {
		if done, _ := a.succeeded(); done {
			return false, fmt.Errorf("%s was done before %s could be seen waiting", first, second)
		}
		return len(b.pods) == workers && b.unschedulable() != nil && b.unschedulable().Reason == schedulingv1alpha1.ReasonNotEnoughResources, nil
	})
	if err != nil {
		return err
	}
	p.screen.say("%s waits whole: %d Pods pending, none placed, nothing held. Its PodGroup says why.", second, workers)
	return p.list(ctx)
}

// secondRuns sees the second job start when the first is done, never in part
// before, and both succeed.
func (p *play) secondRuns(ctx context.Context) error {
	firstDone := false
	return p.until(ctx, second+" to start when "+first+" is done, and to succeed", func(a, b view) (bool, error) {
		// Places are taken from the first job's Pods only when all have ended.
		firstEnded := a.bound() == 0 || allEnded(a.pods)
		if b.bound() > 0 && !firstEnded {
			return false, fmt.Errorf("%d Pods of %s are placed while %s runs", b.bound(), second, first)
		}
		done, err := a.succeeded()
		if err != nil {
			return false, err
		}
		if done && !firstDone {
			firstDone = true
			p.screen.say("%s has succeeded and left its place to %s.", first, second)
		}
		bDone, err := b.succeeded()
		return done && bDone, err
	})
}

func allEnded(pods []corev1.Pod) bool {
	for _, pod := range pods {
		if pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed {
			return false
		}
	}
	return true
}

// until shows what happens until condition is true.
func (p *play) until(ctx context.Context, what string, condition func(a, b view) (bool, error)) error {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		a, errA := p.look(ctx, first)
		b, errB := p.look(ctx, second)
		if err := errors.Join(errA, errB); err != nil && ctx.Err() == nil {
			return fmt.Errorf("looking at the cluster: %w", err)
		}
		if ctx.Err() == nil {
			p.screen.show(first, a)
			p.screen.show(second, b)
			done, err := condition(a, b)
			if err != nil || done {
				return err
			}
			p.followLogs(ctx, first, a)
			p.followLogs(ctx, second, b)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("gave up waiting for %s: %w", what, context.Cause(ctx))
		case <-tick.C:
		}
	}
}

// look reads what the cluster shows of a job. A job that is not there is empty.
func (p *play) look(ctx context.Context, name string) (view, error) {
	fw, err := p.cluster.Lockstep.FrameworkcontrollerV1().Frameworks(p.namespace()).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return view{}, nil
	}
	if err != nil {
		return view{}, err
	}
	v := view{framework: fw}
	v.group, err = p.cluster.Lockstep.SchedulingV1alpha1().PodGroups(p.namespace()).Get(ctx, frameworkv1.PodGroupName(name), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		v.group = nil
	} else if err != nil {
		return view{}, err
	}
	v.pods, err = p.cluster.PodsOf(ctx, p.namespace(), name)
	return v, err
}

// submit applies the training job under another name.
func (p *play) submit(ctx context.Context, name string, fails bool) error {
	manifest, err := os.ReadFile(p.manifest)
	if err != nil {
		return fmt.Errorf("reading the training job: %w", err)
	}
	job, err := cast(manifest, role{name: name, fails: fails, simulated: p.simulated(), image: p.imageName})
	if err != nil {
		return fmt.Errorf("%s: %w", p.manifest, err)
	}
	out, err := p.cluster.KubectlApply(ctx, p.namespace(), job)
	return p.show("kubectl apply", out, err)
}

// list shows the jobs as kubectl does.
func (p *play) list(ctx context.Context) error {
	out, err := p.cluster.Kubectl(ctx, "get", "frameworks.frameworkcontroller.microsoft.com,podgroups.scheduling.lockstep.dev", "--namespace", p.namespace())
	return p.show("kubectl get", out, err)
}

// show prints what a command has printed, and says which one has failed.
func (p *play) show(command, out string, err error) error {
	fmt.Print(out)
	if err != nil {
		return fmt.Errorf("%s: %w", command, err)
	}
	return nil
}

// followLogs shows what worker 0 of a job prints, once for each of its Pods.
func (p *play) followLogs(ctx context.Context, name string, v view) {
	if p.simulated() {
		return // simulated containers print nothing
	}
	for _, pod := range v.pods {
		if pod.Name != frameworkv1.PodName(name, "worker", 0) || pod.Status.Phase == corev1.PodPending || !p.screen.follow(string(pod.UID)) {
			continue
		}
		stream, err := p.cluster.Kube.CoreV1().Pods(p.namespace()).GetLogs(pod.Name, &corev1.PodLogOptions{Follow: true}).Stream(ctx)
		if err != nil {
			p.screen.unfollow(string(pod.UID)) // its container may not be there yet
			continue
		}
		go func() {
			defer stream.Close()
			p.screen.copyLog(name, stream)
		}()
	}
}
