// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/kube"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/podwatch"
)

const (
	// missingDelay is how long a Pod may be missing at least, and missingDelay and as much
	// again at most, before the API server is asked what has become of it. Of most that
	// end, the watch of ended Pods tells in milliseconds.
	missingDelay = 500 * time.Millisecond
	// arrivalDelay is how long it is waited before it is asked about those that had ended when another Pod came. Of most that
	// are gone, the watch tells in milliseconds, and if one Pod comes, so do more. It is not asked about a gang twice within missingDelay.
	arrivalDelay = 100 * time.Millisecond
	// missingDelayMax is how often it is asked again at least, while it can't be told or a
	// Pod has ended that the watch does not show.
	missingDelayMax = 30 * time.Second
	// missingTimeout is how long the API server may take to answer a question.
	missingTimeout = time.Minute
	// missingGangs is about how many gangs it is asked at most by one request, which names all
	// of them.
	missingGangs = 100
	// missingPause is how long it is left alone after a list, standbyPause how long a
	// scheduler that does not lead leaves it alone: that decides nothing, and asks only so as not
	// to remember Pods for ever that are gone. getPause is how long after a Pod was asked for by its name.
	missingPause, standbyPause, getPause = 250 * time.Millisecond, 10 * time.Minute, 10 * time.Millisecond
	// pageSize is how many Pods a list has at most, and pagesMax how many pages are read for one
	// question.
	pageSize, pagesMax = 500, 20
	// getsPerPage is how many Pods cost about as much by their names as a page does, and getsMax how
	// many of a namespace are asked for by their names before others have their turns.
	getsPerPage, getsMax = 25, 200
	// missingWorkers is of how many namespaces it is asked at once.
	missingWorkers = 4
)

// missing finds out what has become of members that are missing: it asks the API server which of them
// have ended. What that costs is in proportion to how many are missing, however many other Pods there
// are that have ended.
//
// A few Pods are got by their names. Where a label names the gang, a list that names many gangs selects
// more of them. Elsewhere, and if that list is long, namespaces take turns: again a few Pods are got by
// their names, and for many as many pages of a list of the namespace's are read as these would cost.
type missing struct {
	client kubernetes.Interface
	join   *podwatch.Join
	// begun is closed when the scheduler has begun to schedule.
	begun <-chan struct{}

	// gangs are those in question that are asked about by labels, and namespaces have others.
	gangs      workqueue.TypedRateLimitingInterface[dialect.Key]
	namespaces workqueue.TypedRateLimitingInterface[string]

	// mu is locked after the join's own lock.
	mu sync.Mutex
	// others are the gangs in question of each namespace that are not asked about by labels.
	others map[string]map[dialect.Key]bool
	// asked is when it was asked about gangs, of the last missingDelay at least.
	asked map[dialect.Key]time.Time
}

func newMissing(client kubernetes.Interface, join *podwatch.Join, begun <-chan struct{}) *missing {
	return &missing{client: client, join: join, begun: begun, others: make(map[string]map[dialect.Key]bool), asked: make(map[dialect.Key]time.Time),
		gangs: workqueue.NewTypedRateLimitingQueue(
			workqueue.NewTypedItemExponentialFailureRateLimiter[dialect.Key](missingDelay, missingDelayMax)),
		namespaces: workqueue.NewTypedRateLimitingQueue(
			workqueue.NewTypedItemExponentialFailureRateLimiter[string](missingDelay, missingDelayMax))}
}

// note notes that a Pod of a gang is missing, and whether it should be asked about soon. It does not block.
func (m *missing) note(gang dialect.Key, soon bool) {
	delay := missingDelay
	if soon {
		delay = m.soonest(gang)
	}
	if len(gang.Dialect.Labels()) > 0 {
		m.gangs.AddAfter(gang, delay)
		return
	}
	m.noteOther(gang)
	m.namespaces.AddAfter(gang.Namespace, delay)
}

