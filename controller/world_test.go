// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	kubefake "k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/metadata"
	k8stesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	configv1alpha1 "github.com/lockstep-k8s/lockstep/apis/config/v1alpha1"
	"github.com/lockstep-k8s/lockstep/apis/framework/statuscodec"
	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	lockstepfake "github.com/lockstep-k8s/lockstep/client/clientset/versioned/fake"
)

const (
	namespace   = "ns"
	podTemplate = `{"spec":{"restartPolicy":"Never","containers":[{"name":"main","image":"busybox"}]}}`
)

var key = cache.NewObjectName(namespace, "fw")

// errCrashed is what every write returns after the crash.
var errCrashed = errors.New("the controller has crashed")

// world is an API server with one Framework, as far as the controller can tell:
// fake clients, with UIDs, graceful deletion of Pods and foreground deletion of
// ConfigMaps. Nothing reaches the controller's caches but by fill.
type world struct {
	t        testing.TB
	kube     *kubefake.Clientset
	lockstep *lockstepfake.Clientset
	clock    *clocktesting.FakePassiveClock
	// requests guards what actions, which run side by side, change.
	requests sync.Mutex
	uids     int
	version  int

	framework *frameworkv1.Framework
	status    json.RawMessage
	// decoded is the same status, if it was asked for.
	decoded *frameworkv1.FrameworkStatus
	pods    map[string]*corev1.Pod
	// show, if set, shows the controller a Pod as soon as it changes.
	show func(pod *corev1.Pod, gone bool)

	// frameworks, if set before restart, is what the controller would watch.
	frameworks cache.ListerWatcher
	controller *Controller
	recorder   *record.FakeRecorder
	// log has every write that reached the API server.
	log []string
	// budget is how many more writes do; negative means all. crashed says that one
	// more was tried.
	budget  int
	crashed bool
	// updateError, if set, may refuse a write of the status.
	updateError func(framework []byte) error
}

func newWorld(t testing.TB, framework *frameworkv1.Framework) *world {
	t.Helper()
	w := &world{
		t:          t,
		kube:       kubefake.NewClientset(),
		lockstep:   lockstepfake.NewSimpleClientset(),
		clock:      clocktesting.NewFakePassiveClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)),
		framework:  framework,
		pods:       map[string]*corev1.Pod{},
		show:       func(*corev1.Pod, bool) {},
		budget:     -1,
		frameworks: &cache.ListWatch{},
	}
	framework.UID = w.NewUID()
	framework.ResourceVersion = "1"
	w.version = 1
	for _, fake := range []*k8stesting.Fake{&w.kube.Fake, &w.lockstep.Fake} {
		fake.PrependReactor("delete", "pods", w.alone(w.reactDeletePod))
		fake.PrependReactor("delete", "configmaps", w.alone(w.reactDeleteConfigMap))
		fake.PrependReactor("get", "pods", w.alone(w.reactGetPod))
		fake.PrependReactor("create", "*", w.alone(w.reactCreate))
		fake.PrependReactor("patch", "podgroups", w.alone(w.reactPatchPodGroup))
		fake.PrependReactor("*", "*", w.alone(w.reactWrite))
	}
	w.restart()
	return w
}

// alone has one request at a time react. A fake client does so by itself, but
// there are two of them.
func (w *world) alone(react k8stesting.ReactionFunc) k8stesting.ReactionFunc {
	return func(action k8stesting.Action) (bool, runtime.Object, error) {
		w.requests.Lock()
		defer w.requests.Unlock()
		return react(action)
	}
}

// NewUID and Between make the world an Entropy.
func (w *world) NewUID() types.UID {
	w.uids++
	return types.UID(fmt.Sprintf("uid-%d", w.uids))
}

func (w *world) Between(least, _ int64) int64 { return least }

// restart replaces the controller by one that knows nothing.
func (w *world) restart() {
	w.t.Helper()
	config := &configv1alpha1.ControllerConfiguration{PodFailureSpec: []configv1alpha1.CompletionCodeInfo{}}
	config.LogObjectSnapshot.Framework.OnFrameworkRetry = ptr.To(false)
	config.LogObjectSnapshot.Task.OnTaskRetry = ptr.To(false)
	configv1alpha1.SetDefaults(config)
	clients := Clients{Kube: w.kube, Lockstep: w.lockstep, Metadata: podMetadata{w: w}}
	controller, err := newController(clients, config, prometheus.NewRegistry(), w.frameworks, w, w.clock, w)
	if err != nil {
		w.t.Fatal(err)
	}
	w.recorder = record.NewFakeRecorder(10000)
	controller.events = w.recorder
	w.controller = controller
	w.budget, w.crashed = -1, false
}

