// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	clienttesting "k8s.io/client-go/testing"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/gangs"
)

// asked is what is listed of Pods that have ended, and of how many gangs, and how many Pods are got by their
// names, in a bubble of synctest.
type asked struct {
	requests, gets int
	gangs          []int
}

// lose has the only member be deleted outright of each of n gangs, in a number of namespaces, and
// watches what is asked about them.
func lose(t *testing.T, n, namespaces int, begun <-chan struct{}) (*bench, *asked) {
	b, client, of := newBench(), fake.NewSimpleClientset(), &asked{}
	client.PrependReactor("get", "pods", func(clienttesting.Action) (bool, apiruntime.Object, error) {
		of.gets++
		return false, nil, nil
	})
	client.PrependReactor("list", "pods", func(action clienttesting.Action) (bool, apiruntime.Object, error) {
		of.requests++
		named, _ := action.(clienttesting.ListAction).GetListRestrictions().Labels.Requirements()
		of.gangs = append(of.gangs, len(named[0].ValuesUnsorted()))
		return false, nil, nil
	})
	m := newMembers(b.Gangs, client, begun)
	pods := m.living()
	for i := range n {
		pod := makePod(fmt.Sprintf("member-%d", i), inGroup(fmt.Sprintf("gang-%d", i)), onNode("node"))
		pod.Namespace = fmt.Sprintf("ns-%d", i%namespaces)
		pods.OnAdd(pod, true)
		pods.OnDelete(pod)
	}
	m.runUntilTheEnd(t)
	return b, of
}

// runUntilTheEnd asks until the test ends.
func (m *members) runUntilTheEnd(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		m.missing.run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
}

// left is how many gangs are known that have lost their only member.
func (b *bench) left(t *testing.T) int {
	dump, err := gangs.DumpOf(b.Gangs)
	if err != nil {
		t.Fatal(err)
	}
	return len(dump.Gangs)
}

// TestOneRequestAsksAboutManyGangs: nodes were lost, and with them members of many gangs.
func TestOneRequestAsksAboutManyGangs(t *testing.T) {
	for name, namespaces := range map[string]int{"of one namespace": 1, "of many": 50} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begun := make(chan struct{})
				close(begun)
				b, asked := lose(t, 250, namespaces, begun)
				time.Sleep(2 * missingDelay)
				synctest.Wait()
				if asked.requests != 1 {
					t.Errorf("%d requests are made at once, want one after the other", asked.requests)
				}
				time.Sleep(10 * missingPause)
				synctest.Wait()
				if asked.requests != 3 {
					t.Errorf("250 gangs take %d requests, about %v of them", asked.requests, asked.gangs)
				}
				if left := b.left(t); left > 0 {
					t.Errorf("%d gangs have a member still that is gone", left)
				}
			})
		})
	}
}

// TestAFewMissingMembersCostNoList of a cluster: they are got by their names, also if they are of gangs of
// several namespaces.
func TestAFewMissingMembersCostNoList(t *testing.T) {
	for name, namespaces := range map[string]int{"of one namespace": 1, "of two": 2} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begun := make(chan struct{})
				close(begun)
				b, asked := lose(t, 2, namespaces, begun)
				time.Sleep(3 * missingDelay)
				synctest.Wait()
				if left := b.left(t); left > 0 || asked.requests != 0 || asked.gets != 2 {
					t.Errorf("two Pods cost %d lists, and are got %d times; %d gangs have one still that is gone", asked.requests, asked.gets, left)
				}
			})
		})
	}
}

// TestASchedulerThatDoesNotLeadHardlyAsks what has become of members: it decides nothing by that.
func TestASchedulerThatDoesNotLeadHardlyAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := make(chan struct{})
		b, asked := lose(t, 5, 1, begun)
		time.Sleep(standbyPause - time.Second)
		synctest.Wait()
		if asked.requests+asked.gets > 0 {
			t.Errorf("it has asked %d times", asked.requests+asked.gets)
		}
		time.Sleep(2 * standbyPause)
		synctest.Wait()
		if left := b.left(t); left > 0 || asked.requests != 0 || asked.gets != 5 {
			t.Errorf("it has asked %d times for lists and %d times for one of 5 Pods, and remembers %d gangs", asked.requests, asked.gets, left)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		begun := make(chan struct{})
		b, _ := lose(t, 5, 1, begun)
		time.Sleep(time.Minute)
		close(begun)
		time.Sleep(2 * missingDelay)
		synctest.Wait()
		if left := b.left(t); left > 0 {
			t.Errorf("it leads, and remembers %d gangs whose members are gone", left)
		}
	})
}

