// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package informing

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// Namespaces are the namespaces whose objects a program reads; empty means all.
//
// Several namespaces are read one by one, with a Role in each, but share an informer. The first list shows all of them
// as they were at one moment. After that each namespace has a watch of its own: events of one namespace arrive in
// order, but events of two namespaces may not.
//
// If a namespace can't be read, the others still are. The objects of that namespace stay as they were last seen until
// it can be read again. Code that treats a missing object as deleted has to take that into account: see Hearing.
type Namespaces []string

// Each returns the namespaces to request one by one; a single "", which means all, if there are no namespaces.
func (n Namespaces) Each() []string {
	if len(n) == 0 {
		return []string{metav1.NamespaceAll}
	}
	return n
}

// lookAgain is how long after a refusal the informer tries again to read a namespace.
const lookAgain = 30 * time.Second

// Lister lists and watches the objects of a kind in one namespace, or in all namespaces if the name is empty. Clients
// of client-go implement it.
type Lister[L runtime.Object] interface {
	List(ctx context.Context, options metav1.ListOptions) (L, error)
	Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error)
}

// ListWatch returns a ListerWatcher that uses a client. `of` is the clientset of the client; a fake clientset can't
// stream lists, so the first list is then a plain one. tweak changes the options, and may be nil.
func ListWatch[L runtime.Object](of any, client Lister[L], tweak func(*metav1.ListOptions)) cache.ListerWatcher {
	if tweak == nil {
		tweak = func(*metav1.ListOptions) {}
	}
	return cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			tweak(&options)
			return client.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			tweak(&options)
			return client.Watch(ctx, options)
		},
	}, of)
}

// Informer returns an informer of the objects of a kind in these namespaces, indexed by namespace. `in` returns the
// ListerWatcher of a namespace, or of all namespaces for "".
func (n Namespaces) Informer(example runtime.Object, in func(namespace string) cache.ListerWatcher) cache.SharedIndexInformer {
	return n.InformerWithOptions(example, cache.SharedIndexInformerOptions{}, in)
}

// Dynamic returns an informer of objects of any kind. tweak changes the options of lists and watches, and may be nil.
func (n Namespaces) Dynamic(client dynamic.Interface, resource schema.GroupVersionResource, tweak func(*metav1.ListOptions)) cache.SharedIndexInformer {
	return n.Informer(&unstructured.Unstructured{}, func(namespace string) cache.ListerWatcher {
		return ListWatch(client, client.Resource(resource).Namespace(namespace), tweak)
	})
}

// InformerWithOptions is Informer with more options.
func (n Namespaces) InformerWithOptions(example runtime.Object, options cache.SharedIndexInformerOptions,
	in func(namespace string) cache.ListerWatcher) cache.SharedIndexInformer {
	options.Indexers = cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
	informerOf := func(lw cache.ListerWatcher) cache.SharedIndexInformer {
		informer := cache.NewSharedIndexInformerWithOptions(lw, example, options)
		utilruntime.Must(informer.SetWatchErrorHandlerWithContext(seldom())) // It fails only once the informer was started.
		return informer
	}
	switch len(n) {
	case 0:
		return informerOf(in(metav1.NamespaceAll))
	case 1:
		return informerOf(in(n[0]))
	}
	s := &several{example: example}
	for _, namespace := range n {
		s.parts = append(s.parts, &part{namespace: namespace, in: cache.ToListerWatcherWithContext(in(namespace))})
	}
	informer := informerOf(s)
	s.known = informer.GetIndexer()
	return heard{informer, s}
}

// In returns the objects that an informer shows of a namespace.
func In(informer cache.SharedIndexInformer, namespace string) []any {
	objects, err := informer.GetIndexer().ByIndex(cache.NamespaceIndex, namespace)
	if err != nil {
		return nil // Informers that are made here have the index.
	}
	return objects
}

// several lists and watches the objects of several namespaces for one reflector, which calls its methods from one
// goroutine at a time.
type several struct {
	parts []*part
	// known holds the objects that the informer shows. last is the resource version of the last event that the
	// reflector has got.
	known cache.Indexer
	last  string
	// example is an empty object.
	example runtime.Object

	// mu guards hearings, and the order of marks of a namespace.
	mu       sync.Mutex
	hearings []Hearing
}

// union is a list of objects in several namespaces.
type union struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []runtime.Object `json:"items"`
}

// DeepCopyObject makes the list an object.
func (u *union) DeepCopyObject() runtime.Object {
	copied := &union{TypeMeta: u.TypeMeta, ListMeta: u.ListMeta}
	for _, item := range u.Items {
		copied.Items = append(copied.Items, item.DeepCopyObject())
	}
	return copied
}