// soonest is after what time it may be asked about a gang.
func (m *missing) soonest(gang dialect.Key) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return max(arrivalDelay, time.Until(m.asked[gang].Add(missingDelay)))
}

// noteAsked notes that it is being asked about gangs.
func (m *missing) noteAsked(questions []podwatch.Question) {
	now := time.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.DeleteFunc(m.asked, func(_ dialect.Key, at time.Time) bool { return now.Sub(at) > missingDelay })
	for _, question := range questions {
		m.asked[question.Gang] = now
	}
}

func (m *missing) noteOther(gang dialect.Key) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.others[gang.Namespace] == nil {
		m.others[gang.Namespace] = make(map[dialect.Key]bool)
	}
	m.others[gang.Namespace][gang] = true
}

// run asks until ctx ends.
func (m *missing) run(ctx context.Context) {
	context.AfterFunc(ctx, func() { // also if the workers notice the end first
		m.gangs.ShutDown()
		m.namespaces.ShutDown()
	})
	var workers sync.WaitGroup
	workers.Go(func() { m.askByLabels(ctx) })
	for range missingWorkers {
		workers.Go(func() { m.askByNamespace(ctx) })
	}
	workers.Wait()
}

// mayAsk waits until the API server may be asked, and says whether ctx goes on.
func (m *missing) mayAsk(ctx context.Context) bool {
	select {
	case <-m.begun:
	case <-time.After(standbyPause):
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}

// pause leaves the API server alone for a while.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// askByLabels asks one request after the other, each about all gangs whose time has come.
func (m *missing) askByLabels(ctx context.Context) {
	for m.mayAsk(ctx) {
		questions, over := m.questions()
		if over {
			return
		}
		if len(questions) == 0 {
			continue
		}
		m.noteAsked(questions)
		m.askAbout(ctx, questions)
		pause(ctx, missingPause)
	}
}

// questions waits for a gang about which it may have to be asked, and is what to ask about this
// one and those that are in the queue, too. Over says that it has ended.
func (m *missing) questions() (questions []podwatch.Question, over bool) {
	for first := true; first || m.gangs.Len() > 0 && len(questions) < missingGangs; first = false {
		gang, over := m.gangs.Get()
		if over {
			return nil, true
		}
		switch question, missing := m.join.Question(gang); {
		case !missing:
			m.gangs.Forget(gang)
		case question.Empty():
			m.gangs.AddAfter(gang, missingDelay)
		default:
			questions = append(questions, question)
		}
		m.gangs.Done(gang)
	}
	return questions, false
}

// askAbout asks what has become of the Pods of gangs that are missing. If too many have ended for a
// list, their namespaces are asked.
func (m *missing) askAbout(ctx context.Context, questions []podwatch.Question) {
	ctx, cancel := context.WithTimeout(ctx, missingTimeout)
	defer cancel()
	rest := namesOf(questions)
	ended := make(map[types.UID]*corev1.Pod)
	all, err := m.findByLabels(ctx, questions, rest, ended)
	if err != nil {
		klog.FromContext(ctx).V(2).Info("Asking which members have ended failed, trying again", "podGroups", len(questions), "reason", err.Error())
		m.answer(questions, rest, ended)
		for _, question := range questions {
			m.gangs.AddRateLimited(question.Gang)
		}
		return
	}
	if !all {
		for _, question := range questions {
			m.gangs.Forget(question.Gang)
			m.noteOther(question.Gang)
			m.namespaces.Add(question.Gang.Namespace)
		}
		return
	}
	for _, question := range questions {
		if m.join.Answer(question, among(ended, question)) {
			m.gangs.AddRateLimited(question.Gang)
		} else {
			m.gangs.Forget(question.Gang)
		}
	}
}

// answer answers questions as far as it was found out what has become of Pods, which leave the rest. It says whether
// some of these have ended, and the watch does not show it.
func (m *missing) answer(questions []podwatch.Question, rest map[types.UID]string, ended map[types.UID]*corev1.Pod) (again bool) {
	isKnown := func(uid types.UID) bool { _, unknown := rest[uid]; return !unknown }
	for _, question := range questions {
		if known := question.About(isKnown); m.join.Answer(known, among(ended, known)) {
			again = true
		}
	}
	return again
}

// findByLabels finds out which of some Pods have ended, and says whether it has found out about all. A few are
// got by their names: the API server reads each Pod of a cluster for a list of several namespaces. Those of which it
// finds out before an error are not among those any more.
func (m *missing) findByLabels(ctx context.Context, questions []podwatch.Question, of map[types.UID]string, ended map[types.UID]*corev1.Pod) (all bool, err error) {
	pages := pagesFor(of)
	if pages == 0 {
		for _, question := range questions {
			unknown := question.Names()
			err := m.get(ctx, question.Gang.Namespace, unknown, ended)
			for uid := range question.Names() {
				if _, is := unknown[uid]; !is {
					delete(of, uid)
				}
			}
			if err != nil {
				return false, err
			}
		}
		return true, nil
	}
	for _, selection := range selectionsOf(questions) {
		if all, err := m.list(ctx, selection, pages, of, ended); err != nil || !all {
			maps.DeleteFunc(of, func(uid types.UID, _ string) bool { return ended[uid] != nil })
			return false, err
		}
	}
	return true, nil
}

// askByNamespace asks about one namespace after the other.
func (m *missing) askByNamespace(ctx context.Context) {
	for m.mayAsk(ctx) {
		namespace, over := m.namespaces.Get()
		if over {
			return
		}
		m.askIn(ctx, namespace)
		m.namespaces.Done(namespace)
	}
}

// askIn asks what has become of Pods of a namespace that are missing.
func (m *missing) askIn(ctx context.Context, namespace string) {
	questions, later := m.questionsIn(namespace)
	if later {
		m.namespaces.AddAfter(namespace, missingDelay)
	}
	if len(questions) == 0 {
		m.namespaces.Forget(namespace)
		return
	}
	m.noteAsked(questions)
	ctx, cancel := context.WithTimeout(ctx, missingTimeout)
	defer cancel()
	rest := namesOf(questions)
	ended := make(map[types.UID]*corev1.Pod)
	err := m.find(ctx, namespace, rest, ended)
	again := m.answer(questions, rest, ended)
	switch {
	case err != nil:
		klog.FromContext(ctx).V(2).Info("Asking which members have ended failed, trying again", "namespace", namespace, "reason", err.Error())
		m.namespaces.AddRateLimited(namespace)
	case len(rest) > 0:
		m.namespaces.Forget(namespace)
		m.namespaces.AddAfter(namespace, missingPause) // others have their turns
	case again:
		m.namespaces.AddRateLimited(namespace)
	default:
		m.namespaces.Forget(namespace)
	}
}

// questionsIn are what to ask now about gangs of a namespace. Later says that there are gangs about which
// there is nothing to ask yet.
func (m *missing) questionsIn(namespace string) (questions []podwatch.Question, later bool) {
	m.mu.Lock()
	gangs := m.others[namespace]
	delete(m.others, namespace)
	m.mu.Unlock()
	for gang := range gangs {
		question, missing := m.join.Question(gang)
		if !missing {
			continue
		}
		m.noteOther(gang)
		if question.Empty() {
			later = true
		} else {
			questions = append(questions, question)
		}
	}
	return questions, later
}

// find finds out which Pods of a namespace have ended, in time for others to have their turns. Those of
// which it finds out leave the rest, and those of them that have ended come to the ended ones.
func (m *missing) find(ctx context.Context, namespace string, rest map[types.UID]string, ended map[types.UID]*corev1.Pod) error {
	if pages := pagesFor(rest); pages > 0 {
		all, err := m.list(ctx, selection{namespace: namespace}, pages, rest, ended)
		for uid := range rest {
			if _, found := ended[uid]; found || all {
				delete(rest, uid)
			}
		}
		if err != nil {
			return err
		}
		pause(ctx, missingPause)
	}
	return m.get(ctx, namespace, rest, ended)
}

// get gets Pods of a namespace by their names, in time for others to have their turns. Those that it has got
// leave the rest, and those of them that have ended come to the ended ones.
func (m *missing) get(ctx context.Context, namespace string, rest map[types.UID]string, ended map[types.UID]*corev1.Pod) error {
	gets := 0
	for uid, name := range rest {
		if gets == getsMax {
			return nil
		}
		gets++
		// Without a resource version, this is the newest state.
		pod, err := m.client.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
		delete(rest, uid)
		if err == nil && pod.UID == uid && hasEnded(pod) {
			ended[uid] = slim(pod)
		}
		pause(ctx, getPause)
	}
	return nil
}

// pagesFor is how many pages may be read to find out about Pods: as many as cost no more than to get
// each of them.
func pagesFor(pods map[types.UID]string) int {
	return min(len(pods)/getsPerPage, pagesMax)
}

// hasEnded says whether a Pod has ended.
func hasEnded(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// slim is a Pod without what nobody reads.
func slim(pod *corev1.Pod) *corev1.Pod {
	pod.ManagedFields = nil
	return pod
}

// namesOf are the names of the Pods in question, by UID.
func namesOf(questions []podwatch.Question) map[types.UID]string {
	names := make(map[types.UID]string)
	for _, question := range questions {
		for uid, name := range question.Names() {
			names[uid] = name
		}
	}
	return names
}

// among are those in question of some Pods.
func among(ended map[types.UID]*corev1.Pod, question podwatch.Question) []*corev1.Pod {
	var pods []*corev1.Pod
	for uid := range question.Names() {
		if pod := ended[uid]; pod != nil {
			pods = append(pods, pod)
		}
	}
	return pods
}

// selection selects ended Pods: in a namespace, if that is not empty, and with one of some values
// of a label, if that is not empty.
type selection struct {
	namespace, label string
	names            sets.Set[string]
}

// options are those of a list of the Pods that are selected, page by page.
func (s selection) options() metav1.ListOptions {
	// Without a resource version, this is the newest state.
	options := metav1.ListOptions{FieldSelector: kube.EndedPods, Limit: pageSize}
	if s.label != "" {
		options.LabelSelector = fmt.Sprintf("%s in (%s)", s.label, strings.Join(sets.List(s.names), ","))
	}
	return options
}

// selectionsOf are as few as select the Pods of all gangs in question by labels: one for each label.
func selectionsOf(questions []podwatch.Question) []selection {
	var all []selection
	for _, question := range questions {
		gang := question.Gang
		for _, label := range gang.Dialect.Labels() {
			i := slices.IndexFunc(all, func(s selection) bool { return s.label == label })
			if i < 0 {
				all = append(all, selection{namespace: gang.Namespace, label: label, names: sets.New[string]()})
				i = len(all) - 1
			}
			if all[i].namespace != gang.Namespace {
				all[i].namespace = metav1.NamespaceAll
			}
			all[i].names.Insert(gang.Name)
		}
	}
	return all
}

// list finds those of some Pods among the ones that are selected and have ended, on that number of pages at
// most, and says whether these were all pages. It keeps no others.
func (m *missing) list(ctx context.Context, s selection, pages int, of map[types.UID]string, ended map[types.UID]*corev1.Pod) (all bool, err error) {
	options := s.options()
	for page := 1; ; page++ {
		list, err := m.client.CoreV1().Pods(s.namespace).List(ctx, options)
		if err != nil {
			return false, err
		}
		for i := range list.Items {
			if pod := &list.Items[i]; of[pod.UID] != "" {
				ended[pod.UID] = slim(pod.DeepCopy()) // not the page with it
			}
		}
		if list.Continue == "" {
			return true, nil
		}
		if page == pages {
			return false, nil
		}
		options.Continue = list.Continue
		pause(ctx, missingPause)
	}
}