// archive is an API server with Pods that have ended, in a bubble of synctest. It counts what is read.
type archive struct {
	client *fake.Clientset
	mu     sync.Mutex
	// ended is how many have ended in each namespace, beside those that the client has.
	ended map[string]int
	// lists, read and gets are how many lists were made, of how many Pods, and how many Pods were got
	// by their names; unbounded how many lists were without a limit.
	lists, read, gets, unbounded int
	// slow is a namespace whose lists take for ever.
	slow string
	// late is how long it takes to get a Pod.
	late time.Duration
	// fails has each request fail.
	fails bool
}

func newArchive(ended map[string]int) *archive {
	a := &archive{client: fake.NewSimpleClientset(), ended: ended}
	a.client.PrependReactor("list", "pods", func(action clienttesting.Action) (bool, apiruntime.Object, error) {
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.lists++; a.fails {
			return true, nil, errors.New("no answer")
		}
		options := action.(clienttesting.ListActionImpl).ListOptions
		begin, _ := strconv.Atoi(options.Continue)
		end := a.ended[action.GetNamespace()]
		if options.Limit == 0 {
			a.unbounded++
		} else {
			end = min(end, begin+int(options.Limit))
		}
		list := &corev1.PodList{}
		for i := begin; i < end; i++ {
			list.Items = append(list.Items, *podOfVolcano(action.GetNamespace(), fmt.Sprintf("ended-%d", i), corev1.PodSucceeded))
		}
		if a.read += len(list.Items); end < a.ended[action.GetNamespace()] {
			list.Continue = strconv.Itoa(end)
		}
		return true, list, nil
	})
	a.client.PrependReactor("get", "pods", func(action clienttesting.Action) (bool, apiruntime.Object, error) {
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.gets++; a.fails {
			return true, nil, errors.New("no answer")
		}
		var i int
		if _, err := fmt.Sscanf(action.(clienttesting.GetAction).GetName(), "ended-%d", &i); err == nil && i < a.ended[action.GetNamespace()] {
			return true, podOfVolcano(action.GetNamespace(), fmt.Sprintf("ended-%d", i), corev1.PodSucceeded), nil
		}
		return false, nil, nil
	})
	return a
}

// withPods is a client with other Pods, by namespace.
type withPods struct {
	kubernetes.Interface
	of func(namespace string, pods corev1client.PodInterface) corev1client.PodInterface
}

// IsWatchListSemanticsUnSupported is as in timely.
func (withPods) IsWatchListSemanticsUnSupported() bool { return true }

func (w withPods) CoreV1() corev1client.CoreV1Interface {
	return withPodsCore{w.Interface.CoreV1(), w}
}

type withPodsCore struct {
	corev1client.CoreV1Interface
	with withPods
}

func (w withPodsCore) Pods(namespace string) corev1client.PodInterface {
	return w.with.of(namespace, w.CoreV1Interface.Pods(namespace))
}

// slowly are Pods whose lists take for ever in the slow namespace, and which are got late.
func (a *archive) slowly(namespace string, pods corev1client.PodInterface) corev1client.PodInterface {
	if a.late > 0 {
		pods = latePods{pods, a.late}
	}
	if namespace == a.slow {
		pods = slowPods{pods}
	}
	return pods
}

type latePods struct {
	corev1client.PodInterface
	late time.Duration
}

