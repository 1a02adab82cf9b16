// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/events"
	"k8s.io/component-base/metrics"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	kubeschedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	schedulertesting "k8s.io/kubernetes/pkg/scheduler/testing"
	"k8s.io/utils/ptr"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	lockstepfake "github.com/lockstep-k8s/lockstep/client/clientset/versioned/fake"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/gangs"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/kube"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/news"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/queue"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/starts"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/status"
)

const (
	testScheduler = "lockstep-scheduler"
	testNamespace = "ns"
	// patience is how long a test waits for what must happen.
	patience = 3 * time.Minute
)

// inBubble runs a test in a synctest bubble, in which no time is lost: it passes when all wait
// for it. It begins with the time outside, by which the table of a test may have set ages. In the
// end, after all of the test's own clean-ups, requests that are retried have a minute to end.
func inBubble(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	now := time.Now()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(now))
		t.Cleanup(func() { time.Sleep(time.Minute) })
		test(t)
	})
}

// world is a scheduler with the plugin on a fake API server, for a test.
type world struct {
	t     testing.TB
	kube  *fake.Clientset
	lock  *lockstepfake.Clientset
	sched *scheduler.Scheduler
	// foreign has the PodGroups of other dialects, none of which are served at first.
	foreign *otherGroups

	// name is that of the scheduler; empty for testScheduler.
	name string
	// args are the plugin's arguments.
	args string
	// client is what the scheduler talks to: kube, with something that stands between.
	client kubernetes.Interface
	// verbosity is that of the scheduler's log.
	verbosity int
	// registry is where metrics are registered; nil if nobody collects them.
	registry metrics.KubeRegistry
	// others are more plugins of the profile.
	others []fwk.Plugin
	// scoresAll has all nodes be scored for an ordinary Pod.
	scoresAll bool
	// noBackoff has ordinary Pods be tried again at once.
	noBackoff bool

	mu sync.Mutex
	// bindError, if set, may refuse a binding.
	bindError func(pod string) error
	// bindings are the names of the Pods that were bound, in order.
	bindings []string
	// deleted are the names of the Pods that somebody asked to delete, in order.
	deleted []string
	// recorder has the events that are recorded, but for those that were read.
	recorder *events.FakeRecorder
	events   []string
	// ownRefusal answers who reads Lockstep's PodGroups, if set.
	ownRefusal atomic.Pointer[apierrors.StatusError]
	// ended are the reasons for which the program was to end.
	ended []string
	// webs are the Pods that replicas has made.
	webs int
	// lingers has Pods that are deleted stay, as terminating, until the test ends
	// them with finish.
	lingers bool
}

// newWorld makes a world with objects in it. The scheduler is not started.
func newWorld(t testing.TB, objects ...apiruntime.Object) *world {
	t.Helper()
	w := &world{t: t, kube: fake.NewSimpleClientset(), lock: lockstepfake.NewSimpleClientset(),
		args: `{"initialBackoff":"50ms","maxBackoff":"200ms","bindRetries":2}`, verbosity: 5,
		recorder: events.NewFakeRecorder(10000), foreign: newOtherGroups()}
	w.client = timely{w.kube}
	w.lock.PrependReactor("list", "podgroups", func(clienttesting.Action) (bool, apiruntime.Object, error) {
		why := w.ownRefusal.Load()
		return why != nil, nil, why
	})
	w.kube.PrependReactor("create", "pods", w.bind)
	w.kube.PrependReactor("delete", "pods", w.delete)
	w.kube.PrependReactor("patch", "pods", w.compareUID)
	w.kube.PrependReactor("update", "resourceclaims", w.updateClaim)
	w.lock.PrependReactor("patch", "podgroups", w.applyConditions)
	for _, object := range objects {
		w.create(object)
	}
	return w
}

// endProgram notes that the program had better end.
func (w *world) endProgram(reason string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = append(w.ended, reason)
}

// hasEnded reports whether the program was to end, and be started again.
func (w *world) hasEnded() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.ended) > 0
}

// bind stands in for the API server's binding.
func (w *world) bind(action clienttesting.Action) (bool, apiruntime.Object, error) {
	if action.GetSubresource() != "binding" {
		return false, nil, nil
	}
	binding := action.(clienttesting.CreateAction).GetObject().(*corev1.Binding)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.bindError != nil {
		if err := w.bindError(binding.Name); err != nil {
			return true, nil, err
		}
	}
	resource := corev1.SchemeGroupVersion.WithResource("pods")
	object, err := w.kube.Tracker().Get(resource, action.GetNamespace(), binding.Name)
	if err != nil {
		return true, nil, err
	}
	pod := object.(*corev1.Pod).DeepCopy()
	pod.Spec.NodeName = binding.Target.Name
	w.bindings = append(w.bindings, pod.Name)
	return true, binding, w.kube.Tracker().Update(resource, pod, pod.Namespace)
}

