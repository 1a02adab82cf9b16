// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/internal/reading"
	"github.com/lockstep-k8s/lockstep/internal/testing/apiserver"
)

// site is a page over an API server in memory.
type site struct {
	t   testing.TB
	api *apiserver.Server
	*Server
}

func newSite(t testing.TB) *site {
	t.Helper()
	s := &site{t: t, api: apiserver.New(t)}
	reader, err := reading.New(s.api.Config())
	if err != nil {
		t.Fatal(err)
	}
	s.Server = New(Options{Visitor: func(r *http.Request) (*Visitor, error) {
		if user := r.Header.Get("User"); user != "" {
			return nil, &Refusal{http.StatusUnauthorized, "nobody knows " + user}
		}
		return &Visitor{Name: "ada", Namespace: "a", Reader: reader}, nil
	}})
	return s
}

func (s *site) get(path string) *httptest.ResponseRecorder {
	s.t.Helper()
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequestWithContext(s.t.Context(), http.MethodGet, path, nil))
	return w
}

// sees has the test fail unless an answer has a status and the texts.
func (s *site) sees(w *httptest.ResponseRecorder, status int, texts ...string) {
	s.t.Helper()
	if w.Code != status {
		s.t.Errorf("the answer is %d, want %d", w.Code, status)
	}
	for _, text := range texts {
		if !strings.Contains(w.Body.String(), text) {
			s.t.Errorf("%q is not in\n%s", text, w.Body)
		}
	}
}

func framework(name string, tasks int) *frameworkv1.Framework {
	fw := &frameworkv1.Framework{}
	fw.Namespace, fw.Name = "a", name
	fw.Spec.TaskRoles = []frameworkv1.TaskRoleSpec{{Name: "worker", TaskNumber: int32(tasks)}}
	return fw
}

func TestTextsOfTenantsAreTexts(t *testing.T) {
	s := newSite(t)
	fw := apiserver.Add(s.api, framework("hostile", 1))
	apiserver.Change(s.api, "a", fw.Name, func(fw *frameworkv1.Framework) {
		fw.Status = &frameworkv1.FrameworkStatus{State: frameworkv1.FrameworkCompleted}
		fw.Status.AttemptStatus.CompletionStatus = &frameworkv1.FrameworkAttemptCompletionStatus{CompletionStatus: frameworkv1.CompletionStatus{
			Code: 7, Phrase: `"><script>alert(1)</script>`, Diagnostics: "<img src=x onerror=alert(2)> \u202e gnp.exe " + strings.Repeat("x", 5000)}}
	})
	w := s.get("/frameworks/a/hostile")
	s.sees(w, http.StatusOK, "&lt;script&gt;alert(1)", `\u202e`)
	for _, bad := range []string{"<script>alert", "<img src=x", "\u202e"} {
		if strings.Contains(w.Body.String(), bad) {
			t.Errorf("%q is in the page", bad)
		}
	}
	if n := strings.Count(w.Body.String(), "x"); n > 3000 {
		t.Errorf("a message of 5000 characters is shown in full")
	}
	if policy := w.Header().Get("Content-Security-Policy"); !strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "unsafe") {
		t.Errorf("the policy is %s", policy)
	}
}

func TestWrongAddressesAreToldWhatIsWrong(t *testing.T) {
	s := newSite(t)
	s.sees(s.get("/frameworks/a/nothing"), http.StatusNotFound, "not found", "It may have been deleted")
	s.sees(s.get("/?from=-1"), http.StatusBadRequest, "from is &#34;-1&#34;, and has to be a whole number from 0 to")
	s.sees(s.get("/?namespace="+strings.Repeat("n", 64)), http.StatusBadRequest, "at most 63 characters")
	s.sees(s.get("/elsewhere"), http.StatusNotFound)
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", nil))
	s.sees(w, http.StatusMethodNotAllowed)
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
	r.Header.Set("User", "mallory")
	w = httptest.NewRecorder()
	s.ServeHTTP(w, r)
	s.sees(w, http.StatusUnauthorized, "nobody knows mallory")
}

