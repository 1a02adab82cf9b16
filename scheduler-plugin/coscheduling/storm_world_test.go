// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	clienttesting "k8s.io/client-go/testing"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/queue"
)

// TestMain gives the fake API server's watches room for a storm: they panic when
// a reader is behind by more.
//
// It also listens for a signal, as kube-scheduler does. At the first time the runtime makes a
// channel for all signals, which must not belong to the synctest bubble of one test.
func TestMain(m *testing.M) {
	watch.DefaultChanSize = 3000
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGUSR2)
	signal.Stop(signals)
	os.Exit(m.Run())
}

var (
	podResource    = corev1.SchemeGroupVersion.WithResource("pods")
	nodeResource   = corev1.SchemeGroupVersion.WithResource("nodes")
	classResource  = schedulingv1.SchemeGroupVersion.WithResource("priorityclasses")
	budgetResource = policyv1.SchemeGroupVersion.WithResource("poddisruptionbudgets")
	groupResource  = schedulingv1alpha1.SchemeGroupVersion.WithResource(schedulingv1alpha1.PodGroupPlural)
)

// stormPod is a Pod as the API server has it.
type stormPod struct {
	name, group string
	uid         types.UID
	role        string
	cpu         int
	priority    int32
	node        string
	deleting    bool
	succeeded   bool
	// started says that it runs in the eyes of its kubelet, of those in gangs of other dialects.
	started bool
	// foreign says that somebody else than the scheduler bound it.
	foreign bool
	// serves says that it never ends by itself, and daemon, unless empty, that a DaemonSet
	// wants it on that node.
	serves bool
	daemon string
	// anew says that another Pod takes its name when it goes.
	anew bool
	// wantsDevice says that it is to have a claim from a template, and claim is the name of
	// the claim that it has, also of one that it shares.
	wantsDevice bool
	claim       string
}

// placed says whether the Pod counts towards its group's minimum.
func (p *stormPod) placed() bool {
	return p.succeeded || p.node != "" && !p.deleting
}

func (p *stormPod) waits() bool {
	return p.node == "" && !p.deleting && !p.succeeded
}

// runs says whether the Pod takes room on its node.
func (p *stormPod) runs() bool {
	return p.node != "" && !p.succeeded
}

// stormGroup is a PodGroup as the API server has it, and what has become of it.
type stormGroup struct {
	*schedulingv1alpha1.PodGroup
	// of is the dialect of its PodGroup.
	of     dialect.Dialect
	exists bool
	size   int // how many members its controller wants
	next   int // the number of the next member
	cpu    int // of a member; one more in role ps if mixed
	mixed  bool
	never  bool // preempts nobody
	// apart says that no two members may be on one node, spread that the racks may not have
	// one more than another, and stores that each has a volume.
	apart, spread, stores bool
	// computes says that each member has a device, and shares that all have the same one.
	computes, shares bool
	// asks is how many cores its members ask for in all, those to come too; 0 for nothing.
	asks int
	// priority is that of all its members. Its PriorityClass may cap it.
	priority int32
	// Since the last calm: the lowest and the highest priority that it ranked with.
	leastRank, mostRank int32

	// whole says that its minimum was placed since it last had no member placed.
	whole bool
	// emptied is when the last member went of a gang that was whole.
	emptied time.Time
	// finished says that enough of its members have succeeded that its phase is final, and
	// mostSucceeded is the most of them since the last calm. Both are of this group of its name.
	finished      bool
	mostSucceeded int
	// excused says that something happened since which may have cut a placement
	// short: a bind failed, a member or node went, the scheduler died.
	excused bool
	// preempted says that the scheduler has evicted members since the last calm.
	preempted bool
	// broken says that it had its minimum then.
	broken bool
	// Since the last calm: whether it existed, the most members it had, and its
	// lowest minimum.
	existed  bool
	most     int
	leastMin int32
	// unseen are the members that had succeeded and are gone since: the scheduler hears of that
	// from another watch than of the Pods that come, perhaps after them.
	unseen int
}

