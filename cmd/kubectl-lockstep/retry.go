// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	busv1alpha1 "github.com/lockstep-k8s/lockstep/apis/bus/v1alpha1"
	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/internal/reading"
	"github.com/lockstep-k8s/lockstep/internal/view"
)

// retryTimeout is how long retry waits for the old Framework to be gone.
const retryTimeout = time.Hour

func newRetry(s *session) *cobra.Command {
	w := &write{session: s}
	cmd := &cobra.Command{
		Use:   "retry (NAME... | -l SELECTOR)",
		Short: "Run a Framework again: recreate it if it has ended, begin another attempt if it runs",
		Long: `Run a Framework again.

A Framework that has ended: retry deletes it, and recreates it from its spec, labels and annotations.
Its history and its attempts start again.

A Framework that runs: retry deletes the ConfigMap of the attempt. The attempt ends with code -100,
which is transient, and the retryPolicy decides on another attempt. If there would be none, retry
refuses.

A Volcano Job: retry restarts it by a Command with the action RestartJob.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := w.connect(args)
			if err != nil {
				return err
			}
			err = w.each(cmd.Context(), c, args, func(t target) error { return w.retry(cmd.Context(), c, t) })
			if apierrors.IsNotFound(err) {
				w.tellKept(c, args)
			}
			return err
		},
	}
	w.selection.addFlags(cmd)
	w.addFlags(cmd)
	return cmd
}

// tellKept reports files of Frameworks that no longer exist: an earlier run was interrupted after it deleted the
// Framework, and before it created it again.
func (w *write) tellKept(c *cluster, names []string) {
	for _, text := range names {
		n, err := reading.ParseName(c.namespace, text)
		if err != nil || !n.IsFramework() {
			continue // It was told.
		}
		for _, path := range findKept(n.Namespace, n.Name) {
			w.note("An earlier retry has kept %s: %s recreates it, if the first line of the file names this API server.", text, w.creating(path))
		}
	}
}

// retry runs a job again.
func (w *write) retry(ctx context.Context, c *cluster, t target) error {
	fw := t.fw
	switch state := t.state(); {
	case fw == nil && t.job.IsPodGroup():
		return unfit(t, "retry the job that the PodGroup is for")
	case t.isVolcano() && !view.JobFinal(state) && state != "Aborted":
		return w.command(ctx, c, t, busv1alpha1.ActionRestartJob, "restarted")
	case t.isVolcano() && state == "Aborted":
		return &failure{code: exitFailed, message: t.String() + " was aborted", hint: "`start` resumes it"}
	case fw == nil:
		return unfit(t, fmt.Sprintf("save its manifest with `get %s -o yaml`, `delete` it, and create it again; a Pod that fails is retried by its restartPolicy", t))
	case fw.DeletionTimestamp != nil:
		return &failure{code: exitFailed, message: fw.Name + " is being deleted", hint: "create it again when it is gone"}
	case view.Final(state):
		return w.again(ctx, c, fw)
	case fw.Spec.ExecutionType == frameworkv1.ExecutionStop:
		return &failure{code: exitFailed, message: fw.Name + " is being stopped, and is not retried before it has ended", hint: whenEnded(fw)}
	case state == view.StateRetrying:
		return &failure{code: exitFailed, message: fw.Name + " is already waiting for its next attempt; the delay can't be skipped", hint: "`get " + fw.Name + "` shows when the next attempt begins"}
	case state == view.StateRunning || state == view.StatePreparing:
		return w.endAttempt(ctx, c, fw)
	case state == view.StateNotStarted:
		return &failure{code: exitFailed, message: fw.Name + " was never started", hint: "`start` starts it"}
	default:
		return &failure{code: exitFailed, message: fmt.Sprintf("%s is %s: there is no attempt to end now", fw.Name, state), hint: "`get " + fw.Name + " -w` shows what it does"}
	}
}

// whenEnded returns the commands to run a Framework again after the Framework has ended.
func whenEnded(fw *frameworkv1.Framework) string {
	return fmt.Sprintf("`wait %s --for=Completed`, then `retry %s`", fw.Name, fw.Name)
}

// endAttempt ends an attempt that another one follows.
func (w *write) endAttempt(ctx context.Context, c *cluster, fw *frameworkv1.Framework) error {
	if !retriedAfterLoss(fw) {
		return &failure{
			code: exitFailed, message: fw.Name + "'s retryPolicy has no retry left: to end this attempt would end the Framework",
			hint: "raise spec.retryPolicy.maxRetryCount, or `stop " + fw.Name + "`, " + whenEnded(fw),
		}
	}
	attempt := fw.Status.AttemptStatus
	if attempt.ConfigMapUID == nil {
		return &failure{code: exitFailed, message: fw.Name + " is just about to begin an attempt", hint: "try again"}
	}
	if w.dryRun != "client" {
		// The UID: an attempt that has begun since is left alone.
		foreground := metav1.DeletePropagationForeground
		err := c.reader.Kube.CoreV1().ConfigMaps(fw.Namespace).Delete(ctx, attempt.ConfigMapName, metav1.DeleteOptions{
			PropagationPolicy: &foreground, Preconditions: &metav1.Preconditions{UID: attempt.ConfigMapUID}, DryRun: w.options(),
		})
		if err != nil {
			return err
		}
	}
	w.done(target{fw: fw}, fmt.Sprintf("attempt %d ended, to be retried", attempt.ID))
	return nil
}

// retriedAfterLoss reports whether a Framework is retried when its attempt ends with -100, as
// docs/completion-and-retry.md says.
func retriedAfterLoss(fw *frameworkv1.Framework) bool {
	p := fw.Spec.RetryPolicy
	return p.FancyRetryPolicy || p.MaxRetryCount < 0 || fw.Status.RetryPolicyStatus.AccountableRetriedCount < p.MaxRetryCount
}

// again deletes a Framework that has ended and recreates it.
func (w *write) again(ctx context.Context, c *cluster, old *frameworkv1.Framework) error {
	frameworks := c.reader.Lockstep.FrameworkcontrollerV1().Frameworks(old.Namespace)
	anew := renewed(old)
	if w.dryRun == "client" {
		w.done(target{fw: old}, "recreated")
		return nil
	}
	// First that it can be made, and that the user may: what is deleted does not come back. The
	// name is taken, which the API server finds last.
	_, err := frameworks.Create(ctx, anew, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("it could not be recreated, so it was not deleted: %w", err)
	}
	// Without the right to watch its end, the program does not know when to create it.
	if _, err := frameworks.List(ctx, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", old.Name).String()}); err != nil {
		return fmt.Errorf("its deletion could not be watched, so it was not deleted: %w", err)
	}
	if w.dryRun == "server" {
		if err := w.remove(ctx, c, target{fw: old}); err != nil {
			return err
		}
		w.done(target{fw: old}, "recreated")
		return nil
	}
	manifest, err := keep(anew, c.config.Host)
	if err != nil {
		return fmt.Errorf("its manifest could not be written to a file, so it was not deleted: %w", err)
	}
	w.note("Until %s is recreated, its manifest is in %s.", old.Name, manifest.path)
	if err := w.remove(ctx, c, target{fw: old}); err != nil {
		going, unknown := w.isGoing(ctx, c, old)
		if unknown != nil {
			manifest.tell(w.session, "may have been deleted, and was not recreated")
			return unknown
		}
		if !going {
			manifest.drop(w.session)
			return err
		}
	}
	if _, err := w.wait(ctx, c.in(old.Namespace), old.Name, old.UID, forDeleted, retryTimeout); err != nil {
		manifest.tell(w.session, "was deleted, and not recreated")
		return err
	}
	if err := w.create(ctx, c, anew); err != nil {
		if passes(err) || ctx.Err() != nil {
			manifest.tell(w.session, "was deleted, and whether it was recreated is not known")
		} else {
			manifest.tell(w.session, "was deleted, and not recreated")
		}
		return err
	}
	manifest.drop(w.session)
	w.done(target{fw: old}, "recreated")
	return nil
}

// isGoing reports whether a Framework is gone or being deleted although the deletion returned an error: an answer may
// have been late or lost. A new Framework with the same name means that the old one is gone. isGoing returns an error
// if the Framework can't be read.
func (w *write) isGoing(ctx context.Context, c *cluster, old *frameworkv1.Framework) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	ctx, refuse := context.WithCancelCause(ctx)
	defer refuse(nil)
	live, err := (&trouble{refuse: refuse, note: w.note}).look(ctx, c.in(old.Namespace), old.Name)
	switch {
	case isGone(err):
		return true, nil
	case err != nil:
		return false, err
	default:
		return live.UID != old.UID || live.DeletionTimestamp != nil, nil
	}
}

// create creates a Framework, and repeats the request while the error may be temporary. If an equal Framework exists,
// an earlier request has created it and its answer was lost, so this is no error.
func (w *write) create(ctx context.Context, c *cluster, fw *frameworkv1.Framework) error {
	frameworks := c.reader.Lockstep.FrameworkcontrollerV1().Frameworks(fw.Namespace)
	var out outage
	renewed := false
	for {
		once, cancel := context.WithTimeout(ctx, lookTime)
		_, err := frameworks.Create(once, fw, metav1.CreateOptions{FieldManager: "kubectl-lockstep"})
		if apierrors.IsAlreadyExists(err) {
			taken := err
			var live *frameworkv1.Framework
			if live, err = frameworks.Get(once, fw.Name, metav1.GetOptions{}); err == nil && !equality.Semantic.DeepEqual(live.Spec, fw.Spec) {
				err = taken
			}
		}
		cancel()
		switch {
		case err == nil || ctx.Err() != nil:
			return err
		case apierrors.IsUnauthorized(err) && !renewed: // Credentials may be renewed by this answer.
			renewed = true
		default:
			if err := out.judge(err, w.note); err != nil {
				return err
			}
		}
		if err := pause(ctx, lookAgain); err != nil {
			return err
		}
	}
}

// renewed returns the Framework to create in place of one that has ended. If the old one is stopped, the new one is
// not. Annotations that belong to the old one's queue are dropped.
func renewed(old *frameworkv1.Framework) *frameworkv1.Framework {
	anew := &frameworkv1.Framework{ObjectMeta: metav1.ObjectMeta{
		Namespace: old.Namespace, Name: old.Name, Labels: old.Labels, Annotations: maps.Clone(old.Annotations), OwnerReferences: old.OwnerReferences,
	}, Spec: *old.Spec.DeepCopy()}
	delete(anew.Annotations, frameworkv1.AnnotationAdmission)
	delete(anew.Annotations, frameworkv1.AnnotationRefusal)
	anew.SetGroupVersionKind(frameworkv1.FrameworkGroupVersionKind)
	anew.Spec.ExecutionType = frameworkv1.ExecutionStart
	return anew
}