// spend counts a write. It says whether the write still happens.
func (w *world) spend(write string) bool {
	if w.budget == 0 {
		w.crashed = true
		return false
	}
	w.budget--
	w.log = append(w.log, write)
	return true
}

func (w *world) reactWrite(action k8stesting.Action) (bool, runtime.Object, error) {
	switch action.GetVerb() {
	case "get", "list", "watch":
		return false, nil, nil
	}
	name := ""
	switch a := action.(type) {
	case k8stesting.CreateAction:
		name = a.GetObject().(metav1.Object).GetName()
	case k8stesting.DeleteAction:
		name = a.GetName()
	}
	if !w.spend(fmt.Sprintf("%s %s %s", action.GetVerb(), action.GetResource().Resource, name)) {
		return true, nil, errCrashed
	}
	return false, nil, nil
}

func (w *world) reactCreate(action k8stesting.Action) (bool, runtime.Object, error) {
	object := action.(k8stesting.CreateAction).GetObject().(metav1.Object)
	object.SetUID(w.NewUID())
	object.SetResourceVersion(w.nextVersion())
	object.SetCreationTimestamp(metav1.NewTime(w.clock.Now()))
	if pod, ok := object.(*corev1.Pod); ok {
		pod.Status.Phase = corev1.PodPending
		if w.pods[pod.Name] != nil {
			return true, nil, apierrors.NewAlreadyExists(action.GetResource().GroupResource(), pod.Name)
		}
		w.put(pod)
		return true, pod, nil
	}
	return false, nil, nil
}

func (w *world) reactPatchPodGroup(action k8stesting.Action) (bool, runtime.Object, error) {
	a := action.(k8stesting.PatchAction)
	object, err := w.lockstep.Tracker().Get(podGroupResource, namespace, a.GetName())
	if err != nil {
		return true, nil, err
	}
	group := object.(*schedulingv1alpha1.PodGroup).DeepCopy()
	var operations []struct {
		Path  string          `json:"path"`
		Value json.RawMessage `json:"value"`
	}
	if err := json.Unmarshal(a.GetPatch(), &operations); err != nil {
		w.t.Fatalf("the patch is no JSON patch: %v", err)
	}
	into := map[string]any{
		"/metadata/uid":       new(types.UID),
		"/spec/minMember":     &group.Spec.MinMember,
		"/spec/minRoleMember": &group.Spec.MinRoleMember,
	}
	for _, operation := range operations {
		if err := json.Unmarshal(operation.Value, into[operation.Path]); err != nil {
			w.t.Fatalf("the value of %s: %v", operation.Path, err)
		}
	}
	group.ResourceVersion = w.nextVersion()
	return true, group, w.lockstep.Tracker().Update(podGroupResource, group, namespace)
}

func (w *world) reactGetPod(action k8stesting.Action) (bool, runtime.Object, error) {
	name := action.(k8stesting.GetAction).GetName()
	if pod := w.pods[name]; pod != nil {
		return true, pod.DeepCopy(), nil
	}
	return true, nil, apierrors.NewNotFound(action.GetResource().GroupResource(), name)
}

func (w *world) nextVersion() string {
	w.version++
	return strconv.Itoa(w.version)
}

func (w *world) reactDeletePod(action k8stesting.Action) (bool, runtime.Object, error) {
	a := action.(k8stesting.DeleteActionImpl)
	pod := w.pods[a.Name]
	if pod == nil || pod.UID != *a.DeleteOptions.Preconditions.UID {
		return true, nil, apierrors.NewNotFound(action.GetResource().GroupResource(), a.Name)
	}
	if ptr.Deref(a.DeleteOptions.GracePeriodSeconds, 30) == 0 {
		w.remove(a.Name)
		return true, nil, nil
	}
	if pod.DeletionTimestamp == nil {
		pod = pod.DeepCopy()
		pod.DeletionTimestamp = ptr.To(metav1.NewTime(w.clock.Now().Add(30 * time.Second)))
		pod.DeletionGracePeriodSeconds = ptr.To[int64](30)
		w.put(pod)
	}
	return true, nil, nil
}