func (g *stormGroup) minPs() int {
	return int(g.Spec.MinRoleMember["ps"])
}

// isPlain says whether its members are all alike, and need nothing but cores.
func (g *stormGroup) isPlain() bool {
	return !g.mixed && !g.apart && !g.spread && !g.stores && !g.computes && !g.shares
}

// sharedClaim is the name of the claim that the members share, if they do.
func (g *stormGroup) sharedClaim() string {
	return g.Name + "-shared"
}

func (g *stormGroup) required() bool {
	return len(g.Spec.Topology) > 0
}

func (h *history) rank(g *stormGroup) queue.Rank {
	return queue.Rank{Priority: h.priorityOf(g), Created: g.CreationTimestamp.Time, Key: g.key()}
}

type stormNode struct {
	name, rack string
	cpu        int
	cordoned   bool
	maintained bool
}

// evicted is a Pod that the scheduler deleted, as it was.
type evicted struct {
	pod  stormPod
	rank int32 // of its gang, or its own priority
}

// bindFault is what happens to a binding instead of success.
type bindFault int

const (
	bindRefused   bindFault = iota // for good
	bindFailed                     // and may be repeated
	bindReplyLost                  // though it succeeded
	bindFaults
)

// history is what the API server of a storm knows, and everything that happened
// to it in order. The lock of the fake API server guards it: whoever changes an
// object does so in one step with the record of it.
type history struct {
	*world
	pods   map[string]*stormPod
	groups map[string]*stormGroup
	nodes  map[string]*stormNode
	gone   map[string]bool // nodes that went since the last calm
	faults []bindFault     // of the next bindings
	// evictionFaults is how many of the next evictions fail, and stayed when the last one did.
	evictionFaults int
	stayed         time.Time
	outages        map[string]*outage
	classes        map[string]int32
	budgets        map[string]bool
	volumes        map[string]*stormVolume
	claims         map[string]bool // by the name of their Pod
	// deviceClaims has the group of each claim on a device, by name.
	deviceClaims map[string]string
	made         int // objects, for their names, UIDs, versions and ages
	leaving      int // Pods that are terminating
	// died says that a scheduler has died. It may have marked victims that it did
	// not come to delete; of such a gang all goes when another of it is lost.
	died bool
	// wires are the watches of Pods, nodes and the like, groupWires those of PodGroups.
	wires, groupWires *wires

	bound      []stormPod // since the last calm
	departed   []stormPod // that waited and were deleted since the last calm
	evictions  []evicted  // since the last calm
	log        []string
	violations []string
	binds      int
	evicts     int
}

func newHistory(t *testing.T) *history {
	h := &history{world: newWorld(t), pods: map[string]*stormPod{}, groups: map[string]*stormGroup{},
		nodes: map[string]*stormNode{}, gone: map[string]bool{}, outages: map[string]*outage{}, classes: map[string]int32{},
		budgets: map[string]bool{}, volumes: map[string]*stormVolume{}, claims: map[string]bool{}, deviceClaims: map[string]string{}}
	h.kube.PrependReactor("update", "persistentvolumes", h.onVolume)
	h.kube.PrependReactor("create", "pods", h.onBind)
	h.kube.PrependReactor("delete", "pods", h.onEvict)
	h.kube.PrependReactor("patch", "pods", h.onPatch)
	h.wires, h.groupWires = newWires(&h.kube.Fake, h.kube.Tracker()), newWires(&h.lock.Fake, h.lock.Tracker())
	h.kube.PrependReactor("update", "resourceclaims", h.onClaim)
	h.kube.PrependReactor("patch", "resourceclaims", h.onClaimPatch)
	return h
}

func (h *history) logf(format string, args ...any) {
	h.log = append(h.log, fmt.Sprintf(format, args...))
}

