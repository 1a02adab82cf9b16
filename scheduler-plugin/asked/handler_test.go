// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package asked

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/podgroup"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/answers"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/whatif"
)

// grants are what a user may do, as "verb resource namespace"; the namespace of all is empty, and resources of other
// tools have their group: "podgroups.scheduling.volcano.sh".
type grants map[string]bool

func (g grants) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	if a.GetAPIGroup() != "" && a.GetAPIGroup() != schedulingv1alpha1.GroupName && a.GetVerb() == "list" {
		if g[strings.TrimSpace("list "+a.GetResource()+"."+a.GetAPIGroup()+" "+a.GetNamespace())] {
			return authorizer.DecisionAllow, "", nil
		}
		return authorizer.DecisionNoOpinion, "", nil
	}
	if g[strings.TrimSpace(a.GetVerb()+" "+a.GetResource()+" "+a.GetNamespace())] {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, "", nil
}

// picture is a node with two CPUs, which a Pod of namespace "other" has; and the gangs team/train, which
// outranks that, and other/rest, which do not run.
func picture() (*whatif.Snapshot, error) {
	s := &whatif.Snapshot{Now: time.Now(), Known: map[dialect.Key]whatif.Known{}}
	s.Nodes = []*corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "node"}, Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("2"), corev1.ResourcePods: resource.MustParse("10")}}}}
	add := func(namespace, group, name, node string, priority int32) {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(name)},
			Spec: corev1.PodSpec{NodeName: node, Priority: &priority, Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}}}}}}
		if group != "" {
			pod.Labels = map[string]string{schedulingv1alpha1.LabelPodGroup: group}
			s.Groups = append(s.Groups, &dialect.Group{Key: dialect.Key{Namespace: namespace, Name: group}, UID: types.UID(group),
				Spec: dialect.Spec{Minimum: podgroup.Minimum{Members: 1}}})
		}
		s.Pods = append(s.Pods, pod)
	}
	add("other", "", "victim", "node", 0)
	add("team", "train", "train-0", "", 5)
	add("other", "rest", "rest-0", "", 0)
	return s, nil
}