func (w *world) reactDeleteConfigMap(action k8stesting.Action) (bool, runtime.Object, error) {
	a := action.(k8stesting.DeleteActionImpl)
	configMap := w.configMap()
	if configMap == nil || configMap.UID != *a.DeleteOptions.Preconditions.UID {
		return true, nil, apierrors.NewNotFound(action.GetResource().GroupResource(), a.Name)
	}
	if *a.DeleteOptions.PropagationPolicy != metav1.DeletePropagationForeground {
		w.t.Errorf("the ConfigMap is deleted with propagation %s", *a.DeleteOptions.PropagationPolicy)
	}
	configMap.DeletionTimestamp = ptr.To(metav1.NewTime(w.clock.Now()))
	if err := w.kube.Tracker().Update(corev1.SchemeGroupVersion.WithResource("configmaps"), configMap, namespace); err != nil {
		w.t.Fatal(err)
	}
	return true, nil, nil
}

// UpdateStatus, Get and Delete make the world a frameworkClient.
func (w *world) UpdateStatus(_ context.Context, _ cache.ObjectName, framework []byte) (metav1.ObjectMeta, error) {
	var update struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata"`
		Status            json.RawMessage `json:"status"`
	}
	if err := json.Unmarshal(framework, &update); err != nil {
		w.t.Fatalf("the update is no Framework: %v", err)
	}
	if update.APIVersion != "frameworkcontroller.microsoft.com/v1" || update.Kind != "Framework" ||
		update.Namespace != w.framework.Namespace || update.Name != w.framework.Name {
		w.t.Fatalf("the update is of another object: %s", framework)
	}
	if w.updateError != nil {
		if err := w.updateError(framework); err != nil {
			return metav1.ObjectMeta{}, err
		}
	}
	if update.UID != w.framework.UID || update.ResourceVersion != w.framework.ResourceVersion {
		return metav1.ObjectMeta{}, apierrors.NewConflict(frameworkv1.Resource("frameworks"), w.framework.Name,
			fmt.Errorf("it has UID %s and version %s", w.framework.UID, w.framework.ResourceVersion))
	}
	w.requests.Lock()
	defer w.requests.Unlock()
	if !w.spend("update frameworks/status " + w.framework.Name) {
		return metav1.ObjectMeta{}, errCrashed
	}
	w.status, w.decoded = update.Status, nil
	w.framework.ResourceVersion = w.nextVersion()
	return metav1.ObjectMeta{ResourceVersion: w.framework.ResourceVersion}, nil
}

func (w *world) Get(context.Context, cache.ObjectName) (*frameworkEntry, error) {
	return &frameworkEntry{Framework: *w.framework.DeepCopy(), storedStatus: w.status}, nil
}

func (w *world) Delete(_ context.Context, _ cache.ObjectName, options metav1.DeleteOptions) error {
	if *options.PropagationPolicy != metav1.DeletePropagationForeground {
		w.t.Errorf("the Framework is deleted with propagation %s", *options.PropagationPolicy)
	}
	w.requests.Lock()
	defer w.requests.Unlock()
	if !w.spend("delete frameworks " + w.framework.Name) {
		return errCrashed
	}
	return nil
}

func (w *world) configMap() *corev1.ConfigMap {
	object, err := w.kube.Tracker().Get(corev1.SchemeGroupVersion.WithResource("configmaps"), namespace, frameworkv1.AttemptName(w.framework.Name))
	if err != nil {
		return nil
	}
	return object.(*corev1.ConfigMap).DeepCopy()
}

// put stores a new or changed Pod.
func (w *world) put(pod *corev1.Pod) {
	pod.ResourceVersion = w.nextVersion()
	w.pods[pod.Name] = pod
	w.show(pod, false)
}

// remove removes a Pod for good.
func (w *world) remove(name string) {
	w.show(w.pods[name], true)
	w.controller.noteDeparture(w.pods[name], true)
	delete(w.pods, name)
}