func (h *history) violated(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	h.logf("VIOLATION %s", text)
	h.violations = append(h.violations, text)
}

// onBind binds a Pod for the scheduler, or does not, and judges it.
func (h *history) onBind(action clienttesting.Action) (bool, apiruntime.Object, error) {
	if action.GetSubresource() != "binding" {
		return false, nil, nil
	}
	binding := action.(clienttesting.CreateAction).GetObject().(*corev1.Binding)
	pod := h.pods[binding.Name]
	switch {
	case pod == nil:
		return true, nil, apierrors.NewNotFound(podResource.GroupResource(), binding.Name)
	case pod.uid != binding.UID:
		return true, nil, apierrors.NewConflict(podResource.GroupResource(), binding.Name, errors.New("the UID is that of another Pod"))
	case pod.deleting || pod.node != "":
		return true, nil, apierrors.NewConflict(podResource.GroupResource(), binding.Name, errors.New("the Pod has a node or is being deleted"))
	}
	if h.isOut(pod) {
		return true, nil, apierrors.NewForbidden(podResource.GroupResource(), binding.Name, errors.New("not for a while"))
	}
	fault := bindFaults
	if len(h.faults) > 0 && pod.group != "" {
		// Of an ordinary Pod, kube-scheduler takes a lost reply for a failure and
		// gives its room away.
		fault, h.faults = h.faults[0], h.faults[1:]
	}
	switch fault {
	case bindRefused:
		h.logf("bind %s to %s: refused", pod.name, binding.Target.Name)
		h.excuse(pod.group)
		return true, nil, apierrors.NewForbidden(podResource.GroupResource(), binding.Name, errors.New("not this time"))
	case bindFailed:
		h.logf("bind %s to %s: failed", pod.name, binding.Target.Name)
		return true, nil, apierrors.NewInternalError(errors.New("etcd has no leader"))
	}
	h.setNode(pod, binding.Target.Name)
	h.binds++
	h.logf("bind %s to %s", pod.name, pod.node)
	h.judgeBind(pod)
	h.bound = append(h.bound, *pod)
	h.touch(pod.group)
	if h.nodes[pod.node] == nil {
		h.excuse(pod.group)
		h.deletePodGracefully(pod, time.Millisecond) // the garbage collector of Pods
	}
	if fault == bindReplyLost {
		return true, nil, apierrors.NewTimeoutError("the reply was lost", 1)
	}
	return true, binding, nil
}

// judgeBind holds a binding against what must hold at any moment.
func (h *history) judgeBind(pod *stormPod) {
	node := h.nodes[pod.node]
	if node == nil {
		if !h.gone[pod.node] {
			h.violated("%s was bound to %s, which does not exist", pod.name, pod.node)
		}
	} else if used, foreign := h.used(node.name); used > node.cpu && !foreign {
		h.violated("%s was bound to %s, which has %d of %d cores in use now", pod.name, node.name, used, node.cpu)
	}
	if v := h.volumeOf(pod.name); v != nil && v.node != pod.node {
		h.violated("%s was bound to %s, and its volume is on %s", pod.name, pod.node, v.node)
	}
	h.judgeDevice(pod)
	g := h.groups[pod.group]
	switch {
	case g == nil:
	case !g.existed:
		h.violated("%s was bound, whose PodGroup does not exist", pod.name)
	case g.most < int(g.leastMin):
		h.violated("%s was bound, but %s had at most %d members of %d", pod.name, g.Name, g.most, g.leastMin)
	}
}