// part is one namespace.
type part struct {
	namespace string
	in        cache.ListerWatcherWithContext
	// at is the resource version of the last news that the reflector has taken.
	at string
	// refusal is why the namespace may not be read; nil if it may be read. A refused namespace is not watched until it
	// has been listed again.
	refusal error
	// askedAt is when the namespace was last refused. marks is true if the namespace was listed, and the mark of that
	// list was not sent yet.
	askedAt time.Time
	marks   bool
	// refusals counts these. The lock of several guards this.
	refusals int
}

// IsWatchListSemanticsUnSupported makes the reflector begin with a plain list. Streamed lists of several namespaces
// would not be of the same moment.
func (s *several) IsWatchListSemanticsUnSupported() bool { return true }

// List implements cache.ListerWatcher.
func (s *several) List(options metav1.ListOptions) (runtime.Object, error) {
	return s.ListWithContext(context.Background(), options)
}

// Watch implements cache.ListerWatcher.
func (s *several) Watch(options metav1.ListOptions) (watch.Interface, error) {
	return s.WatchWithContext(context.Background(), options)
}

// atOnce is how many namespaces are listed concurrently. All lists ask for the state at the first list's moment, and
// the API server does not keep that state for long: on a slow server a hundred lists in a row would take too long.
const atOnce = 16

// ListWithContext lists the first readable namespace as requested, and all other namespaces as they were at the same
// moment. No namespace goes back to an older state than the informer has shown.
func (s *several) ListWithContext(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	options.Limit, options.Continue = 0, ""
	if options.ResourceVersion != "" {
		for _, p := range s.parts {
			options.ResourceVersion = later(options.ResourceVersion, p.at)
		}
	}
	lists := make([]runtime.Object, len(s.parts))
	list := func(ctx context.Context, i int, options metav1.ListOptions) error {
		list, err := s.parts[i].in.ListWithContext(ctx, options)
		if s.refuses(ctx, s.parts[i], err) {
			return nil
		}
		lists[i] = list
		return err
	}
	all, first := &union{}, 0
	for ; first < len(s.parts) && all.ResourceVersion == ""; first++ {
		if err := list(ctx, first, options); err != nil {
			return nil, err
		}
		if lists[first] == nil {
			continue
		}
		accessor, err := meta.ListAccessor(lists[first])
		if err != nil {
			return nil, err
		}
		all.ResourceVersion = accessor.GetResourceVersion()
	}
	options.ResourceVersion, options.ResourceVersionMatch = all.ResourceVersion, metav1.ResourceVersionMatchExact
	group, together := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for i := first; i < len(s.parts); i++ {
		group.Go(func() error { return list(together, i, options) })
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	if err := s.refusal(); err != nil {
		return nil, err
	}
	for i, p := range s.parts {
		if err := all.add(lists[i], func() ([]any, error) { return s.shown(ctx, p.namespace) }); err != nil {
			return nil, err
		}
	}
	for _, p := range s.parts {
		p.at, p.marks = all.ResourceVersion, len(s.hearings) > 0
	}
	s.last = all.ResourceVersion
	return all, nil
}

// later returns the later one of two resource versions.
func later(a, b string) string {
	if order, err := resourceversion.CompareResourceVersion(a, b); b != "" && (a == "0" || err == nil && order < 0) {
		return b
	}
	return a
}

// refusal returns why no namespace may be read; nil if at least one may be read.
func (s *several) refusal() error {
	for _, p := range s.parts {
		if p.refusal == nil {
			return nil
		}
	}
	return s.parts[0].refusal
}

// takingTime is how long the informer may take to show an event.
const takingTime = 30 * time.Second

// shown returns the known state of a namespace, once the informer shows all events.
func (s *several) shown(ctx context.Context, namespace string) ([]any, error) {
	if err := wait.PollUntilContextTimeout(ctx, 10*time.Millisecond, takingTime, true, func(context.Context) (bool, error) {
		shown := s.known.LastStoreSyncResourceVersion()
		return s.last == "" || shown == "" || shown == s.last, nil
	}); err != nil {
		return nil, fmt.Errorf("waiting until the informer shows the listed objects: %w", err)
	}
	return s.known.ByIndex(cache.NamespaceIndex, namespace)
}

// add adds a namespace's objects to the result: those of the list or, without a list, copies of the known objects. It
// copies them because the informer's goroutine changes them while other goroutines read.
func (u *union) add(list runtime.Object, known func() ([]any, error)) error {
	if list != nil {
		items, err := meta.ExtractList(list)
		u.Items = append(u.Items, items...)
		return err
	}
	objects, err := known()
	for _, object := range objects {
		if object, ok := object.(runtime.Object); ok {
			u.Items = append(u.Items, object.DeepCopyObject())
		}
	}
	return err
}

// refuses reports whether an error means that the namespace may not be read. refuses logs the first such error.
func (s *several) refuses(ctx context.Context, p *part, err error) bool {
	switch {
	case err == nil:
		p.refusal = nil
		return false
	case !apierrors.IsForbidden(err):
		return false
	}
	if p.refusal == nil {
		klog.FromContext(ctx).Error(err, "A namespace may not be read, and is left alone until it may be", "namespace", p.namespace)
		s.tellRefused(p)
	}
	p.refusal, p.askedAt = err, time.Now()
	return true
}

// WatchWithContext watches each namespace from the reflector's resource version on. When one watch ends, all are ended.
// A namespace is not watched if its list was refused: the changes between its last list and the watch would be missing.
func (s *several) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	w := &watchOfSeveral{of: s, cancel: cancel, events: make(chan watch.Event)}
	streams := make([]watch.Interface, len(s.parts))
	opening := errgroup.Group{}
	opening.SetLimit(atOnce)
	for i, p := range s.parts {
		if p.refusal != nil {
			continue
		}
		from := options
		from.ResourceVersion = p.at
		opening.Go(func() error {
			stream, err := p.in.WatchWithContext(ctx, from)
			switch {
			case s.refuses(ctx, p, err):
			case err != nil:
				cancel(err) // The others need not be opened. What becomes of them says nothing.
			default:
				streams[i] = stream
			}
			return nil
		})
	}
	_ = opening.Wait()
	err := context.Cause(ctx)
	if err == nil {
		err = s.refusal()
	}
	if err != nil {
		cancel(err)
		stop(streams)
		return nil, err
	}
	for i, p := range s.parts {
		w.running.Go(func() {
			defer cancel(nil)
			stream := streams[i]
			if stream == nil {
				w.await(ctx, p)
				return
			}
			if p.marks {
				p.marks = !w.tell(ctx, watch.Event{Type: watch.Deleted, Object: s.markOf(p)})
			}
			w.pass(ctx, p, stream)
		})
	}
	go func() {
		w.running.Wait()
		close(w.events)
	}()
	return w, nil
}