// podList are the Pods in the order of their names.
func (w *world) podList() []*corev1.Pod {
	return slices.SortedFunc(maps.Values(w.pods), func(a, b *corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
}

// fill shows the controller everything as it is.
func (w *world) fill() {
	w.t.Helper()
	w.fillWithoutPods()
	pods := make([]any, 0, len(w.pods))
	for _, pod := range w.pods {
		pods = append(pods, pod)
	}
	w.replace(w.controller.pods, pods...)
}

func (w *world) fillWithoutPods() {
	w.t.Helper()
	copied := w.framework.DeepCopy()
	entry := &frameworkEntry{Framework: *copied, storedStatus: w.status}
	w.replace(w.controller.frameworks, entry)
	var configMaps, groups []any
	if configMap := w.configMap(); configMap != nil {
		configMaps = append(configMaps, configMap)
	}
	list, err := w.lockstep.SchedulingV1alpha1().PodGroups(namespace).List(context.Background(), metav1.ListOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, group := range list.Items {
		groups = append(groups, group.DeepCopy())
	}
	w.replace(w.controller.configMaps, configMaps...)
	w.replace(w.controller.podGroups, groups...)
}

func (w *world) replace(informer cache.SharedIndexInformer, objects ...any) {
	w.t.Helper()
	if err := informer.GetIndexer().Replace(objects, strconv.Itoa(w.version)); err != nil {
		w.t.Fatal(err)
	}
}

// live is what the rest of the cluster does in a while: kubelets start, end and
// remove Pods, the garbage collector works. exit says how each Pod ends.
func (w *world) live(exit func(pod *corev1.Pod) int32) {
	w.t.Helper()
	w.clock.SetTime(w.clock.Now().Add(time.Second))
	for _, pod := range w.podList() {
		changed := pod.DeepCopy()
		switch {
		case pod.DeletionTimestamp != nil:
			w.remove(pod.Name)
		case pod.Status.Phase == corev1.PodPending:
			changed.Status.Phase = corev1.PodRunning
			w.put(changed)
		case pod.Status.Phase == corev1.PodRunning:
			code := exit(changed)
			changed.Status.Phase = corev1.PodSucceeded
			if code != 0 {
				changed.Status.Phase = corev1.PodFailed
			}
			changed.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{
				Terminated: &corev1.ContainerStateTerminated{ExitCode: code},
			}}}
			w.put(changed)
		}
	}
	w.collectGarbage()
}

// collectGarbage removes a deleted ConfigMap, with its PodGroup, once its Pods
// are gone.
func (w *world) collectGarbage() {
	w.t.Helper()
	configMap := w.configMap()
	if configMap == nil || configMap.DeletionTimestamp == nil || len(w.pods) > 0 {
		return
	}
	if err := w.kube.Tracker().Delete(corev1.SchemeGroupVersion.WithResource("configmaps"), namespace, configMap.Name); err != nil {
		w.t.Fatal(err)
	}
	if err := w.lockstep.Tracker().Delete(podGroupResource, namespace, frameworkv1.PodGroupName(w.framework.Name)); err != nil && !apierrors.IsNotFound(err) {
		w.t.Fatal(err)
	}
}

// sync shows the controller everything and lets it work.
func (w *world) sync() error {
	w.t.Helper()
	w.fill()
	return w.controller.sync(w.t.Context(), cache.MetaObjectToName(w.framework), w.turn())
}

// podMetadata lists the metadata of the world's Pods.
type podMetadata struct {
	metadata.Interface
	metadata.ResourceInterface
	w *world
}

func (m podMetadata) Resource(schema.GroupVersionResource) metadata.Getter { return m }
func (m podMetadata) Namespace(string) metadata.ResourceInterface          { return m }

func (m podMetadata) List(context.Context, metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
	list := &metav1.PartialObjectMetadataList{}
	for _, pod := range m.w.podList() {
		list.Items = append(list.Items, metav1.PartialObjectMetadata{ObjectMeta: pod.ObjectMeta})
	}
	return list, nil
}

// turn is one on a worker that has nothing else to do.
func (w *world) turn() *turn {
	return &turn{begun: w.clock.Now(), inFlight: func() int { return 1 }}
}

func (w *world) stored() *frameworkv1.FrameworkStatus {
	w.t.Helper()
	if w.status == nil {
		return nil
	}
	if w.decoded == nil {
		status, err := statuscodec.Decode(w.status)
		if err != nil {
			w.t.Fatal(err)
		}
		w.decoded = status
	}
	return w.decoded
}

// framework makes a Framework with one role w.
func framework(tasks int32) *frameworkv1.Framework {
	return &frameworkv1.Framework{
		ObjectMeta: metav1.ObjectMeta{Name: "fw", Namespace: namespace, Generation: 1},
		Spec: frameworkv1.FrameworkSpec{
			ExecutionType: frameworkv1.ExecutionStart,
			TaskRoles: []frameworkv1.TaskRoleSpec{{
				Name: "w", TaskNumber: tasks,
				Task: frameworkv1.TaskSpec{Pod: runtime.RawExtension{Raw: []byte(podTemplate)}},
			}},
		},
	}
}

// succeed ends every Pod well.
func succeed(*corev1.Pod) int32 { return 0 }

// dedupe shortens runs of equal writes.
func dedupe(log []string) []string {
	return slices.Compact(slices.Clone(log))
}