// onEvict deletes a Pod for the scheduler, gracefully, and judges it.
func (h *history) onEvict(action clienttesting.Action) (bool, apiruntime.Object, error) {
	pod := h.pods[action.(clienttesting.DeleteAction).GetName()]
	if pod == nil {
		return true, nil, apierrors.NewNotFound(podResource.GroupResource(), action.(clienttesting.DeleteAction).GetName())
	}
	if err := h.compare(action.GetNamespace(), pod.name, action.(clienttesting.DeleteActionImpl).DeleteOptions.Preconditions); err != nil {
		return true, nil, err
	}
	if pod.deleting {
		return true, nil, nil
	}
	if h.evictionFaults > 0 {
		h.evictionFaults--
		h.stayed = time.Now()
		h.logf("evict %s: failed", pod.name)
		return true, nil, apierrors.NewInternalError(errors.New("etcd has no leader"))
	}
	if pod.succeeded {
		h.violated("%s was evicted, and had succeeded", pod.name)
	}
	rank, g := pod.priority, h.groups[pod.group]
	if g != nil && g.exists {
		rank = g.leastRank
	}
	h.evicts++
	h.logf("evict %s from %s", pod.name, pod.node)
	if !h.outranked(rank) && !(g != nil && (g.preempted || h.died)) {
		h.violated("%s of rank %d was evicted, but nothing above it waits", pod.name, rank)
	}
	if g != nil {
		// One that lacks its minimum already is not broken by it.
		g.broken = g.broken || h.isWhole(g)
		g.preempted = true
	}
	h.evictions = append(h.evictions, evicted{pod: *pod, rank: rank})
	h.deletePodGracefully(pod, time.Duration(len(pod.name)%4)*time.Millisecond)
	return true, nil, nil
}

// outranked says whether a Pod waits whose own or whose gang's priority is above
// rank, or waited since the last calm.
func (h *history) outranked(rank int32) bool {
	above := func(p *stormPod) bool {
		if g := h.groups[p.group]; g != nil && g.existed {
			return g.mostRank > rank
		}
		return p.group == "" && p.priority > rank
	}
	for _, p := range h.pods {
		if p.waits() && above(p) {
			return true
		}
	}
	return slices.ContainsFunc(slices.Concat(h.bound, h.departed), func(p stormPod) bool { return above(&p) })
}

// used is how many cores of a node are in use, and whether somebody else than
// the scheduler had a part in it.
func (h *history) used(node string) (cores int, foreign bool) {
	for _, p := range h.pods {
		if p.node == node && p.runs() {
			cores += p.cpu
			foreign = foreign || p.foreign
		}
	}
	return cores, foreign
}

// excuse notes that a placement of a group may have been cut short.
func (h *history) excuse(group string) {
	if g := h.groups[group]; g != nil {
		g.excused = true
	}
}

// tally counts a group's members that are placed, and those that exist.
func (h *history) tally(group string) (placed, placedPs, members int) {
	for _, p := range h.pods {
		if p.group != group || p.deleting {
			continue
		}
		members++
		if p.placed() {
			placed++
			if p.role == "ps" {
				placedPs++
			}
		}
	}
	return placed, placedPs, members
}

// isWhole says whether a group has its minimum placed.
func (h *history) isWhole(g *stormGroup) bool {
	placed, placedPs, _ := h.tally(g.Name)
	return placed >= int(g.Spec.MinMember) && placedPs >= g.minPs()
}

// touch brings what is known of a group up to date.
func (h *history) touch(group string) {
	g := h.groups[group]
	if g == nil {
		return
	}
	placed, _, members := h.tally(group)
	if placed == 0 && g.whole {
		g.whole, g.emptied = false, time.Now()
	}
	// In the mode Pod what preemption leaves of a gang goes on. So does a member whose binding was under way when the others went.
	isLeft := placed > 0 && g.Spec.DisruptionMode == schedulingv1alpha1.DisruptPod && time.Now().Equal(g.emptied)
	if g.exists && (h.isWhole(g) || isLeft) {
		g.whole = true
	}
	g.existed = g.existed || g.exists
	for _, p := range h.pods {
		if p.group == group && p.deleting && p.succeeded {
			members++ // it counts until it is gone
		}
	}
	g.most = max(g.most, members+g.unseen)
	g.leastMin = min(g.leastMin, g.Spec.MinMember)
	g.finished = h.hasFinished(g) || g.finished
	rank := h.priorityOf(g)
	g.leastRank, g.mostRank = min(g.leastRank, rank), max(g.mostRank, rank)
}