// ask asks as a user who may do some things.
func ask(h http.Handler, method, path, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r = r.WithContext(request.WithUser(r.Context(), &user.DefaultInfo{Name: "someone"}))
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestOnlyWhoMayReadIsAnswered(t *testing.T) {
	team := grants{"get podgroups team": true, "list podgroups team": true}
	tests := map[string]struct {
		may                grants
		method, path, body string
		want               int
		wantIn, wantNotIn  string
	}{
		"a stranger learns nothing of a gang": {method: "GET", path: "/lockstep/v1/why/team/train", want: 403, wantNotIn: "room"},
		"a stranger does not learn whether a gang is there": {
			method: "GET", path: "/lockstep/v1/why/team/none", want: 403, wantNotIn: "there is no"},
		"who may get a gang learns why it waits, and of Pods of others their number": {
			may: team, method: "GET", path: "/lockstep/v1/why/team/train", want: 200, wantIn: `"hiddenVictims":1`, wantNotIn: "victim\""},
		"who may list Pods learns whom it would evict": {
			may:    grants{"get podgroups team": true, "list pods other": true},
			method: "GET", path: "/lockstep/v1/why/team/train", want: 200, wantIn: `"pod":"victim"`},
		"a gang that is not there":           {may: team, method: "GET", path: "/lockstep/v1/why/team/none", want: 200, wantIn: `"reason":"NotFound"`},
		"the line names what may be listed":  {may: team, method: "GET", path: "/lockstep/v1/line", want: 200, wantIn: `"others":1`, wantNotIn: "rest"},
		"the line of another namespace":      {may: team, method: "GET", path: "/lockstep/v1/line?namespace=other", want: 403},
		"the line of one's own namespace":    {may: team, method: "GET", path: "/lockstep/v1/line?namespace=team", want: 200, wantIn: "train"},
		"a question about another namespace": {may: team, method: "POST", path: "/lockstep/v1/simulate", body: `{"namespace":"other","name":"rest"}`, want: 403},
		"without a gang of another namespace": {
			may: team, method: "POST", path: "/lockstep/v1/simulate", body: `{"namespace":"team","name":"train","without":["other/rest"]}`, want: 403},
		"nodes like one, for somebody who may not list nodes": {
			may: team, method: "POST", path: "/lockstep/v1/simulate", body: `{"namespace":"team","name":"train","addNodes":[{"like":"node","count":1}]}`, want: 403},
		"nodes like one, for somebody who may": {
			may:    grants{"get podgroups team": true, "list nodes": true},
			method: "POST", path: "/lockstep/v1/simulate", body: `{"namespace":"team","name":"train","addNodes":[{"like":"node","count":1}]}`,
			want: 200, wantIn: "new-node-1"},
		"a gang that is not there yet": {may: team, method: "POST", path: "/lockstep/v1/simulate", want: 200, wantIn: "there is room for 0 of the 2",
			body: `{"namespace":"team","name":"new","gang":{"spec":{"minMember":2},"roles":[{"name":"w","count":2,"template":{"spec":{"containers":[{"name":"c","resources":{"requests":{"cpu":"1"}}}]}}}]}}`},
		"too many Pods": {may: team, method: "POST", path: "/lockstep/v1/simulate", want: 400, wantIn: "10000",
			body: `{"namespace":"team","name":"new","gang":{"spec":{"minMember":2},"roles":[{"count":9999},{"count":2}]}}`},
		"a gang that nobody has":     {may: team, method: "POST", path: "/lockstep/v1/simulate", body: `{"namespace":"team","name":"none"}`, want: 404},
		"a question without a name":  {may: team, method: "POST", path: "/lockstep/v1/simulate", body: `{"namespace":"team"}`, want: 400, wantIn: "name"},
		"a question that is no JSON": {may: team, method: "POST", path: "/lockstep/v1/simulate", body: `{`, want: 400},
		"a quantity that takes for ever to read": {may: team, method: "POST", path: "/lockstep/v1/simulate", want: 400,
			body: `{"namespace":"team","name":"new","gang":{"spec":{"minMember":1,"minResources":{"cpu":"1e99999999"}}}}`},
		"a question that is too large": {may: team, method: "POST", path: "/lockstep/v1/simulate", body: `{"name":"` + strings.Repeat("x", maxBody) + `"}`, want: 400},
		"a question of many values": {may: team, method: "POST", path: "/lockstep/v1/simulate", want: 400, wantIn: "JSON values",
			body: `{"namespace":"team","name":"new","gang":{"roles":[` + strings.Repeat("{},", maxValues/2) + `{}]}}`},
		"a gang of five topologies": {may: team, method: "POST", path: "/lockstep/v1/simulate", want: 400, wantIn: "at most 4",
			body: `{"namespace":"team","name":"new","gang":{"spec":{"minMember":1,"topology":[` + strings.Repeat(`{"key":"rack","mode":"Required"},`, 4) + `{"key":"row","mode":"Required"}]}}}`},
		"a change": {may: team, method: "DELETE", path: "/lockstep/v1/why/team/train", want: 405},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := ask(New(picture, tc.may), tc.method, tc.path, tc.body)
			if got.Code != tc.want || !strings.Contains(got.Body.String(), tc.wantIn) || tc.wantNotIn != "" && strings.Contains(got.Body.String(), tc.wantNotIn) {
				t.Errorf("%d %s, want %d with %q and without %q", got.Code, got.Body, tc.want, tc.wantIn, tc.wantNotIn)
			}
		})
	}
	if got := httptest.NewRecorder(); true {
		New(picture, team).ServeHTTP(got, httptest.NewRequest("GET", "/lockstep/v1/line", nil))
		if got.Code != http.StatusUnauthorized {
			t.Errorf("somebody who is not known is answered %d", got.Code)
		}
	}
}

