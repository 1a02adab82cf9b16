// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/lockstep-k8s/lockstep/controller/engine/plan"
	"github.com/lockstep-k8s/lockstep/controller/pacing"
	"github.com/lockstep-k8s/lockstep/internal/fair"
	"github.com/lockstep-k8s/lockstep/internal/informing"
)

// componentName is the source of events.
const componentName = "lockstep-controller"

// FieldManager is the name of the writer of statuses in managed fields.
const FieldManager = componentName

// Options are the settings of an Engine.
type Options struct {
	// Kube writes events, and Metadata deletes owners.
	Kube     kubernetes.Interface
	Metadata metadata.Interface
	// Workers is how many owners are synced at the same time. BatchSize is how many actions of one owner are under way
	// together at most.
	Workers, BatchSize int
	// Window is the coalescing window of status writes.
	Window time.Duration
	// Entropy is that of decisions and delays. Nil means the system's.
	Entropy plan.Entropy
	// Registerer is where the metrics are registered.
	Registerer prometheus.Registerer
	// RefuseUnknownFields prevents the creation of Pods from templates with fields that the API server does not know.
	RefuseUnknownFields bool
	// Namespaces are the namespaces whose owners the engine syncs. The informers of Kinds must be limited to the same
	// namespaces.
	Namespaces informing.Namespaces
}

// Engine runs the owners of all cores. All kinds of owners share the workers, and namespaces take turns, whatever the
// kinds of their owners. Several Engines may use one API server only if they elect a leader.
type Engine struct {
	metadata    metadata.Interface
	queue       fair.Queue
	fairWorkers *fair.Workers
	teller      *teller
	events      record.EventRecorder
	metrics     *metrics
	registerer  prometheus.Registerer
	ready       atomic.Bool
	fields      *fieldChecker

	clock   clock.PassiveClock
	entropy plan.Entropy

	workers    int
	batchSize  int
	window     time.Duration
	namespaces informing.Namespaces

	// byKind has the owners of each kind. inOrder has them in the order in which the cores were added.
	byKind  map[string]anyOwners
	inOrder []anyOwners
}

// anyOwners are Owners of any type.
type anyOwners interface {
	logName() string
	run(ctx context.Context)
	optional() bool
	fill(ctx context.Context) bool
	fillLate(ctx context.Context)
	isFilled() bool
	syncSafely(ctx context.Context, key cache.ObjectName, turn *turn) error
	flush(ctx context.Context)
}

// New makes an Engine without cores.
func New(options Options) (*Engine, error) {
	e := &Engine{
		metadata:   options.Metadata,
		queue:      fair.NewQueue("owner", clock.RealClock{}),
		teller:     newTeller(options.Kube),
		registerer: options.Registerer,
		clock:      clock.RealClock{},
		entropy:    options.Entropy,
		workers:    options.Workers,
		batchSize:  options.BatchSize,
		window:     options.Window,
		namespaces: options.Namespaces,
		byKind:     map[string]anyOwners{},
	}
	if e.entropy == nil {
		e.entropy = systemEntropy{}
	}
	e.events = e.teller.recorder()
	e.fields = newFieldChecker(options.Kube.CoreV1().RESTClient(), options.RefuseUnknownFields, clock.RealClock{}, e.queue.Add)
	var err error
	if e.metrics, err = newMetrics(e.registerer, e.queue.Len, e.longest); err != nil {
		return nil, fmt.Errorf("registering metrics: %w", err)
	}
	e.fairWorkers = fair.NewWorkers(e.queue, fair.Limits{Namespace: pacing.MaxFlights, All: pacing.MaxFlightsInAll},
		pacing.Patience, e.process, func(busy time.Duration) { e.metrics.syncSeconds.Observe(busy.Seconds()) })
	return e, nil
}

// Ready reports whether the engine syncs owners. That is so once all caches are filled, apart from those of optional
// owners.
func (e *Engine) Ready() bool { return e.ready.Load() }

// Longest returns the object with the sync that has been running for the longest time, and for how long.
func (e *Engine) Longest() (fair.Key, time.Duration) { return e.fairWorkers.Longest() }

func (e *Engine) longest() time.Duration {
	_, running := e.fairWorkers.Longest()
	return running
}

