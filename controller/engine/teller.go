// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/tools/record/util"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/lockstep-k8s/lockstep/controller/pacing"
	"github.com/lockstep-k8s/lockstep/internal/fair"
)

// tellers is how many events are written beside each other, not counting slow ones.
const tellers = 4

// teller writes events. It writes the events of a namespace one after the other, and namespaces take turns, so that a
// webhook that is slow for one namespace delays no other. client-go would write all events one after the other.
type teller struct {
	kube        kubernetes.Interface
	broadcaster record.EventBroadcaster
	correlator  *record.EventCorrelator
	queue       fair.Queue
	workers     *fair.Workers

	mu sync.Mutex
	// untold are the events of each namespace that has any.
	untold map[string]*untold
	// last is the time, in nanoseconds, in the name of the last event.
	last int64
}

// untold are the events of one namespace that are to be written.
type untold struct {
	events []*corev1.Event
	// first is the first event, combined with earlier ones that are alike; nil until that is known. tries is how many
	// tries to write the event have failed. No try follows before `again`.
	first *record.EventCorrelateResult
	tries int
	again time.Time
}

func newTeller(kube kubernetes.Interface) *teller {
	t := &teller{
		kube: kube, broadcaster: record.NewBroadcaster(), queue: fair.NewQueue("event", clock.RealClock{}), untold: map[string]*untold{},
		// client-go bounds events by object alone, so that 25 failures of tasks would leave no room for other events in the
		// next minutes: the end of a Framework would not be.
		correlator: record.NewEventCorrelatorWithOptions(record.CorrelatorOptions{
			SpamKeyFunc: func(event *corev1.Event) string {
				object := &event.InvolvedObject
				return strings.Join([]string{object.APIVersion, object.Kind, object.Namespace, object.Name, string(object.UID), event.Type, event.Reason}, "/")
			},
			// Twice what an owner may record: an event is sent later than it is recorded, and events that are left out here
			// are not counted.
			BurstSize: 2 * pacing.MaxToldInARow,
			QPS:       float32(2 / pacing.ToldEvery.Seconds()),
		}),
	}
	t.workers = fair.NewWorkers(t.queue, fair.Limits{Namespace: 1, All: pacing.MaxFlightsInAll}, pacing.Patience, t.tell, nil)
	return t
}

// recorder makes events for the teller.
func (t *teller) recorder() record.EventRecorder {
	// Events are about references: no type is looked up.
	return t.broadcaster.NewRecorder(runtime.NewScheme(), corev1.EventSource{Component: componentName})
}

// run writes events until the end of ctx.
func (t *teller) run(ctx context.Context) {
	defer t.discard()
	t.broadcaster.StartEventWatcher(func(event *corev1.Event) { t.add(ctx, event) })
	var running sync.WaitGroup
	defer running.Wait()
	defer t.queue.ShutDown()
	for range tellers {
		running.Go(func() { t.workers.Work(ctx, &running) })
	}
	<-ctx.Done()
}

// discard ends a teller that was never run.
func (t *teller) discard() {
	t.queue.ShutDown()
	t.broadcaster.Shutdown()
}

// add has an event written. The caller does not wait for the write.
func (t *teller) add(ctx context.Context, event *corev1.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	of := t.untold[event.Namespace]
	if of == nil {
		of = &untold{}
		t.untold[event.Namespace] = of
	}
	if len(of.events) == maxEvents {
		logLost(ctx, event, errors.New("too many events of the namespace wait to be written"))
		return
	}
	of.events = append(of.events, event)
	t.queue.Add(fair.Key{ObjectName: cache.ObjectName{Namespace: event.Namespace}})
}

// tell writes the next event of a namespace.
func (t *teller) tell(ctx context.Context, key fair.Key) {
	of := t.next(key.Namespace)
	if of == nil {
		return
	}
	var err error
	if !of.first.Skip {
		err = t.write(ctx, of.first)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	of.tries++
	said := apierrors.APIStatus(nil)
	passes := !errors.As(err, &said) || isUnavailable(err) || apierrors.IsInternalError(err)
	switch {
	case ctx.Err() != nil:
		return
	case err == nil:
	case passes && of.tries < pacing.MaxTellTries:
		of.again = time.Now().Add(pacing.TellAgain)
		t.queue.AddAfter(key, pacing.TellAgain)
		return
	case apierrors.IsAlreadyExists(err), apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
	default:
		logLost(ctx, of.events[0], err)
	}
	if len(of.events) == 1 {
		delete(t.untold, key.Namespace)
		return
	}
	*of = untold{events: of.events[1:]}
	t.queue.Add(key)
}

// next returns the events of a namespace if the first of them is due. Only one goroutine at a time writes a namespace's
// events.
func (t *teller) next(namespace string) *untold {
	t.mu.Lock()
	defer t.mu.Unlock()
	of := t.untold[namespace]
	if of == nil || time.Now().Before(of.again) {
		return nil
	}
	if of.first == nil {
		event := *of.events[0] // It has others that watch it.
		// client-go names an event by the object and the nanosecond, which several events may share.
		t.last = max(t.last+1, event.FirstTimestamp.UnixNano())
		event.Name = util.GenerateEventName(event.InvolvedObject.Name, t.last)
		var err error
		if of.first, err = t.correlator.EventCorrelate(&event); err != nil {
			of.first = &record.EventCorrelateResult{Event: &event}
		}
	}
	return of
}

// write writes an event, or the repetition of one.
func (t *teller) write(ctx context.Context, result *record.EventCorrelateResult) (err error) {
	ctx, cancel := context.WithTimeout(ctx, pacing.RequestTime)
	defer cancel()
	event, events := result.Event, t.kube.CoreV1().Events(result.Event.Namespace)
	var written *corev1.Event
	again := event.Count > 1
	if again {
		written, err = events.PatchWithEventNamespaceWithContext(ctx, event, result.Patch)
	}
	if !again || apierrors.IsNotFound(err) { // It may have been removed.
		event.ResourceVersion = ""
		written, err = events.CreateWithEventNamespaceWithContext(ctx, event)
	}
	if err == nil {
		t.correlator.UpdateState(written)
	}
	return err
}

// logLost logs that an event is not written.
func logLost(ctx context.Context, event *corev1.Event, err error) {
	object := &event.InvolvedObject
	klog.FromContext(ctx).Error(err, "An event could not be written", "kind", object.Kind, "object", klog.KRef(object.Namespace, object.Name),
		"reason", event.Reason, "message", event.Message)
}