func TestASchedulerThatDoesNotLeadSaysSo(t *testing.T) {
	h := New(func() (*whatif.Snapshot, error) { return nil, errors.New("it does not lead") }, grants{"get podgroups team": true})
	if got := ask(h, "GET", "/lockstep/v1/why/team/train", ""); got.Code != http.StatusServiceUnavailable || !strings.Contains(got.Body.String(), "lead") {
		t.Errorf("%d %s", got.Code, got.Body)
	}
}

func TestAnAnswerThatFailsEndsNothing(t *testing.T) {
	h := New(func() (*whatif.Snapshot, error) { panic("fault") }, grants{"get podgroups team": true})
	for range 2 {
		if got := ask(h, "GET", "/lockstep/v1/why/team/train", ""); got.Code != http.StatusInternalServerError {
			t.Errorf("%d %s", got.Code, got.Body)
		}
	}
}

// TestWhatPodsOfAGangAreLikeIsForWhoMayListThem: a PodGroup says how many there are, and not which image one lacks.
func TestWhatPodsOfAGangAreLikeIsForWhoMayListThem(t *testing.T) {
	lacksImage := func() (*whatif.Snapshot, error) {
		s, err := picture()
		for _, pod := range s.Pods {
			if pod.Name == "train-0" {
				pod.Spec.NodeName, pod.Status.Phase = "node", corev1.PodPending
				pod.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{
					Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "registry.example.com/secret is not there"}}}}
			}
		}
		return s, err
	}
	for who, may := range map[string]grants{"who may get the gang": {"get podgroups team": true}, "who may list its Pods": {"get podgroups team": true, "list pods team": true}} {
		got := ask(New(lacksImage, may), "GET", "/lockstep/v1/why/team/train", "").Body.String()
		mayList := may["list pods team"]
		if !strings.Contains(got, "ImagePullBackOff") || strings.Contains(got, "train-0") != mayList || strings.Contains(got, "secret") != mayList || strings.Contains(got, `"moreTasks":1`) == mayList {
			t.Errorf("%s is told %s", who, got)
		}
	}
}

// TestTheLineNamesGangsOfTheKindsThatMayBeRead: a role for Lockstep's PodGroups is none for those of other tools, nor for Pods.
func TestTheLineNamesGangsOfTheKindsThatMayBeRead(t *testing.T) {
	mixed := func() (*whatif.Snapshot, error) {
		s, err := picture()
		s.Links = &dialect.Links{}
		s.Links.TurnOn(dialect.Volcano)
		s.Links.TurnOn(dialect.SchedulerPlugins)
		for of, mark := range map[dialect.Dialect]func(*corev1.Pod){
			dialect.Volcano:          func(pod *corev1.Pod) { pod.Annotations = map[string]string{"scheduling.k8s.io/group-name": "theirs"} },
			dialect.SchedulerPlugins: func(pod *corev1.Pod) { pod.Labels = map[string]string{"scheduling.x-k8s.io/pod-group": "theirs"} },
		} {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "theirs-" + of.Kind().Group, UID: types.UID(of.Kind().Group)}}
			mark(pod)
			s.Pods = append(s.Pods, pod)
			s.Groups = append(s.Groups, &dialect.Group{Key: dialect.Key{Dialect: of, Namespace: "team", Name: "theirs"}, Spec: dialect.Spec{Minimum: podgroup.Minimum{Members: 1}}})
		}
		return s, err
	}
	for want, may := range map[string]grants{
		"PodGroup.scheduling.lockstep.dev":                                 {"list podgroups": true},
		"PodGroup.scheduling.lockstep.dev, PodGroup.scheduling.volcano.sh": {"list podgroups": true, "list podgroups.scheduling.volcano.sh team": true},
		"PodGroup.scheduling.x-k8s.io":                                     {"list podgroups.scheduling.x-k8s.io": true},
	} {
		var line answers.Line
		got := ask(New(mixed, may), "GET", "/lockstep/v1/line", "")
		if err := json.Unmarshal(got.Body.Bytes(), &line); err != nil {
			t.Fatal(err, got.Body)
		}
		kinds := make(map[string]bool)
		for _, gang := range line.Gangs {
			kinds[gang.Kind] = true
		}
		if shown := strings.Join(slices.Sorted(maps.Keys(kinds)), ", "); shown != want || line.Others+len(line.Gangs) != 4 {
			t.Errorf("with %v, %s are shown, and %d others: want %s", may, shown, line.Others, want)
		}
	}
	may := rightsOf(t.Context(), &user.DefaultInfo{Name: "someone"}, grants{"list pods team": true})
	if ruled := (dialect.Key{Dialect: dialect.Rules, Namespace: "team", Name: "x"}); !may.gangs(ruled) || may.gangs(dialect.Key{Dialect: dialect.Rules, Namespace: "other"}) {
		t.Error("a gang without a group is not for who may list its Pods")
	}
}