// calm forgets what is known of the time before.
func (h *history) calm() {
	clear(h.gone)
	h.bound, h.departed, h.evictions, h.faults = nil, nil, nil, nil
	h.evictionFaults = 0
	for name, g := range h.groups {
		placed, _, members := h.tally(name)
		g.existed, g.most, g.unseen, g.leastMin, g.preempted, g.broken = g.exists, members, 0, g.Spec.MinMember, false, false
		g.leastRank, g.mostRank = h.priorityOf(g), h.priorityOf(g)
		if placed == 0 || g.whole {
			g.excused = false
		}
		if !g.exists && members == 0 {
			delete(h.groups, name)
		}
	}
}

// The functions below change objects. The caller holds the lock.

func (h *history) updatePod(name string, change func(*corev1.Pod)) {
	object, err := h.kube.Tracker().Get(podResource, testNamespace, name)
	if err != nil {
		panic(err)
	}
	pod := object.(*corev1.Pod).DeepCopy()
	change(pod)
	pod.ResourceVersion = h.version()
	if err := h.kube.Tracker().Update(podResource, pod, testNamespace); err != nil {
		panic(err)
	}
}

func (h *history) setNode(pod *stormPod, node string) {
	pod.node = node
	h.updatePod(pod.name, func(p *corev1.Pod) { p.Spec.NodeName = node })
}

// deletePodGracefully has a Pod terminate after a while, or at once.
func (h *history) deletePodGracefully(pod *stormPod, grace time.Duration) {
	if pod.deleting {
		return
	}
	if pod.waits() {
		h.departed = append(h.departed, *pod)
	}
	pod.deleting = true
	h.touch(pod.group)
	remove := func() {
		if g := h.groups[pod.group]; g != nil && pod.succeeded {
			g.unseen++
		}
		delete(h.pods, pod.name)
		h.wires.bury(podResource, testNamespace, pod.name)
		if !pod.anew {
			h.removeClaim(pod.name)
		}
		h.releaseDevices(pod)
	}
	if grace == 0 {
		remove()
		return
	}
	h.leaving++
	h.updatePod(pod.name, func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: time.Now().Add(time.Minute)} })
	time.AfterFunc(grace, func() {
		h.kube.Lock()
		defer h.kube.Unlock()
		h.leaving--
		remove()
	})
}

// version is a new resource version of a Pod. kube-scheduler takes what has that of before
// for what it has seen.
func (h *history) version() string {
	h.made++
	return fmt.Sprint(h.made)
}

// onPatch gives a Pod that the scheduler patches a new version.
func (h *history) onPatch(action clienttesting.Action) (bool, apiruntime.Object, error) {
	name := action.(clienttesting.PatchAction).GetName()
	if done, object, err := h.compareUID(action); done {
		return done, object, err
	}
	if _, object, err := clienttesting.ObjectReaction(h.kube.Tracker())(action); err != nil {
		return true, object, err
	}
	h.updatePod(name, func(*corev1.Pod) {})
	object, err := h.kube.Tracker().Get(podResource, testNamespace, name)
	return true, object, err
}

