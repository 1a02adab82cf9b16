// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/lockstep-k8s/lockstep/apis/framework/statuscodec"
	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	core "github.com/lockstep-k8s/lockstep/controller/lifecycle"
	"github.com/lockstep-k8s/lockstep/hack/bench/harness"
	"github.com/lockstep-k8s/lockstep/internal/localenv"
	"github.com/lockstep-k8s/lockstep/internal/testing/statustest"
)

// retained measures the memory of a leader that begins over Frameworks that are Completed, and kept until
// their retention is over.
func retained(ctx context.Context, b *harness.Bench, n, tasks int) error {
	up, err := b.Up(ctx, localenv.Options{With: "none"})
	if err != nil {
		return err
	}
	c := &cluster{Cluster: up}
	namespace, err := c.Namespace(ctx)
	if err != nil {
		return err
	}
	began, size := time.Now(), 0
	group, together := errgroup.WithContext(ctx)
	group.SetLimit(4) // Each keeps the API server busy.
	for i := range n {
		group.Go(func() error {
			bytes, err := c.createCompleted(together, namespace, fmt.Sprintf("retained-%d", i), tasks)
			if i == 0 {
				size = bytes
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return fmt.Errorf("making Completed Frameworks: %w", err)
	}
	b.Logf("%d Frameworks of %d tasks, each with %d bytes of status in JSON, are there after %.0f s", n, tasks, size, time.Since(began).Seconds())
	return c.measureStart(ctx, b, n)
}

// createCompleted makes a Framework with the status that one has whose tasks have all run and succeeded, and returns its
// size in JSON.
func (c *cluster) createCompleted(ctx context.Context, namespace, name string, tasks int) (int, error) {
	frameworks := c.Lockstep.FrameworkcontrollerV1().Frameworks(namespace)
	created, err := frameworks.Create(ctx, gang(name, tasks, time.Second), metav1.CreateOptions{})
	if err != nil {
		return 0, err
	}
	status := completed(tasks)
	snapshot := core.Snapshot{Framework: created, Options: core.Options{CompletedRetention: time.Hour}}
	snapshot.Persisted, snapshot.Status = status, status
	status = core.Decide(snapshot, time.Now(), nil).Status // It has the counts and conditions.
	plain, err := statuscodec.Encode(status, false)
	if err != nil {
		return 0, err
	}
	data, err := statuscodec.Encode(status, true)
	if err != nil {
		return 0, err
	}
	body := fmt.Appendf(nil, `{"apiVersion":%q,"kind":%q,"metadata":{"name":%q,"namespace":%q,"resourceVersion":%q},"status":%s}`,
		frameworkv1.SchemeGroupVersion, frameworkv1.FrameworkKind, name, namespace, created.ResourceVersion, data)
	return len(plain), c.Lockstep.FrameworkcontrollerV1().RESTClient().Put().
		Namespace(namespace).Resource(frameworkv1.FrameworkPlural).Name(name).SubResource("status").
		SetHeader("Content-Type", runtime.ContentTypeJSON).
		SetHeader("Accept", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"). // Not the status again.
		Body(body).Do(ctx).Error()
}

// completed is a status of a Framework that has just succeeded.
func completed(tasks int) *frameworkv1.FrameworkStatus {
	status, now := statustest.Running(tasks), metav1.NewTime(time.Now().Truncate(time.Second))
	succeeded := frameworkv1.CompletionStatus{
		Code: 0, Phrase: "Succeeded", Type: frameworkv1.CompletionType{Name: frameworkv1.CompletionTypeSucceeded},
	}
	for _, task := range status.AttemptStatus.TaskRoleStatuses[0].TaskStatuses {
		task.State, task.TransitionTime, task.CompletionTime = frameworkv1.TaskCompleted, now, &now
		task.AttemptStatus.CompletionTime = &now
		task.AttemptStatus.CompletionStatus = &frameworkv1.TaskAttemptCompletionStatus{CompletionStatus: succeeded}
	}
	status.State, status.TransitionTime, status.CompletionTime = frameworkv1.FrameworkCompleted, now, &now
	status.AttemptStatus.CompletionTime = &now
	status.AttemptStatus.CompletionStatus = &frameworkv1.FrameworkAttemptCompletionStatus{CompletionStatus: succeeded}
	status.AttemptStatus.ConfigMapUID = ptr.To(types.UID("gone"))
	return status
}

// measureStart starts a controller, and measures it until it has looked at all Frameworks.
func (c *cluster) measureStart(ctx context.Context, b *harness.Bench, n int) error {
	began := time.Now()
	controller, err := c.StartController(ctx, localenv.ControllerOptions{})
	if err != nil {
		return err
	}
	defer controller.Kill()
	var seen harness.Metrics
	if err := localenv.Await(ctx, "all Frameworks to be looked at", func(ctx context.Context) (bool, string, error) {
		if controller.Ended() {
			return false, "", fmt.Errorf("the controller has ended: %s", controller.LogTail(20))
		}
		address, err := controller.Address()
		if err != nil || address == "" {
			return false, "it does not serve yet", err
		}
		if seen, err = harness.MetricsAt(ctx, address); err != nil {
			return false, err.Error(), nil
		}
		looked := seen.Observed(metricSyncSeconds)
		return looked >= float64(n) && seen.Sum(metricQueueLength) == 0, fmt.Sprintf("%.0f syncs", looked), nil
	}); err != nil {
		return err
	}
	took := time.Since(began)
	peak, err := peakMiB(controller.PID())
	if err != nil {
		return err
	}
	b.Report(harness.Figure{What: "peak resident memory of the controller", Value: peak, Unit: "MiB", Bar: harness.AtMost(512)})
	b.Report(harness.Figure{What: "start to all reconciled", Value: took.Seconds(), Unit: "s"})
	b.Report(harness.Figure{What: "processor time of the controller", Value: seen.CPU().Seconds(), Unit: "s"})
	b.Report(harness.Figure{What: "writes of the status", Value: seen.Sum(metricStatusWrites), Bar: harness.Exactly(0)})
	return nil
}

// peakResident is the line of /proc that says how much memory a process has had at most.
var peakResident = regexp.MustCompile(`VmHWM:\s+(\d+) kB`)

// peakMiB is how much memory a process has had at most, in MiB.
func peakMiB(pid int) (float64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	found := peakResident.FindSubmatch(status)
	if found == nil {
		return 0, fmt.Errorf("process %d does not say how much memory it has had", pid)
	}
	kib, err := strconv.ParseFloat(string(found[1]), 64)
	return kib / 1024, err
}