func TestWhatMayNotBeReadIsSaidAndTheRestIsShown(t *testing.T) {
	s := newSite(t)
	apiserver.Add(s.api, framework("training", 2))
	s.api.SetHook(func(r *apiserver.Request) apiserver.Fault {
		if r.Resource == "pods" || r.Resource == "events" {
			return apiserver.Fault{Refusal: apierrors.NewForbidden(schema.GroupResource{Resource: r.Resource}, "", errors.New("no"))}
		}
		return apiserver.Fault{}
	})
	s.sees(s.get("/frameworks/a/training"), http.StatusOK, "training", "Pods can&#39;t be shown: you may not read them", "Events can&#39;t be shown: you may not read them")
	s.sees(s.get("/nodes"), http.StatusForbidden)
}

// holdsTenThousandTasks has a Framework with the name large run, of as many tasks as the API allows, each with its Pod.
func (s *site) holdsTenThousandTasks() {
	const tasks = 10000
	fw := apiserver.Add(s.api, framework("large", tasks))
	apiserver.Change(s.api, "a", "large", func(fw *frameworkv1.Framework) {
		fw.Status = &frameworkv1.FrameworkStatus{State: frameworkv1.FrameworkAttemptRunning}
		fw.Status.AttemptStatus.StartTime.Time = at(0)
		role := &frameworkv1.TaskRoleStatus{Name: "worker"}
		for i := range int32(tasks) {
			task := &frameworkv1.TaskStatus{Index: i, State: frameworkv1.TaskAttemptRunning}
			task.AttemptStatus.StartTime.Time = at(1)
			task.AttemptStatus.PodName = fmt.Sprintf("large-worker-%d", i)
			role.TaskStatuses = append(role.TaskStatuses, task)
		}
		fw.Status.AttemptStatus.TaskRoleStatuses = []*frameworkv1.TaskRoleStatus{role}
	})
	for i := range tasks {
		pod := &corev1.Pod{}
		pod.Namespace, pod.Name = "a", fmt.Sprintf("large-worker-%d", i)
		pod.Labels = map[string]string{frameworkv1.KeyFrameworkName: "large"}
		pod.Annotations = map[string]string{frameworkv1.KeyFrameworkUID: string(fw.UID)}
		pod.Spec.NodeName = fmt.Sprintf("node-%d", i/2)
		pod.Status.Phase = corev1.PodRunning
		apiserver.Add(s.api, pod)
	}
}

// TestTheListSaysWhyAJobFailedAndIsSorted.
func TestTheListSaysWhyAJobFailedAndIsSorted(t *testing.T) {
	s := newSite(t)
	apiserver.Add(s.api, framework("aa", 1))
	failed := framework("zz", 1)
	failed.Status = &frameworkv1.FrameworkStatus{State: frameworkv1.FrameworkCompleted, Tasks: &frameworkv1.TaskCounts{Total: 1, Failed: 1}}
	failed.Status.AttemptStatus.CompletionStatus = &frameworkv1.FrameworkAttemptCompletionStatus{
		CompletionStatus: frameworkv1.CompletionStatus{Code: 1, Diagnostics: `Pod failed: PodPattern unmatched: {"containers":[{"name":"main","message":"CUDA out of memory","code":1}]}`},
		Trigger:          &frameworkv1.CompletionPolicyTriggerStatus{TaskRoleName: "worker"},
	}
	apiserver.Add(s.api, failed)
	page := s.get("/?sort=state")
	s.sees(page, http.StatusOK, "worker/0 exited with 1: CUDA out of memory", "0/1 <span class=\"quiet\">succeeded", `aria-sort="ascending"><a href="/?sort=state"`)
	if body := page.Body.String(); strings.Index(body, ">zz<") > strings.Index(body, ">aa<") {
		t.Error("what failed is not first")
	}
	s.sees(s.get("/?sort=colour"), http.StatusBadRequest, "one of name, age")
	s.sees(s.get("/frameworks/a/zz"), http.StatusOK, "Attempt ended with code 1: worker/0 exited with 1: CUDA out of memory")
}