// TestQuestionsAreAnsweredOneByOne: the rest wait, but not for ever, and not many of them.
func TestQuestionsAreAnsweredOneByOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var underWay, most int
		free := make(chan struct{})
		h := New(func() (*whatif.Snapshot, error) {
			if underWay++; underWay > most {
				most = underWay
			}
			<-free
			underWay--
			return picture()
		}, grants{"get podgroups team": true})
		codes := make(chan int, 20)
		for range cap(codes) {
			go func() { codes <- ask(h, "GET", "/lockstep/v1/why/team/train", "").Code }()
		}
		synctest.Wait()
		if refused := len(codes); refused != cap(codes)-1-maxWaiting {
			t.Errorf("%d are refused at once", refused)
		}
		time.Sleep(waitTime)
		synctest.Wait()
		if refused := len(codes); refused != cap(codes)-1 {
			t.Errorf("%d are refused after a wait", refused)
		}
		time.Sleep(answerTime)
		synctest.Wait()
		counts := make(map[int]int)
		for range len(codes) {
			counts[<-codes]++
		}
		if fmt.Sprint(counts) != "map[429:19 504:1]" || most != 1 {
			t.Errorf("answers %v, and %d at a time", counts, most)
		}
		close(free) // the answer that took too long is done, and the next one has its turn
		synctest.Wait()
		if got := ask(h, "GET", "/lockstep/v1/why/team/train", ""); got.Code != http.StatusOK {
			t.Errorf("the next one is answered %d", got.Code)
		}
	})
}

// TestAQuestionThatComesSlowlyIsGivenUp, and keeps nobody from his turn meanwhile.
func TestAQuestionThatComesSlowlyIsGivenUp(t *testing.T) {
	h := New(picture, grants{"get podgroups team": true})
	h.readTime = 100 * time.Millisecond
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(w, r.WithContext(request.WithUser(r.Context(), &user.DefaultInfo{Name: "someone"})))
	}))
	defer server.Close()
	body, rest := io.Pipe()
	defer rest.Close()
	code := make(chan int, 1)
	go func() {
		answer, err := http.Post(server.URL+"/lockstep/v1/simulate", "application/json", body)
		if err != nil {
			t.Error(err)
			code <- 0
			return
		}
		code <- answer.StatusCode
	}()
	if _, err := rest.Write([]byte("{")); err != nil {
		t.Fatal(err)
	}
	if got := ask(h, "GET", "/lockstep/v1/why/team/train", ""); got.Code != http.StatusOK {
		t.Errorf("another one is answered %d", got.Code)
	}
	if got := <-code; got != http.StatusRequestTimeout {
		t.Errorf("it is answered %d", got)
	}
	if got := ask(h, "POST", "/lockstep/v1/simulate", `{"namespace":"team","name":"train"}`); got.Code != http.StatusOK {
		t.Errorf("the next one is answered %d %s", got.Code, got.Body)
	}
}