func (p latePods) Get(ctx context.Context, name string, options metav1.GetOptions) (*corev1.Pod, error) {
	select {
	case <-time.After(p.late):
		return p.PodInterface.Get(ctx, name, options)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

type slowPods struct{ corev1client.PodInterface }

func (slowPods) List(ctx context.Context, _ metav1.ListOptions) (*corev1.PodList, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// podOfVolcano is a Pod on a node that names a group of Volcano's.
func podOfVolcano(namespace, name string, phase corev1.PodPhase) *corev1.Pod {
	pod := makePod(name, onNode("node"))
	pod.Namespace, pod.UID, pod.Status.Phase = namespace, types.UID("uid-"+namespace+"-"+name), phase
	pod.Annotations = map[string]string{"scheduling.k8s.io/group-name": "gang"}
	pod.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "m"}}
	return pod
}

// loses has members of Volcano's gangs not be shown any more, and begins to ask.
func (a *archive) loses(t *testing.T, pods ...*corev1.Pod) *bench {
	b, begun := newBench(dialect.Volcano), make(chan struct{})
	close(begun)
	m := newMembers(b.Gangs, withPods{a.client, a.slowly}, begun)
	living := m.living()
	for _, pod := range pods {
		pod = pod.DeepCopy()
		pod.Status.Phase = corev1.PodRunning
		living.OnAdd(pod, true)
		living.OnDelete(pod)
	}
	m.runUntilTheEnd(t)
	return b
}

// members are n Pods of a gang in a namespace, named after what becomes of them.
func membersOfVolcano(namespace, what string, n int) []*corev1.Pod {
	var pods []*corev1.Pod
	for i := range n {
		pods = append(pods, podOfVolcano(namespace, fmt.Sprintf("%s-%d", what, i), corev1.PodRunning))
	}
	return pods
}

// remembered is how many members are known, and of how many it is known that they have succeeded.
func (b *bench) remembered(t *testing.T) (all, succeeded int) {
	dump, err := gangs.DumpOf(b.Gangs)
	if err != nil {
		t.Fatal(err)
	}
	for _, gang := range dump.Gangs {
		for _, member := range gang.Members {
			if all++; member.Pod.Status.Phase == corev1.PodSucceeded {
				succeeded++
			}
			if len(member.Pod.ManagedFields) > 0 && strings.HasPrefix(member.Pod.Name, "ended") && member.Pod.Status.Phase == corev1.PodSucceeded {
				t.Errorf("of %s is kept what nobody reads", member.Pod.Name)
			}
		}
	}
	return all, succeeded
}

// TestDeletedMembersCostWhatTheyAre, and not what else has ended in their namespace, if no label names
// their gang. Those that have ended count, and the others are known to be gone.
func TestDeletedMembersCostWhatTheyAre(t *testing.T) {
	for name, tc := range map[string]struct {
		ended           int // in the namespace
		gone, succeeded int // of the members
		after           time.Duration
		wantLists       int
		wantRead        int
		wantGets        int
	}{
		"one, where a hundred thousand have ended":       {ended: 100_000, gone: 1, after: 3 * missingDelay, wantGets: 1},
		"some, one of which has ended":                   {ended: 100_000, gone: 10, succeeded: 1, after: 3 * missingDelay, wantGets: 11},
		"a gang, where few have ended":                   {ended: 300, gone: 200, succeeded: 10, after: 3 * missingDelay, wantLists: 1, wantRead: 300},
		"a gang, where some have ended":                  {ended: 1200, gone: 200, succeeded: 10, after: 4 * missingDelay, wantLists: 3, wantRead: 1200},
		"a gang, where a hundred thousand have ended":    {ended: 100_000, gone: 100, after: 10 * missingDelay, wantLists: 4, wantRead: 2000, wantGets: 100},
		"a large gang, of which some have ended and are": {ended: 100_000, gone: 490, succeeded: 10, after: time.Minute, wantLists: 20 + 11 + 3, wantRead: 17000, wantGets: 490},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := newArchive(map[string]int{"ns": tc.ended})
				b := a.loses(t, append(membersOfVolcano("ns", "gone", tc.gone), membersOfVolcano("ns", "ended", tc.succeeded)...)...)
				time.Sleep(tc.after)
				synctest.Wait()
				a.mu.Lock()
				defer a.mu.Unlock()
				if all, succeeded := b.remembered(t); all != tc.succeeded || succeeded != tc.succeeded {
					t.Errorf("%d members are known, %d of which have succeeded; want %d", all, succeeded, tc.succeeded)
				}
				if tc.succeeded > 0 { // it is asked again, until the watch of ended Pods shows them
					if a.lists < tc.wantLists || a.gets < tc.wantGets || a.lists > 2*tc.wantLists+2 || a.gets > 2*tc.wantGets+tc.succeeded*8 {
						t.Errorf("%d lists are made and %d Pods got, want %d and %d", a.lists, a.gets, tc.wantLists, tc.wantGets)
					}
				} else if a.lists != tc.wantLists || a.read != tc.wantRead || a.gets != tc.wantGets {
					t.Errorf("%d lists of %d Pods are made and %d Pods got, want %d of %d, and %d", a.lists, a.read, a.gets, tc.wantLists, tc.wantRead, tc.wantGets)
				}
				if a.unbounded > 0 {
					t.Errorf("%d lists have no limit", a.unbounded)
				}
			})
		})
	}
}