// TestAnAddressWithoutAPageIsAPageThatSaysSo, and leads on.
func TestAnAddressWithoutAPageIsAPageThatSaysSo(t *testing.T) {
	s := newSite(t)
	s.sees(s.get("/nonsense"), http.StatusNotFound, "<h1>There is no page at this address.</h1>", `<a href="/">Jobs</a>`)
	s.sees(s.get("/frameworks/a/none"), http.StatusNotFound, "<h1>There is no Framework none.</h1>", "It may have been deleted.")
	if w := s.get("/line?namespace=a"); w.Code != http.StatusMovedPermanently || w.Header().Get("Location") != "/queue?namespace=a" {
		t.Errorf("the former address of the queue answers %d, %s", w.Code, w.Header().Get("Location"))
	}
}

// TestTheLogOfAPodWithoutANodeIsNotEmptyButMissing.
func TestTheLogOfAPodWithoutANodeIsNotEmptyButMissing(t *testing.T) {
	s := newSite(t)
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main"}}}}
	pod.Namespace, pod.Name = "a", "waits"
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "no room"}}
	apiserver.Add(s.api, pod)
	s.sees(s.get("/logs/a/waits"), http.StatusOK, "There is no log: the Pod has no node yet: Unschedulable: no room")
}

func TestTenThousandTasksMakeASmallPage(t *testing.T) {
	s := newSite(t)
	s.holdsTenThousandTasks()
	w := s.get("/frameworks/a/large")
	s.sees(w, http.StatusOK, "0-9999 (10000 tasks)")
	if size := w.Body.Len(); size > 20<<10 {
		t.Errorf("the page has %d bytes", size)
	}
	w = s.get("/frameworks/a/large/tasks?role=worker&from=9900")
	s.sees(w, http.StatusOK, "10000 tasks", "large-worker-9900", "large-worker-9999", "from=9700")
	if strings.Contains(w.Body.String(), "from=10100") {
		t.Error("there is a part after the last one")
	}
	s.sees(s.get("/frameworks/a/large/tasks?role=worker&from=10200"), http.StatusOK, "large-worker-9800", "large-worker-9999")
}

func TestAStreamSendsThePageWhenItHasChanged(t *testing.T) {
	s := newSite(t)
	apiserver.Add(s.api, framework("training", 2))
	lines := streamOf(t, s, "/frameworks/a/training")
	until := func(text string) {
		t.Helper()
		for lines.Scan() {
			if strings.Contains(lines.Text(), text) {
				return
			}
		}
		t.Fatalf("the stream ends without %q: %v", text, lines.Err())
	}
	until("training")
	apiserver.Change(s.api, "a", "training", func(fw *frameworkv1.Framework) {
		fw.Status = &frameworkv1.FrameworkStatus{State: frameworkv1.FrameworkAttemptPreparing, Waiting: []frameworkv1.WaitingCount{{Reason: "ImagePullBackOff", Tasks: 2}}}
	})
	until("ImagePullBackOff (2)")
	apiserver.Remove[frameworkv1.Framework](s.api, "a", "training")
	until("was deleted")
	until("event: still")
}

func TestAStreamOverHTTP2LivesThoughNothingChanges(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	// This is over before the page is made a second time.
	s.patience = time.Second
	server := httptest.NewUnstartedServer(s.Server)
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"/nodes", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", "text/event-stream")
	response, err := server.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.ProtoMajor != 2 {
		t.Fatalf("the stream is %s", response.Proto)
	}
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		if lines.Text() == ":" {
			return
		}
	}
	t.Errorf("the stream ends: %v", lines.Err())
}

// TestALivePageIsAskedForAnewAfterTenMinutes, by when its visitor may have lost the right to it.
func TestALivePageIsAskedForAnewAfterTenMinutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		apiserver.Add(s.api, framework("training", 2))
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/frameworks/a/training", nil)
		r.Header.Set("Accept", "text/event-stream")
		w := httptest.NewRecorder()
		begun := time.Now()
		s.ServeHTTP(w, r)
		if took := time.Since(begun); took != 10*time.Minute {
			t.Errorf("the stream ends after %v", took)
		}
		s.sees(w, http.StatusOK, "training")
		if strings.Contains(w.Body.String(), "event: still") {
			t.Error("the browser is told not to open it anew")
		}
	})
}