// TestNoBodyIsReadOfThoseThatAreTooMany: what is read takes memory.
func TestNoBodyIsReadOfThoseThatAreTooMany(t *testing.T) {
	h := New(picture, grants{})
	for range cap(h.present) {
		h.present <- struct{}{}
	}
	r := httptest.NewRequest("POST", "/lockstep/v1/simulate", unread{t})
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r.WithContext(request.WithUser(r.Context(), &user.DefaultInfo{Name: "someone"})))
	if w.Code != http.StatusTooManyRequests {
		t.Errorf("%d", w.Code)
	}
}

type unread struct{ t *testing.T }

func (u unread) Read([]byte) (int, error) {
	u.t.Error("the body is read")
	return 0, io.EOF
}

// TestAReviewThatFailsIsNoRefusal: who may read a gang is not told that he may not, and is not shown half an answer.
func TestAReviewThatFailsIsNoRefusal(t *testing.T) {
	for _, fails := range []string{"get podgroups", "list podgroups", "list nodes", "list pods"} {
		h := New(picture, failing{fails})
		for path, asks := range map[string]string{
			"/lockstep/v1/why/team/train": "get podgroups, list nodes, list pods", "/lockstep/v1/line": "list podgroups", "/lockstep/v1/line?namespace=team": "list podgroups",
		} {
			want := http.StatusOK
			if strings.Contains(asks, fails) {
				want = http.StatusServiceUnavailable
			}
			if got := ask(h, "GET", path, ""); got.Code != want || want != http.StatusOK && !strings.Contains(got.Body.String(), "does not say what you may read") {
				t.Errorf("%s, and the API server fails to say who may %s: %d %s", path, fails, got.Code, got.Body)
			}
		}
	}
}

// failing fails to say whether somebody may do one thing, and allows all else.
type failing struct{ what string }

func (f failing) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	if a.GetVerb()+" "+a.GetResource() == f.what {
		return authorizer.DecisionNoOpinion, "", errors.New("connection refused")
	}
	return authorizer.DecisionAllow, "", nil
}

// TestASlowReviewKeepsNobodyFromHisTurn: the API server is asked before the turn, and after.
func TestASlowReviewKeepsNobodyFromHisTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := make(chan struct{})
		h := New(picture, waiting{until: slow, rights: grants{"get podgroups team": true}})
		code := make(chan int, 1)
		go func() { code <- ask(h, "GET", "/lockstep/v1/why/slow/train", "").Code }()
		synctest.Wait()
		if got := ask(h, "GET", "/lockstep/v1/why/team/train", ""); got.Code != http.StatusOK {
			t.Errorf("another one is answered %d %s", got.Code, got.Body)
		}
		close(slow)
		if got := <-code; got != http.StatusForbidden {
			t.Errorf("it is answered %d", got)
		}
	})
}

// waiting says of one namespace only after a while what somebody may do there.
type waiting struct {
	until  chan struct{}
	rights grants
}

func (w waiting) Authorize(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	if a.GetNamespace() == "slow" {
		<-w.until
	}
	return w.rights.Authorize(ctx, a)
}

// TestRightsAreAskedOfFewNamespaces: a line with many namespaces costs a bounded number of reviews.
func TestRightsAreAskedOfFewNamespaces(t *testing.T) {
	asked := 0
	may := rightsOf(t.Context(), &user.DefaultInfo{Name: "someone"}, countingAuthorizer{&asked})
	for i := range 1000 {
		may.podGroups(fmt.Sprintf("ns-%d", i%100))
	}
	if asked != 1+maxReviews {
		t.Errorf("%d reviews", asked)
	}
}

type countingAuthorizer struct{ asked *int }

func (c countingAuthorizer) Authorize(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
	*c.asked++
	return authorizer.DecisionDeny, "", nil
}

// TestAnAnswerIsOfTheTypesThatClientsRead.
func TestAnAnswerIsOfTheTypesThatClientsRead(t *testing.T) {
	got := ask(New(picture, grants{"get podgroups team": true}), "GET", "/lockstep/v1/why/team/train", "")
	var why answers.Why
	if err := json.Unmarshal(got.Body.Bytes(), &why); err != nil || why.Reason != answers.ReasonPreempting {
		t.Errorf("%v, %+v", err, why)
	}
}
