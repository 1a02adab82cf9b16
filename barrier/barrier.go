// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package barrier

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"github.com/lockstep-k8s/lockstep/apis/framework/statuscodec"
	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	clientv1 "github.com/lockstep-k8s/lockstep/client/clientset/versioned/typed/framework/v1"
)

const (
	// lookTimeout bounds one look. The API server gives itself as long
	// (--request-timeout).
	lookTimeout = time.Minute
	// watchTimeout is about how long one watch lasts: what it may have missed is
	// made up for then. client-go's informers use as much.
	watchTimeout = 5 * time.Minute
	// jitter spreads the looks of Pods that all lost their watch at once.
	jitter = 0.2
)

// errSilent is the outcome of a wait in which no look was ever answered.
var errSilent = errors.New("the API server did not answer")

// Barrier waits for the tasks of one Framework. It is for one Run.
type Barrier struct {
	config     Config
	frameworks frameworkReader
	identity   string

	// pollOnly is true once a watch was forbidden.
	pollOnly bool
	// seen is what the last Framework that could be read looked like.
	seen Readiness
	// lastErr is why the last look failed, nil if it did not.
	lastErr error
}

// frameworkReader is what a Barrier needs of the client.
type frameworkReader interface {
	Get(ctx context.Context, name string, opts metav1.GetOptions) (*frameworkv1.Framework, error)
	Watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error)
}

// New makes a Barrier. It does not ask the API server yet; an error is one of the
// kubeconfig, or the absence of any.
func New(config Config) (*Barrier, error) {
	cluster, err := restConfig(config)
	if err != nil {
		return nil, fmt.Errorf("finding the API server: %w", err)
	}
	client, err := clientv1.NewForConfig(cluster)
	if err != nil {
		return nil, fmt.Errorf("making a client of the API server: %w", err)
	}
	return &Barrier{
		config:     config,
		frameworks: client.Frameworks(config.Namespace),
		identity:   identity(cluster),
		lastErr:    errSilent,
	}, nil
}

// Run waits until every task has an address, and writes the files. ExitCode tells
// what an error means. On an error that came before writing there are no files.
func (b *Barrier) Run(ctx context.Context) error {
	framework, err := b.wait(ctx)
	if err != nil {
		return err
	}
	files, err := render(framework)
	if err != nil {
		return err
	}
	return writeAll(ctx, files, b.config.OutputDir)
}

// wait returns the Framework as it was when it passed.
func (b *Barrier) wait(parent context.Context) (*frameworkv1.Framework, error) {
	ctx, cancel := context.WithTimeout(parent, b.config.Timeout)
	defer cancel()
	for {
		next := time.NewTimer(wait.Jitter(b.config.Interval, jitter))
		framework, err := b.look(ctx)
		if err == nil && framework != nil && !b.seen.Passed() && !b.pollOnly {
			framework, err = b.follow(ctx, framework.ResourceVersion)
		}
		if err != nil {
			return nil, err
		}
		if framework != nil && b.seen.Passed() {
			return framework, nil
		}
		select {
		case <-next.C:
		case <-ctx.Done():
			next.Stop()
			return nil, b.giveUp(parent)
		}
	}
}

// giveUp says why the wait has ended without success.
func (b *Barrier) giveUp(parent context.Context) error {
	switch {
	case parent.Err() != nil:
		return fmt.Errorf("%w while waiting: %w", ErrTerminated, context.Cause(parent))
	case b.lastErr != nil:
		return fmt.Errorf("after %v: %w", b.config.Timeout, b.lastErr)
	default:
		return fmt.Errorf("%w after %v: %v", ErrNotReady, b.config.Timeout, b.seen)
	}
}

// look reads the Framework. It returns neither the Framework nor an error if the
// look failed in a way that may pass.
func (b *Barrier) look(parent context.Context) (*frameworkv1.Framework, error) {
	ctx, cancel := context.WithTimeout(parent, lookTimeout)
	defer cancel()
	framework, err := b.frameworks.Get(ctx, b.config.Name, metav1.GetOptions{})
	switch {
	case err == nil:
		return b.judge(parent, framework), nil
	case apierrors.IsNotFound(err):
		return nil, b.notFound(err)
	case apierrors.IsUnauthorized(err), apierrors.IsForbidden(err):
		return nil, b.denied(err)
	case parent.Err() != nil:
		// The time is up: what was seen before counts.
		return nil, nil
	}
	b.failed(parent, fmt.Errorf("getting the Framework: %w", err))
	return nil, nil
}