// TestAPageOfManyRolesIsSmall, too: roles beyond a bound show their tasks on pages of their own.
func TestAPageOfManyRolesIsSmall(t *testing.T) {
	s := newSite(t)
	fw := framework("wide", 1)
	fw.Spec.TaskRoles = nil
	status := &frameworkv1.FrameworkStatus{State: frameworkv1.FrameworkAttemptRunning}
	status.AttemptStatus.StartTime.Time = at(0)
	for r := range 256 {
		role := &frameworkv1.TaskRoleStatus{Name: fmt.Sprintf("role-%d", r)}
		fw.Spec.TaskRoles = append(fw.Spec.TaskRoles, frameworkv1.TaskRoleSpec{Name: role.Name, TaskNumber: 20})
		for i := range int32(20) {
			task := &frameworkv1.TaskStatus{Index: i, State: frameworkv1.TaskAttemptRunning}
			task.AttemptStatus.StartTime.Time = at(int(i))
			role.TaskStatuses = append(role.TaskStatuses, task)
		}
		status.AttemptStatus.TaskRoleStatuses = append(status.AttemptStatus.TaskRoleStatuses, role)
	}
	apiserver.Add(s.api, fw)
	apiserver.Change(s.api, "a", "wide", func(fw *frameworkv1.Framework) { fw.Status = status })
	w := s.get("/frameworks/a/wide")
	s.sees(w, http.StatusOK, "role-255", "246 roles have their tasks on pages of their own")
	if size := w.Body.Len(); size > 300<<10 {
		t.Errorf("the page has %d bytes", size)
	}
}

func TestAPageThatHasLostItsRowsShowsTheLastOnes(t *testing.T) {
	s := newSite(t)
	apiserver.Add(s.api, framework("training", 2))
	s.sees(s.get("/?from=100"), http.StatusOK, "training", "1 of 1 job")
}

// clock is a browser's connection that notes until when it may be written to.
type clock struct {
	*httptest.ResponseRecorder
	deadlines []time.Time
	// unbound is how many writes had no deadline.
	unbound int
}

func (c *clock) SetWriteDeadline(at time.Time) error {
	c.deadlines = append(c.deadlines, at)
	return nil
}

func (c *clock) Write(text []byte) (int, error) {
	if len(c.deadlines) == 0 || c.deadlines[len(c.deadlines)-1].IsZero() {
		c.unbound++
	}
	return c.ResponseRecorder.Write(text)
}