// String tells the state, and the end of what led to it.
func (h *history) String() string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(h.nodes)) {
		node := h.nodes[name]
		used, _ := h.used(name)
		fmt.Fprintf(&b, "node %s in rack %s: %d of %d cores used, cordoned %t, maintained %t\n", name, node.rack, used, node.cpu, node.cordoned, node.maintained)
	}
	for _, name := range slices.Sorted(maps.Keys(h.groups)) {
		g := h.groups[name]
		placed, ps, members := h.tally(name)
		fmt.Fprintf(&b, "group %s: exists %t, priority %d, min %d (ps %d), %d placed (ps %d) of %d, Required %t, %s, whole %t, excused %t\n",
			name, g.exists, h.priorityOf(g), g.Spec.MinMember, g.minPs(), placed, ps, members, g.required(), g.Spec.DisruptionMode, g.whole, g.excused)
	}
	for _, name := range slices.Sorted(maps.Keys(h.pods)) {
		fmt.Fprintf(&b, "pod %+v\n", *h.pods[name])
	}
	const most = 150
	fmt.Fprintf(&b, "the last of %d events:\n%s\n", len(h.log), strings.Join(h.log[max(0, len(h.log)-most):], "\n"))
	return b.String()
}

// process is one life of a scheduler.
type process struct {
	mu   sync.RWMutex // held by calls that are underway
	dead atomic.Bool
	// fuse counts down the calls after which the process dies by itself: the last one is
	// done, and nobody hears of it. It never comes if it is not above 0.
	fuse atomic.Int64
	// burnt is closed when the process has died by itself.
	burnt chan struct{}
}

// begin begins a call. It returns false if the process is dead.
func (p *process) begin() bool {
	p.mu.RLock()
	if p.dead.Load() {
		p.mu.RUnlock()
		return false
	}
	if left := p.fuse.Add(-1); left == 0 {
		p.dead.Store(true)
		close(p.burnt)
	}
	return true
}

func (p *process) end() { p.mu.RUnlock() }

// die waits for the calls that the API server has, and ends all others.
func (p *process) die() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dead.Store(true)
}

// mortal is the API server as a scheduler sees it whose process may die: from
// then on nothing that it asks for is done.
type mortal struct {
	kubernetes.Interface
	process *process
}

// IsWatchListSemanticsUnSupported has informers list and then watch: the fake API
// server can't do both in one request.
func (m mortal) IsWatchListSemanticsUnSupported() bool {
	return true
}

func (m mortal) CoreV1() corev1client.CoreV1Interface {
	return mortalCore{m.Interface.CoreV1(), m.process}
}

type mortalCore struct {
	corev1client.CoreV1Interface
	process *process
}

func (m mortalCore) Pods(namespace string) corev1client.PodInterface {
	return mortalPods{m.CoreV1Interface.Pods(namespace), m.process}
}

type mortalPods struct {
	corev1client.PodInterface
	process *process
}

var errDead = errors.New("the process is dead")

// whileAlive has a request be done by a process that lives. It hears of it if it does so still.
// A request that fails takes a millisecond: kube-scheduler tries again at once, and in a bubble no
// time would pass.
func whileAlive[T any](p *process, request func() (T, error)) (T, error) {
	result, err := underway(p, request)
	if err != nil {
		time.Sleep(time.Millisecond)
	}
	return result, err
}

func underway[T any](p *process, request func() (T, error)) (T, error) {
	var none T
	if !p.begin() {
		return none, errDead
	}
	defer p.end()
	result, err := request()
	if err == nil && p.dead.Load() {
		return none, errDead
	}
	return result, err
}

func (m mortalPods) Bind(ctx context.Context, binding *corev1.Binding, opts metav1.CreateOptions) error {
	_, err := whileAlive(m.process, func() (any, error) { return nil, m.PodInterface.Bind(ctx, binding, opts) })
	return err
}

func (m mortalPods) Delete(ctx context.Context, name string, opts metav1.DeleteOptions) error {
	_, err := whileAlive(m.process, func() (any, error) { return nil, m.PodInterface.Delete(ctx, name, opts) })
	return err
}

func (m mortalPods) Patch(ctx context.Context, name string, pt types.PatchType, data []byte, opts metav1.PatchOptions, subresources ...string) (*corev1.Pod, error) {
	return whileAlive(m.process, func() (*corev1.Pod, error) {
		return m.PodInterface.Patch(ctx, name, pt, data, opts, subresources...)
	})
}