// TestMembersThatAreLostOneAfterTheOtherAreAllFound: it is asked about one gang of a namespace when the
// member of another has just gone.
func TestMembersThatAreLostOneAfterTheOtherAreAllFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newArchive(nil)
		b, begun := newBench(dialect.Volcano), make(chan struct{})
		close(begun)
		m := newMembers(b.Gangs, a.client, begun)
		living := m.living()
		m.runUntilTheEnd(t)
		for i := range 20 {
			pod := podOfVolcano("ns", fmt.Sprintf("gone-%d", i), corev1.PodRunning)
			pod.Annotations["scheduling.k8s.io/group-name"] = fmt.Sprintf("gang-%d", i)
			living.OnAdd(pod, true)
			living.OnDelete(pod)
			time.Sleep(missingDelay / 3)
		}
		time.Sleep(4 * missingDelay)
		synctest.Wait()
		if all, _ := b.remembered(t); all > 0 {
			t.Errorf("%d members are known that are gone", all)
		}
	})
}

// TestANamespaceThatAnswersSlowlyKeepsNoOtherWaiting for what has become of members.
func TestANamespaceThatAnswersSlowlyKeepsNoOtherWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newArchive(nil)
		a.slow = "slow"
		b := a.loses(t, append(membersOfVolcano("slow", "gone", 100), membersOfVolcano("other", "gone", 1)...)...)
		time.Sleep(3 * missingDelay)
		synctest.Wait()
		if all, _ := b.remembered(t); all != 100 {
			t.Errorf("%d members are known, want the 100 of the slow namespace", all)
		}
	})
}

// TestWhatIsKnownOfMissingMembersIsKept though there is no time to ask about all of them.
func TestWhatIsKnownOfMissingMembersIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newArchive(nil)
		a.late = 4 * time.Second
		b, begun := newBench(), make(chan struct{})
		close(begun)
		m := newMembers(b.Gangs, withPods{a.client, a.slowly}, begun)
		living := m.living()
		for i := range getsPerPage - 1 {
			pod := makePod(fmt.Sprintf("gone-%d", i), inGroup("gang"), onNode("node"))
			living.OnAdd(pod, true)
			living.OnDelete(pod)
		}
		m.runUntilTheEnd(t)
		time.Sleep(2*missingTimeout + missingDelayMax)
		synctest.Wait()
		if left := b.left(t); left > 0 {
			t.Error("members are known still, and they are gone")
		}
	})
}

// TestAnAPIServerThatHasNoAnswerIsAskedSeldom, and never for each member.
func TestAnAPIServerThatHasNoAnswerIsAskedSeldom(t *testing.T) {
	for _, n := range []int{5, 100} {
		synctest.Test(t, func(t *testing.T) {
			a := newArchive(nil)
			a.fails = true
			b := a.loses(t, membersOfVolcano("ns", "gone", n)...)
			time.Sleep(5 * time.Minute)
			synctest.Wait()
			a.mu.Lock()
			if requests := a.lists + a.gets; requests < 10 || requests > 20 {
				t.Errorf("it is asked %d times in five minutes about %d members", requests, n)
			}
			a.fails = false
			a.mu.Unlock()
			time.Sleep(missingDelayMax)
			synctest.Wait()
			if all, _ := b.remembered(t); all > 0 {
				t.Errorf("%d members are known that are gone", all)
			}
		})
	}
}