func stop(streams []watch.Interface) {
	for _, stream := range streams {
		if stream != nil {
			stream.Stop()
		}
	}
}

// watchOfSeveral is the watch of all namespaces.
type watchOfSeveral struct {
	of      *several
	cancel  context.CancelCauseFunc
	running sync.WaitGroup
	events  chan watch.Event
	// telling is held while an event is handed to the reflector.
	telling sync.Mutex
}

// ResultChan implements watch.Interface.
func (w *watchOfSeveral) ResultChan() <-chan watch.Event { return w.events }

// Stop implements watch.Interface. Nothing of the watch goes on afterwards.
func (w *watchOfSeveral) Stop() {
	w.cancel(nil)
	w.running.Wait()
}

// pass hands on the events of a namespace, until the stream or ctx ends.
func (w *watchOfSeveral) pass(ctx context.Context, p *part, stream watch.Interface) {
	defer stream.Stop()
	for {
		var event watch.Event
		select {
		case <-ctx.Done():
			return
		case next, more := <-stream.ResultChan():
			if !more {
				return
			}
			event = next
		}
		if !w.tell(ctx, event) {
			return
		}
		if accessor, err := meta.Accessor(event.Object); err == nil && event.Type != watch.Error {
			p.at = accessor.GetResourceVersion()
		}
	}
}

// tell passes an event to the reflector, and returns false if ctx ends first.
func (w *watchOfSeveral) tell(ctx context.Context, event watch.Event) bool {
	w.telling.Lock()
	defer w.telling.Unlock()
	select {
	case w.events <- event:
		if accessor, err := meta.Accessor(event.Object); err == nil && event.Type != watch.Error {
			w.of.last = accessor.GetResourceVersion()
		}
		return true
	case <-ctx.Done():
		return false
	}
}

// await tries at intervals whether a namespace can be read again. If so, it ends the watch, so that the reflector lists
// again.
func (w *watchOfSeveral) await(ctx context.Context, p *part) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Until(p.askedAt.Add(lookAgain))):
		}
		if !p.mayBeRead(ctx) {
			if ctx.Err() != nil {
				return
			}
			p.askedAt = time.Now()
			continue
		}
		klog.FromContext(ctx).Info("A namespace may be read again", "namespace", p.namespace)
		anew := apierrors.NewResourceExpired("the namespace " + p.namespace + " may be read by now").ErrStatus
		w.tell(ctx, watch.Event{Type: watch.Error, Object: &anew})
		return
	}
}

// mayBeRead tries to list and to watch the namespace. mayBeRead needs both rights: otherwise all namespaces would be
// listed again after each try, only to find that the watch is still refused.
func (p *part) mayBeRead(ctx context.Context) bool {
	if _, err := p.in.ListWithContext(ctx, metav1.ListOptions{Limit: 1, ResourceVersion: "0"}); err != nil {
		return false
	}
	stream, err := p.in.WatchWithContext(ctx, metav1.ListOptions{ResourceVersion: p.at})
	if err == nil {
		stream.Stop()
	}
	return err == nil || apierrors.IsResourceExpired(err) || apierrors.IsGone(err)
}