// applyConditions stands in for server-side apply, which the fake API server has
// no schema for: it sets what the field manager owns, the conditions or the expected
// start, and leaves the rest of the object alone.
func (w *world) applyConditions(action clienttesting.Action) (bool, apiruntime.Object, error) {
	patch := action.(clienttesting.PatchAction)
	var applied schedulingv1alpha1.PodGroup
	if err := json.Unmarshal(patch.GetPatch(), &applied); err != nil {
		return true, nil, err
	}
	resource := schedulingv1alpha1.SchemeGroupVersion.WithResource(schedulingv1alpha1.PodGroupPlural)
	object, err := w.lock.Tracker().Get(resource, action.GetNamespace(), patch.GetName())
	if err != nil {
		return true, nil, err
	}
	group := object.(*schedulingv1alpha1.PodGroup).DeepCopy()
	if patch.(clienttesting.PatchActionImpl).PatchOptions.FieldManager == starts.FieldManager {
		group.Status.ExpectedStart = applied.Status.ExpectedStart
	} else {
		group.Status.Conditions = applied.Status.Conditions
	}
	return true, group, w.lock.Tracker().Update(resource, group, group.Namespace)
}

func (w *world) create(object apiruntime.Object) {
	w.t.Helper()
	var err error
	switch o := object.(type) {
	case *schedulingv1alpha1.PodGroup:
		_, err = w.lock.SchedulingV1alpha1().PodGroups(o.Namespace).Create(w.t.Context(), o, metav1.CreateOptions{})
	case *corev1.Pod:
		_, err = w.kube.CoreV1().Pods(o.Namespace).Create(w.t.Context(), o, metav1.CreateOptions{})
	case *corev1.Node:
		_, err = w.kube.CoreV1().Nodes().Create(w.t.Context(), o, metav1.CreateOptions{})
	case *policyv1.PodDisruptionBudget:
		_, err = w.kube.PolicyV1().PodDisruptionBudgets(o.Namespace).Create(w.t.Context(), o, metav1.CreateOptions{})
	case *schedulingv1.PriorityClass:
		_, err = w.kube.SchedulingV1().PriorityClasses().Create(w.t.Context(), o, metav1.CreateOptions{})
	case *resourcev1.ResourceClaim:
		o.ResourceVersion = "1" // kube-scheduler sees no update of one that has none
		err = w.kube.Tracker().Add(o)
	default:
		err = w.kube.Tracker().Add(object)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// compareUID stands in for the API server's comparison of the UID in a patch.
func (w *world) compareUID(action clienttesting.Action) (bool, apiruntime.Object, error) {
	patch := action.(clienttesting.PatchAction)
	var wants corev1.Pod
	if err := json.Unmarshal(patch.GetPatch(), &wants); err != nil {
		return true, nil, err
	}
	var preconditions *metav1.Preconditions
	if wants.UID != "" {
		preconditions = &metav1.Preconditions{UID: &wants.UID}
	}
	if err := w.compare(action.GetNamespace(), patch.GetName(), preconditions); err != nil {
		return true, nil, err
	}
	return false, nil, nil
}

// compare returns the API server's error if a Pod does not meet the preconditions of a request.
func (w *world) compare(namespace, name string, wants *metav1.Preconditions) error {
	object, err := w.kube.Tracker().Get(podResource, namespace, name)
	if err != nil {
		return err
	}
	if pod := object.(*corev1.Pod); wants != nil && (wants.UID != nil && pod.UID != *wants.UID ||
		wants.ResourceVersion != nil && pod.ResourceVersion != *wants.ResourceVersion) {
		return apierrors.NewConflict(podResource.GroupResource(), name, errors.New("precondition failed: the UID or the version is another"))
	}
	return nil
}

// delete stands in for the API server's graceful deletion.
func (w *world) delete(action clienttesting.Action) (bool, apiruntime.Object, error) {
	name := action.(clienttesting.DeleteAction).GetName()
	if err := w.compare(action.GetNamespace(), name, action.(clienttesting.DeleteActionImpl).DeleteOptions.Preconditions); err != nil {
		return true, nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.deleted = append(w.deleted, name)
	if !w.lingers {
		return false, nil, nil
	}
	resource := corev1.SchemeGroupVersion.WithResource("pods")
	object, err := w.kube.Tracker().Get(resource, action.GetNamespace(), name)
	if err != nil {
		return true, nil, err
	}
	pod := object.(*corev1.Pod).DeepCopy()
	pod.DeletionTimestamp = &metav1.Time{Time: time.Now().Add(30 * time.Second)}
	return true, nil, w.kube.Tracker().Update(resource, pod, pod.Namespace)
}

// finish ends Pods that linger.
func (w *world) finish(names ...string) {
	w.t.Helper()
	for _, name := range names {
		if err := w.kube.Tracker().Delete(corev1.SchemeGroupVersion.WithResource("pods"), testNamespace, name); err != nil {
			w.t.Fatal(err)
		}
	}
}

// victims are the Pods that were deleted, sorted.
func (w *world) victims() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	victims := slices.Clone(w.deleted)
	slices.Sort(victims)
	return slices.Compact(victims)
}

// changeNode changes a node.
func (w *world) changeNode(name string, change func(*corev1.Node)) {
	w.t.Helper()
	nodes := w.kube.CoreV1().Nodes()
	node, err := nodes.Get(w.t.Context(), name, metav1.GetOptions{})
	if err == nil {
		node = node.DeepCopy()
		change(node)
		_, err = nodes.Update(w.t.Context(), node, metav1.UpdateOptions{})
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) deletePod(name string) {
	w.t.Helper()
	if err := w.kube.CoreV1().Pods(testNamespace).Delete(w.t.Context(), name, metav1.DeleteOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

// uncollected is a registry that nobody collects from. All registries are kept for as long as
// the process lives, and so would be each scheduler that has to be asked for a metric.
type uncollected struct{ metrics.KubeRegistry }

// CustomRegister implements status.Registry.
func (uncollected) CustomRegister(metrics.StableCollector) error { return nil }

// start runs a scheduler until the test ends or stop is called.
func (w *world) start() (stop func()) {
	w.t.Helper()
	return w.standBy()()
}

// standBy makes a scheduler that watches, and does not schedule before it leads.
func (w *world) standBy() (lead func() (stop func())) {
	w.t.Helper()
	logger := ktesting.NewLogger(w.t, ktesting.NewConfig(ktesting.Verbosity(w.verbosity)))
	ctx, cancel := context.WithCancel(klog.NewContext(w.t.Context(), logger))

	cfg, err := latest.Default()
	if err != nil {
		w.t.Fatal(err)
	}
	profile := &cfg.Profiles[0]
	profile.SchedulerName = cmp.Or(w.name, testScheduler)
	profile.Plugins.MultiPoint.Enabled = append(profile.Plugins.MultiPoint.Enabled, kubeschedulerconfig.Plugin{Name: Name})
	profile.PluginConfig = append(profile.PluginConfig, kubeschedulerconfig.PluginConfig{
		Name: Name, Args: &apiruntime.Unknown{Raw: []byte(w.args)},
	})
	registry := frameworkruntime.Registry{Name: New}
	for _, plugin := range w.others {
		registry[plugin.Name()] = func(context.Context, apiruntime.Object, fwk.Handle) (fwk.Plugin, error) { return plugin, nil }
		profile.Plugins.MultiPoint.Enabled = append(profile.Plugins.MultiPoint.Enabled, kubeschedulerconfig.Plugin{Name: plugin.Name()})
	}
	options := []scheduler.Option{
		scheduler.WithProfiles(cfg.Profiles...),
		scheduler.WithFrameworkOutOfTreeRegistry(registry),
	}
	if w.scoresAll {
		options = append(options, scheduler.WithPercentageOfNodesToScore(ptr.To(int32(100))))
	}
	if w.noBackoff {
		options = append(options, scheduler.WithPodInitialBackoffSeconds(0), scheduler.WithPodMaxBackoffSeconds(0))
	}
	informers := kube.NewInformerFactory(w.client, nil)
	sched, err := scheduler.New(ctx, w.client, informers, nil,
		func(string) events.EventRecorderLogger { return w.recorder }, options...)
	if err != nil {
		w.t.Fatal(err)
	}
	w.sched = sched
	inside, err := kube.Of(sched)
	if err != nil {
		w.t.Fatal(err)
	}
	var measured status.Registry = uncollected{metrics.NewKubeRegistry()}
	if w.registry != nil {
		measured = w.registry
	}
	if err := attach(ctx, inside, nil, pluginsOf(sched.Profiles), w.lock, w.foreign, measured, w.endProgram); err != nil {
		w.t.Fatal(err)
	}
	informers.Start(ctx.Done())
	informers.WaitForCacheSync(ctx.Done())
	if err := sched.WaitForHandlersSync(ctx); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(cancel)
	return func() (stop func()) {
		done := make(chan struct{})
		go func() {
			sched.Run(ctx)
			close(done)
		}()
		stop = sync.OnceFunc(func() {
			cancel()
			<-done
		})
		w.t.Cleanup(stop)
		return stop
	}
}

// engine is that of the scheduler.
func (w *world) engine() *engine {
	w.t.Helper()
	return anyPlugin(pluginsOf(w.sched.Profiles)).engine
}

// known is what the scheduler knows of a gang, and that of no gang if it knows none.
func (w *world) known(group string) gangs.Entry {
	w.t.Helper()
	dump, err := gangs.DumpOf(w.engine().gangs)
	if err != nil {
		w.t.Fatal(err)
	}
	return dump.Gangs[gangNamed(group)]
}

// told is what a gang was told when it last found no place.
func (w *world) told(group string) queue.Refusal {
	w.t.Helper()
	known, _ := w.engine().reader.Look(gangNamed(group))
	if known.Refusal == nil {
		return queue.Refusal{}
	}
	return *known.Refusal
}

// patches is how often somebody patched objects of a resource.
func (w *world) patches(resource string) int {
	n := 0
	for _, action := range slices.Concat(w.kube.Actions(), w.lock.Actions()) {
		if action.GetVerb() == "patch" && action.GetResource().Resource == resource {
			n++
		}
	}
	return n
}

// gangName is the gang that many tests are about.
var gangName = gangNamed("gang")

func gangNamed(name string) dialect.Key {
	return dialect.Key{Namespace: testNamespace, Name: name}
}

// nodeOf is where each Pod is, empty for nowhere.
func (w *world) nodeOf() map[string]string {
	w.t.Helper()
	pods, err := w.kube.CoreV1().Pods(testNamespace).List(w.t.Context(), metav1.ListOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	nodes := make(map[string]string)
	for i := range pods.Items {
		nodes[pods.Items[i].Name] = pods.Items[i].Spec.NodeName
	}
	return nodes
}

// placed is how many Pods whose name starts with prefix have a node.
func (w *world) placed(prefix string) int {
	w.t.Helper()
	return w.count(prefix, func(pod *corev1.Pod) bool { return pod.Spec.NodeName != "" })
}

// marked is how many Pods whose name starts with prefix say that they are
// unschedulable.
func (w *world) marked(prefix string) int {
	w.t.Helper()
	return w.count(prefix, func(pod *corev1.Pod) bool { return news.IsMarked(pod, corev1.PodReasonUnschedulable) })
}

// count is how many Pods there are whose name starts with prefix, and of which something is true.
func (w *world) count(prefix string, is func(*corev1.Pod) bool) int {
	w.t.Helper()
	pods, err := w.kube.CoreV1().Pods(testNamespace).List(w.t.Context(), metav1.ListOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	n := 0
	for i := range pods.Items {
		if strings.HasPrefix(pods.Items[i].Name, prefix) && is(&pods.Items[i]) {
			n++
		}
	}
	return n
}

// eventually waits until what is true.
func (w *world) eventually(what string, is func() bool) {
	w.t.Helper()
	err := wait.PollUntilContextTimeout(w.t.Context(), 10*time.Millisecond, patience, true,
		func(context.Context) (bool, error) { return is(), nil })
	if err != nil {
		nodes := w.nodeOf()
		var where []string
		for _, name := range slices.Sorted(maps.Keys(nodes)) {
			where = append(where, name+"@"+nodes[name])
		}
		w.t.Fatalf("it never came true that %s\nPods: %s", what, strings.Join(where, " "))
	}
}

// meanwhile waits until what is true while no time passes. It is for reactions of the fake API
// server, which hold its lock: in a bubble, time stands still while a goroutine waits for a lock.
func (w *world) meanwhile(what string, is func() bool) {
	w.t.Helper()
	for range 1_000_000 {
		if is() {
			return
		}
		runtime.Gosched()
	}
	w.t.Errorf("it never came true that %s", what)
}

// condition waits until a group's condition Unschedulable has a status and
// reason, and returns it.
func (w *world) condition(group string, want metav1.ConditionStatus, reason string) schedulingv1alpha1.PodGroupCondition {
	w.t.Helper()
	var found schedulingv1alpha1.PodGroupCondition
	w.eventually(fmt.Sprintf("group %s has Unschedulable=%s for %s", group, want, reason), func() bool {
		pg, err := w.lock.SchedulingV1alpha1().PodGroups(testNamespace).Get(w.t.Context(), group, metav1.GetOptions{})
		if err != nil {
			w.t.Fatal(err)
		}
		if c := news.ConditionOf(pg.Status.Conditions, schedulingv1alpha1.ConditionUnschedulable); c != nil {
			found = *c
		}
		return found.Status == want && found.Reason == reason
	})
	return found
}

// makeGroup makes a PodGroup; change may set more of its spec.
func makeGroup(name string, minMember int32, change ...func(*schedulingv1alpha1.PodGroupSpec)) *schedulingv1alpha1.PodGroup {
	pg := &schedulingv1alpha1.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: testNamespace, Name: name, UID: types.UID("uid-of-group-" + name), Generation: 1},
		Spec:       schedulingv1alpha1.PodGroupSpec{MinMember: minMember},
	}
	for _, c := range change {
		c(&pg.Spec)
	}
	return pg
}

// podOption changes a Pod that is being made.
type podOption func(*schedulertesting.PodWrapper)

// makePod makes a Pod of the plugin's scheduler that requests one core.
func makePod(name string, options ...podOption) *corev1.Pod {
	w := schedulertesting.MakePod().Namespace(testNamespace).Name(name).UID("uid-" + name).SchedulerName(testScheduler).
		Req(map[corev1.ResourceName]string{corev1.ResourceCPU: "1"})
	w.Spec.RestartPolicy = corev1.RestartPolicyNever
	for _, o := range options {
		o(w)
	}
	return w.Obj()
}

// makeMembers makes n members of a group, named after it.
func makeMembers(group string, n int, options ...podOption) []apiruntime.Object {
	var pods []apiruntime.Object
	for i := range n {
		pods = append(pods, makePod(fmt.Sprintf("%s-%d", group, i), append([]podOption{inGroup(group)}, options...)...))
	}
	return pods
}

func inGroup(group string) podOption {
	return func(w *schedulertesting.PodWrapper) { w.Label(schedulingv1alpha1.LabelPodGroup, group) }
}

// plusCores adds a container to the one of a core.
func plusCores(cores string) podOption {
	return func(w *schedulertesting.PodWrapper) { w.Req(map[corev1.ResourceName]string{corev1.ResourceCPU: cores}) }
}

// createdAt is the second in which a Pod was created, as bornAt is that of a group.
func createdAt(second int) podOption {
	return func(w *schedulertesting.PodWrapper) {
		w.CreationTimestamp(bornAt(second, makeGroup("", 1)).CreationTimestamp)
	}
}

// ofService makes a Pod one of a Deployment: it does not end by itself.
func ofService(w *schedulertesting.PodWrapper) {
	w.Spec.RestartPolicy = corev1.RestartPolicyAlways
}

// selecting has a Pod select nodes with a label.
func selecting(label, value string) podOption {
	return func(p *schedulertesting.PodWrapper) { p.NodeSelector(map[string]string{label: value}) }
}

func onNode(node string) podOption {
	return func(w *schedulertesting.PodWrapper) { w.Node(node) }
}

func inRole(role string) podOption {
	return func(w *schedulertesting.PodWrapper) { w.Label(schedulingv1alpha1.LabelRole, role) }
}

// makeNodes makes n nodes prefix-0, prefix-1, … with a number of cores; labels are
// key=value pairs.
func makeNodes(prefix string, n int, cores int, labels ...string) []apiruntime.Object {
	var all []apiruntime.Object
	for i := range n {
		name := fmt.Sprintf("%s-%d", prefix, i)
		w := schedulertesting.MakeNode().Name(name).UID(name).Label(corev1.LabelHostname, name).
			Capacity(map[corev1.ResourceName]string{corev1.ResourceCPU: fmt.Sprint(cores), corev1.ResourcePods: "110"})
		for _, label := range labels {
			key, value, _ := strings.Cut(label, "=")
			w.Label(key, value)
		}
		all = append(all, w.Obj())
	}
	return all
}