// TestAGangWithManyThatHaveEndedCostsOthersNoLists: its Pods have a label by which lists select, and
// there are more of them than a list may have. They are asked for by their names.
func TestAGangWithManyThatHaveEndedCostsOthersNoLists(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newArchive(map[string]int{"ns": 100_000})
		b, begun := newBench(), make(chan struct{})
		close(begun)
		m := newMembers(b.Gangs, a.client, begun)
		living := m.living()
		for i := range getsPerPage {
			pod := makePod(fmt.Sprintf("gone-%d", i), inGroup("gang"), onNode("node"))
			living.OnAdd(pod, true)
			living.OnDelete(pod)
		}
		m.runUntilTheEnd(t)
		time.Sleep(6 * missingDelay)
		synctest.Wait()
		if left := b.left(t); left > 0 {
			t.Error("its members are known still, and they are gone")
		}
		if a.mu.Lock(); a.read != 2*pageSize || a.gets != getsPerPage {
			t.Errorf("%d Pods are read in lists and %d got, want %d and %d", a.read, a.gets, 2*pageSize, getsPerPage)
		}
		a.mu.Unlock()
	})
}

// TestWhoComesHasThoseAskedAboutSoonThatHadEnded, and as many as may come have them asked about twice a second.
func TestWhoComesHasThoseAskedAboutSoonThatHadEnded(t *testing.T) {
	ofVolcano := func(pod *corev1.Pod) { pod.Annotations = map[string]string{"scheduling.k8s.io/group-name": "gang"} }
	ofLockstep := func(pod *corev1.Pod) { pod.Labels = map[string]string{schedulingv1alpha1.LabelPodGroup: "gang"} }
	for name, tc := range map[string]struct {
		names func(*corev1.Pod)
		every time.Duration
	}{
		"by a label, many":       {ofLockstep, 10 * time.Millisecond},
		"by a label, some":       {ofLockstep, arrivalDelay + 30*time.Millisecond},
		"by an annotation, many": {ofVolcano, 10 * time.Millisecond},
		"by an annotation, some": {ofVolcano, arrivalDelay + 30*time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, b, begun := newArchive(nil), newBench(dialect.Volcano), make(chan struct{})
				close(begun)
				m := newMembers(b.Gangs, a.client, begun)
				m.runUntilTheEnd(t)
				member := func(name, node string, phase corev1.PodPhase) *corev1.Pod {
					pod := makePod(name, onNode(node))
					tc.names(pod)
					pod.Status.Phase = phase
					return pod
				}
				succeeded := member("succeeded", "node", corev1.PodSucceeded)
				if err := a.client.Tracker().Add(succeeded); err != nil {
					t.Fatal(err)
				}
				m.ended().OnAdd(succeeded, true)
				inDoubt := func() (in bool) {
					dump, err := gangs.DumpOf(b.Gangs)
					if err != nil {
						t.Fatal(err)
					}
					for _, gang := range dump.Gangs {
						in = in || gang.Members[succeeded.UID].Missing
					}
					return in
				}
				gets := func() int {
					synctest.Wait()
					a.mu.Lock()
					defer a.mu.Unlock()
					return a.gets
				}
				living := m.living()
				living.OnAdd(member("first", "", corev1.PodPending), true)
				if time.Sleep(time.Second); gets() > 0 || inDoubt() {
					t.Error("who was there at the start has it doubted that another one is")
				}
				living.OnAdd(member("second", "", corev1.PodPending), false)
				if !inDoubt() {
					t.Error("it is not doubted whether somebody is there who had ended before another one came")
				}
				if time.Sleep(2 * arrivalDelay); gets() != 1 || inDoubt() {
					t.Errorf("after %v it is asked %d times, and doubted: %t", 2*arrivalDelay, gets(), inDoubt())
				}
				const lasts = 10 * time.Second
				for i := range int(lasts / tc.every) {
					living.OnAdd(member(fmt.Sprint("more-", i), "", corev1.PodPending), false)
					time.Sleep(tc.every)
				}
				if n, most := gets(), 2+int(lasts/missingDelay); n < most-5 || n > most {
					t.Errorf("it is asked %d times in %v, want about %d", n, lasts, most)
				}
				if time.Sleep(2 * missingDelay); inDoubt() {
					t.Error("it is doubted still, and nobody comes any more")
				}
			})
		})
	}
}