// Run syncs owners until ctx ends, and returns when all syncs have ended. It may be called once. The caller has to
// start the informers of Kinds.
func (e *Engine) Run(ctx context.Context) {
	defer e.ready.Store(false)
	var telling sync.WaitGroup
	defer telling.Wait()
	told, stopTelling := context.WithCancel(context.WithoutCancel(ctx)) // It writes while the last syncs run, and leaves the rest.
	defer stopTelling()
	telling.Go(func() { e.teller.run(told) })

	defer e.flushAll(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer e.queue.ShutDown()
	running.Go(func() { e.fields.run(ctx) })
	for _, owners := range e.inOrder {
		running.Go(func() { owners.run(ctx) })
		if owners.optional() {
			running.Go(func() { owners.fillLate(ctx) })
		}
	}
	for _, owners := range e.inOrder {
		if !owners.optional() && !owners.fill(ctx) {
			return // ctx has ended.
		}
	}
	klog.FromContext(ctx).Info("Running", "workers", e.workers)
	e.ready.Store(true)
	for range e.workers {
		running.Go(func() { e.fairWorkers.Work(ctx, &running) })
	}
	<-ctx.Done()
}

// Owners are the owners of one core at work.
type Owners[O Owner, S any] struct {
	core     Core[O, S]
	resource Resource
	// logKey is the key of an owner in the log.
	logKey   string
	client   ownerClient[O]
	informer cache.SharedIndexInformer
	// kinds are those of the core, and the owners' own.
	kinds map[string]*Kind
	// shown records up to which version the caches of kinds with Kind.Remembers show each namespace. Nil unless the
	// controller serves several namespaces.
	shown map[string]*shownVersions
	// unread records the namespaces in which the controller may not read something that the core needs. Owners there
	// are not synced.
	unread      *informing.Unread
	known       knowledge[O, S]
	undecodable *keySet
	states      *states
	// filled says that the caches are. Before, there are no syncs.
	filled atomic.Bool

	// These are the shared parts of all Owners of an Engine, and the settings.
	queue              fair.Queue
	events             record.EventRecorder
	metrics            *metrics
	fields             *fieldChecker
	clock              clock.PassiveClock
	entropy            plan.Entropy
	workers, batchSize int
	window             time.Duration
}

// Add adds the owners of a core to the engine. Call Add before Run.
func Add[O Owner, S any](e *Engine, core Core[O, S]) (*Owners[O, S], error) {
	resource := core.Resource()
	decoder := decoder[O]{kind: resource.Kind, owner: core.DecodeOwner}
	example, err := decoder.decode([]byte("{}"))
	if err != nil {
		return nil, err
	}
	o := &Owners[O, S]{
		core:     core,
		resource: resource,
		logKey:   strings.ToLower(resource.Kind),
		client:   ownerClient[O]{Resource: resource, metadata: e.metadata, decode: decoder.decode},
		informer: e.namespaces.InformerWithOptions(example, cache.SharedIndexInformerOptions{ObjectDescription: resource.Kind},
			func(namespace string) cache.ListerWatcher { return newListWatch(resource, decoder, namespace) }),
		kinds:       map[string]*Kind{},
		shown:       map[string]*shownVersions{},
		undecodable: &keySet{keys: map[cache.ObjectName]string{}},
		states:      e.metrics.statesOf(resource.Kind),
		queue:       e.queue,
		events:      e.events,
		metrics:     e.metrics,
		fields:      e.fields,
		clock:       e.clock,
		entropy:     e.entropy,
		workers:     e.workers,
		batchSize:   e.batchSize,
		window:      e.window,
	}
	o.unread = e.namespaces.Unread(o.addAll)
	kinds := append(core.Kinds(), Kind{Name: resource.Kind, Client: o.client, Informer: o.informer})
	for i := range kinds {
		kind := &kinds[i]
		if o.kinds[kind.Name] != nil {
			return nil, fmt.Errorf("the core of the kind %s has the kind %s twice", resource.Kind, kind.Name)
		}
		if kind.Unwatched {
			kind.Informer = cache.NewSharedIndexInformer(nil, &metav1.PartialObjectMetadata{}, 0, OwnerIndex("")) // It stays empty.
			kind.Unawaited = true
		}
		if kind.Informer == nil {
			return nil, fmt.Errorf("the core of the kind %s does not watch the kind %s", resource.Kind, kind.Name)
		}
		o.kinds[kind.Name] = kind
		if !kind.Unawaited && !kind.Optional {
			if err := o.unread.Follow(kind.Informer); err != nil {
				return nil, fmt.Errorf("watching the kind %s: %w", kind.Name, err)
			}
		}
		if !kind.Remembers || len(e.namespaces) <= 1 {
			continue
		}
		shown, err := watchShown(kind.Informer)
		if err != nil {
			return nil, fmt.Errorf("watching the kind %s: %w", kind.Name, err)
		}
		o.shown[kind.Name] = shown
	}
	if e.byKind[resource.Kind] != nil {
		return nil, fmt.Errorf("there are two cores of the kind %s", resource.Kind)
	}
	e.byKind[resource.Kind] = o
	e.inOrder = append(e.inOrder, o)
	for _, metric := range []prometheus.Collector{
		gauge("undecodable_"+resource.Plural, resource.Kind+"s that can't be worked with because they do not decode.", o.undecodable.len),
		gauge("unread_namespaces_"+resource.Plural, "Namespaces whose "+resource.Kind+"s are left as they are, because a kind of objects that they may have may not be read there.", o.unread.Count),
		gauge("listed_"+resource.Plural, "1 once "+resource.Kind+"s and all that they need could be listed, and they are synced. 0 before.", o.listed),
	} {
		if err := e.registerer.Register(metric); err != nil {
			return nil, fmt.Errorf("registering metrics: %w", err)
		}
	}
	if resource.Optional {
		if err := informing.Quietly(o.informer, o.isFilled); err != nil {
			return nil, fmt.Errorf("watching the kind %s: %w", resource.Kind, err)
		}
	}
	return o, o.addHandlers()
}

// Informer caches the owners, for a core that looks up which there are.
func (o *Owners[O, S]) Informer() cache.SharedIndexInformer { return o.informer }

// Known returns how many owners the controller remembers.
func (o *Owners[O, S]) Known() int { return len(o.known.all()) }

// Remembered returns for how many owners the controller keeps a memory, not counting those that were synced a moment
// ago.
func (o *Owners[O, S]) Remembered() int {
	count := 0
	for _, known := range o.known.all() {
		if known.memory != nil {
			count++
		}
	}
	return count
}

// Undecodable is described at Known.
func (o *Owners[O, S]) Undecodable() int { return o.undecodable.len() }

// add and addAfter ask for a sync, at once or after a while.
func (o *Owners[O, S]) add(key cache.ObjectName) {
	o.queue.Add(o.queued(key))
}

func (o *Owners[O, S]) addAfter(key cache.ObjectName, wait time.Duration) {
	o.queue.AddAfter(o.queued(key), wait)
}

// queued returns an owner's key in the queue, which owners of all kinds share.
func (o *Owners[O, S]) queued(key cache.ObjectName) fair.Key {
	return fair.Key{Kind: o.resource.Kind, ObjectName: key}
}

func (o *Owners[O, S]) logName() string { return o.logKey }

func (o *Owners[O, S]) run(ctx context.Context) { o.informer.RunWithContext(ctx) }

func (o *Owners[O, S]) optional() bool { return o.resource.Optional }

func (o *Owners[O, S]) isFilled() bool { return o.filled.Load() }

// listed is 1 if the caches are filled, and 0 if not.
func (o *Owners[O, S]) listed() int {
	if o.isFilled() {
		return 1
	}
	return 0
}

// fill waits until the caches are filled, and then enqueues all owners. fill returns false if ctx ends first.
func (o *Owners[O, S]) fill(ctx context.Context) bool {
	var awaited []cache.InformerSynced
	for _, kind := range o.kinds {
		if !kind.Unawaited {
			awaited = append(awaited, kind.Informer.HasSynced)
		}
	}
	if !cache.WaitForCacheSync(ctx.Done(), awaited...) {
		return false
	}
	o.filled.Store(true)
	if o.optional() { // The workers may have passed some over.
		for _, owner := range o.informer.GetIndexer().List() {
			o.enqueue(owner)
		}
	}
	return true
}

// fillLate fills the caches of optional owners. If that takes long, fillLate logs it, and logs again when they are
// filled.
func (o *Owners[O, S]) fillLate(ctx context.Context) {
	soon, cancel := context.WithTimeout(ctx, pacing.UnservedAfter)
	defer cancel()
	if o.fill(soon) || ctx.Err() != nil {
		return
	}
	logger := klog.FromContext(ctx)
	logger.Info("Owners are not synced yet: the API server may not serve all that they need. They will be as soon as it can be listed",
		"kind", o.resource.Kind, "missing", o.missing())
	if o.fill(ctx) {
		logger.Info("Owners that had to wait are listed now, and synced", "kind", o.resource.Kind)
	}
}

// missing returns the kinds with caches that are awaited and not filled.
func (o *Owners[O, S]) missing() []string {
	var names []string
	for _, kind := range o.kinds {
		if !kind.Unawaited && !kind.Informer.HasSynced() {
			names = append(names, kind.Name)
		}
	}
	slices.Sort(names)
	return names
}

// addAll asks for a sync of all owners in a namespace.
func (o *Owners[O, S]) addAll(namespace string) {
	for _, owner := range informing.In(o.informer, namespace) {
		o.enqueue(owner)
	}
}

// writable returns a kind that the core may write.
func (o *Owners[O, S]) writable(name string) (*Kind, error) {
	if kind := o.kinds[name]; kind != nil && kind.Client != nil {
		return kind, nil
	}
	return nil, fmt.Errorf("objects of the kind %q are not written for a %s", name, o.resource.Kind)
}

// reduced returns what the cache would hold of an object.
func (k *Kind) reduced(object metav1.Object) metav1.Object {
	if k.Reduce == nil || object == nil {
		return object
	}
	return k.Reduce(object)
}