// follow watches the Framework from a resource version on until it passes or the
// watch ends, and returns it in the first case.
func (b *Barrier) follow(ctx context.Context, resourceVersion string) (*frameworkv1.Framework, error) {
	logger := klog.FromContext(ctx)
	watcher, err := b.frameworks.Watch(ctx, metav1.ListOptions{
		FieldSelector:   fields.OneTermEqualSelector(metav1.ObjectNameField, b.config.Name).String(),
		ResourceVersion: resourceVersion,
		TimeoutSeconds:  ptr.To(int64(wait.Jitter(watchTimeout, jitter).Seconds())),
	})
	if apierrors.IsForbidden(err) {
		b.pollOnly = true
		logger.Info("May not watch Frameworks, so gets this one again and again; see manifests/barrier for the verb watch",
			"interval", b.config.Interval, "reason", err.Error())
		return nil, nil
	}
	if err != nil {
		logger.V(2).Info("Could not watch", "reason", err.Error())
		return nil, nil
	}
	defer watcher.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil, nil
		case event, open := <-watcher.ResultChan():
			if !open {
				return nil, nil
			}
			switch event.Type {
			case watch.Added, watch.Modified:
				if framework := b.judge(ctx, event.Object.(*frameworkv1.Framework)); framework != nil && b.seen.Passed() {
					return framework, nil
				}
			case watch.Deleted:
				return nil, b.notFound(errors.New("it was deleted"))
			case watch.Error:
				// Mostly 410: the resource version is too old. The next look has a new one.
				logger.V(2).Info("The watch has failed", "reason", apierrors.FromObject(event.Object).Error())
				return nil, nil
			}
		}
	}
}

// judge takes note of a Framework that was read, and returns it with its status
// decompressed, or nil if that can't be done.
func (b *Barrier) judge(ctx context.Context, framework *frameworkv1.Framework) *frameworkv1.Framework {
	if err := decompress(framework); err != nil {
		b.failed(ctx, err)
		return nil
	}
	before, first := b.seen, errors.Is(b.lastErr, errSilent)
	b.seen, b.lastErr = Check(framework), nil
	if first || before.Ready != b.seen.Ready || before.Total != b.seen.Total {
		klog.FromContext(ctx).Info("Looked at the tasks", "readiness", b.seen)
	}
	return framework
}

// failed takes note of a look that failed in a way that may pass.
func (b *Barrier) failed(ctx context.Context, err error) {
	b.lastErr = err
	klog.FromContext(ctx).Info("Could not look at the Framework, will try again", "reason", err.Error())
}

func (b *Barrier) notFound(err error) error {
	return fmt.Errorf("%w as %s/%s: %w", ErrNotFound, b.config.Namespace, b.config.Name, err)
}

// denied says who lacks which permission, and where to get it.
func (b *Barrier) denied(err error) error {
	return fmt.Errorf("getting the Framework as %s: %w; it takes a ServiceAccount with a Role for the verbs get, list and watch "+
		"on %s in namespace %s: apply manifests/barrier there and set serviceAccountName: frameworkbarrier in the Pod template",
		b.identity, err, frameworkv1.Resource(frameworkv1.FrameworkPlural), b.config.Namespace)
}

// decompress unfolds a large Framework's task statuses.
func decompress(framework *frameworkv1.Framework) error {
	if framework.Status == nil {
		return nil
	}
	attempt := &framework.Status.AttemptStatus
	if attempt.TaskRoleStatuses == nil && attempt.TaskRoleStatusesCompressed != nil {
		roles, err := statuscodec.DecompressRoles(attempt.TaskRoleStatusesCompressed)
		if err != nil {
			return err
		}
		attempt.TaskRoleStatuses = roles
	}
	attempt.TaskRoleStatusesCompressed = nil
	return nil
}