func TestABrowserThatDoesNotReadIsNotWaitedFor(t *testing.T) {
	s := newSite(t)
	apiserver.Add(s.api, framework("training", 2))
	for _, path := range []string{"/frameworks/a/training", "/frameworks/a/nothing"} {
		c := &clock{ResponseRecorder: httptest.NewRecorder()}
		s.ServeHTTP(c, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
		if c.Body.Len() == 0 || c.unbound > 0 {
			t.Errorf("%s: %d of the writes of %d bytes have no deadline", path, c.unbound, c.Body.Len())
		}
		if last := c.deadlines[len(c.deadlines)-1]; !last.IsZero() {
			t.Errorf("%s: the deadline is left for the next request of the connection", path)
		}
	}
}

// TestAnAPIServerThatHangsHoldsNoPageForLong: nor what bounds pages, also of one that is live.
func TestAnAPIServerThatHangsHoldsNoPageForLong(t *testing.T) {
	s := newSite(t)
	s.patience = 100 * time.Millisecond
	apiserver.Add(s.api, framework("training", 2))
	s.api.SetHook(func(r *apiserver.Request) apiserver.Fault {
		if r.Resource == "frameworks" {
			return apiserver.Fault{Before: time.Hour}
		}
		return apiserver.Fault{}
	})
	for range maxMakingOfOne + 1 {
		s.sees(s.get("/frameworks/a/training"), http.StatusGatewayTimeout, "took too long")
		w := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/frameworks/a/training", nil)
		r.Header.Set("Accept", "text/event-stream")
		s.ServeHTTP(w, r)
		s.sees(w, http.StatusGatewayTimeout, "took too long")
	}
	s.api.SetHook(nil)
	s.patience = patience
	s.sees(s.get("/frameworks/a/training"), http.StatusOK, "training")
}

// TestALivePageSaysThatItsChangesCanNotBeRead, where a Framework may be read and not followed.
func TestALivePageSaysThatItsChangesCanNotBeRead(t *testing.T) {
	s := newSite(t)
	apiserver.Add(s.api, framework("training", 2))
	s.api.SetHook(func(r *apiserver.Request) apiserver.Fault {
		if r.Resource == "frameworks" && r.Verb != apiserver.Get {
			return apiserver.Fault{Refusal: apierrors.NewForbidden(schema.GroupResource{Resource: r.Resource}, "", errors.New("no"))}
		}
		return apiserver.Fault{}
	})
	lines := streamOf(t, s, "/frameworks/a/training")
	for lines.Scan() {
		if strings.Contains(lines.Text(), "Frameworks can&#39;t be shown: you may not read them") {
			return
		}
	}
	t.Errorf("the stream ends: %v", lines.Err())
}

// streamOf opens a live page, until the test ends.
func streamOf(t *testing.T, s *site, path string) *bufio.Scanner {
	t.Helper()
	server := httptest.NewServer(s.Server)
	t.Cleanup(server.Close)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", "text/event-stream")
	response, err := server.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	// Before the server is closed, which waits for its connections.
	t.Cleanup(func() { _ = response.Body.Close() })
	return bufio.NewScanner(response.Body)
}

// TestARefusalSaysWhoLooksAndLetsHimLogOut: a wrong token would else be his for good.
func TestARefusalSaysWhoLooksAndLetsHimLogOut(t *testing.T) {
	s := newSite(t)
	s.options.LogOut = "/logout"
	s.sees(s.get("/frameworks/a/nothing"), http.StatusNotFound, "ada", `action="/logout"`)
}

func TestTooManyStreamsAreRefusedAndGivenBack(t *testing.T) {
	s := streams{of: map[string]int{}}
	for range maxStreamsOfOne {
		if !s.take("ada") {
			t.Fatal("a stream is refused within the bound")
		}
	}
	if s.take("ada") {
		t.Error("one visitor may have as many streams as he likes")
	}
	if !s.take("bob") {
		t.Error("one visitor costs another his stream")
	}
	s.free("ada")
	if !s.take("ada") {
		t.Error("a stream that has ended still counts")
	}
}

func TestTheMapSaysWhoHoldsWhatOfANode(t *testing.T) {
	s := newSite(t)
	node := &corev1.Node{}
	node.Name = "gpu-0"
	node.Labels = map[string]string{corev1.LabelTopologyZone: "z1"}
	node.Status.Allocatable = quantities("cpu", "32", "memory", "64Gi", "nvidia.com/gpu", "8")
	apiserver.Add(s.api, node)
	for i, owner := range []string{"resnet", "resnet", "bert", ""} {
		pod := &corev1.Pod{}
		pod.Namespace, pod.Name = "a", fmt.Sprintf("pod-%d", i)
		if owner != "" {
			pod.Labels = map[string]string{frameworkv1.KeyFrameworkName: owner}
		}
		pod.Spec.NodeName = "gpu-0"
		pod.Spec.Containers = []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: quantities("cpu", "1", "nvidia.com/gpu", "1")}}}
		apiserver.Add(s.api, pod)
	}
	s.sees(s.get("/nodes"), http.StatusOK, "z1 · 4 of 8 nvidia.com/gpu", `href="/frameworks/a/resnet"`, "a/bert", "Pods of a", "1 of 1 node")
	s.sees(s.get("/nodes?text=bert"), http.StatusOK, "gpu-0")
	s.sees(s.get("/nodes?text=gpt"), http.StatusOK, "No node passes the filter")
}

// quantities are resources and how much of them.
func quantities(pairs ...string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		list[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return list
}

// TestNodesThatCanNotBeReadAreSaidEachTime, also where the same nodes are asked for again.
func TestNodesThatCanNotBeReadAreSaidEachTime(t *testing.T) {
	s := newSite(t)
	reader, err := reading.New(s.api.Config())
	if err != nil {
		t.Fatal(err)
	}
	s.api.SetHook(func(r *apiserver.Request) apiserver.Fault {
		return apiserver.Fault{Refusal: apierrors.NewForbidden(schema.GroupResource{Resource: r.Resource}, "", errors.New("no"))}
	})
	nodes := &nodeLabels{reader: reader}
	for range 2 {
		if err := nodes.know(t.Context(), map[string]bool{"node-0": true}); !apierrors.IsForbidden(err) {
			t.Errorf("got %v", err)
		}
	}
}
