// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/internal/reading"
)

// kubelet is an API server with a Framework of one Pod, whose log comes in parts: the connection breaks after each but the last.
// It refuses requests that are in trouble, each as often as it says.
type kubelet struct {
	sync.Mutex
	parts   []string
	trouble map[string]int
	// sinces are from when on the log was asked for.
	sinces []string
	ended  bool
	// clean says that no connection breaks, as where the container starts again.
	clean bool
	// goes says that the Pod is gone when the log is opened again, and the Framework has ended.
	goes, gone bool
}

func (k *kubelet) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	k.Lock()
	defer k.Unlock()
	for end, times := range k.trouble {
		if times > 0 && strings.HasSuffix(r.URL.Path, end) {
			k.trouble[end]--
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
	}
	say := func(object any) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(object)
	}
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "train-worker-0", UID: "p"}, Status: corev1.PodStatus{Phase: corev1.PodRunning}}
	pod.APIVersion, pod.Kind = "v1", "Pod"
	pod.Annotations = map[string]string{frameworkv1.KeyFrameworkUID: "u", frameworkv1.KeyTaskRoleName: "worker", frameworkv1.KeyTaskIndex: "0", frameworkv1.KeyFrameworkAttemptID: "0"}
	pod.Spec.Containers = []corev1.Container{{Name: "main"}}
	if k.ended {
		pod.Status.Phase = corev1.PodSucceeded
	}
	if strings.HasSuffix(r.URL.Path, "/log") && k.goes && len(k.sinces) > 0 {
		k.gone, k.ended = true, true
	}
	switch {
	case k.gone && strings.Contains(r.URL.Path, "/pods/"):
		w.WriteHeader(http.StatusNotFound)
	case strings.HasSuffix(r.URL.Path, "/frameworks/train"):
		fw := frameworkv1.Framework{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "train", UID: "u"}, Status: &frameworkv1.FrameworkStatus{State: frameworkv1.FrameworkAttemptRunning}}
		fw.SetGroupVersionKind(frameworkv1.FrameworkGroupVersionKind)
		if k.ended {
			fw.Status.State = frameworkv1.FrameworkCompleted
		}
		say(fw)
	case strings.HasSuffix(r.URL.Path, "/pods"):
		say(corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, Items: []corev1.Pod{pod}})
	case strings.HasSuffix(r.URL.Path, "/log"):
		k.sinces = append(k.sinces, r.URL.Query().Get("sinceTime"))
		var part string
		part, k.parts = k.parts[0], k.parts[1:]
		if tail, err := strconv.Atoi(r.URL.Query().Get("tailLines")); err == nil {
			lines := slices.Collect(strings.Lines(part))
			part = strings.Join(lines[max(0, len(lines)-tail):], "")
		}
		fmt.Fprint(w, part)
		w.(http.Flusher).Flush()
		switch {
		case len(k.parts) == 0:
			k.ended = true
		case !k.clean:
			panic(http.ErrAbortHandler)
		}
	default:
		say(pod)
	}
}

// follows runs logs -f with flags, and returns what it writes.
func (k *kubelet) follows(t *testing.T, flags ...func(*logOptions)) (out, notes string, err error) {
	t.Helper()
	server := httptest.NewServer(k)
	t.Cleanup(server.Close)
	config := &rest.Config{Host: server.URL}
	reader, err := reading.New(config)
	if err != nil {
		t.Fatal(err)
	}
	var written, told bytes.Buffer
	o := &logOptions{session: &session{out: &written, errOut: &told}, attempt: -1, follow: true, tail: -1, often: time.Millisecond}
	for _, set := range flags {
		set(o)
	}
	c := &cluster{namespace: "a", reader: reader}
	fw, err := c.reader.Framework(t.Context(), "a", "train")
	if err != nil {
		t.Fatal(err)
	}
	err = o.followAll(t.Context(), c, fw.Name, func(ctx context.Context) ([]corev1.Pod, bool, error) { return o.look(ctx, c, fw, chosen{index: -1}) })
	return written.String(), told.String(), err
}

func TestALogWhoseConnectionBreaksIsReadOnWithoutALineTwiceOrLost(t *testing.T) {
	const at = "2026-11-26T12:00:00.5Z "
	k := &kubelet{parts: []string{
		at + "one\n" + at + "two\n" + at + "two\n" + at + "a part of a li",
		at + "one\n" + at + "two\n" + at + "two\n" + at + "a part of a line\n2026-11-26T12:00:01Z three\n",
		"2026-11-26T12:00:01Z three\n",
		"2026-11-26T12:00:01Z three\n2026-11-26T12:00:01Z three\n2026-11-26T12:00:02Z the end",
	}}
	out, notes, err := k.follows(t)
	if err != nil {
		t.Fatal(err)
	}
	want := "[worker/0] one\n[worker/0] two\n[worker/0] two\n[worker/0] a part of a line\n[worker/0] three\n[worker/0] three\n[worker/0] the end\n"
	if out != want {
		t.Errorf("got\n%s\nwant\n%s", out, want)
	}
	if want := []string{"", "2026-11-26T12:00:00Z", "2026-11-26T12:00:01Z", "2026-11-26T12:00:01Z"}; !slices.Equal(k.sinces, want) {
		t.Errorf("it is asked for from %q on", k.sinces)
	}
	if strings.Count(notes, "The log of worker/0 broke off, and is opened again") != 2 {
		t.Errorf("it tells %q", notes)
	}
}

// TestALogThatIsGoneBeforeItsEndWasReadIsMissed: its Pod was deleted before the log was opened again. One that was read to its
// end lacks nothing.
func TestALogThatIsGoneBeforeItsEndWasReadIsMissed(t *testing.T) {
	k := &kubelet{parts: []string{"2026-11-26T12:00:00Z one\n", ""}, goes: true}
	out, notes, err := k.follows(t)
	if out != "[worker/0] one\n" || err == nil || !strings.Contains(err.Error(), "not every log was shown to its end") {
		t.Errorf("got %q, %v", out, err)
	}
	if !strings.Contains(notes, "The end of the log of worker/0 is missing") {
		t.Errorf("it tells %q", notes)
	}
	k = &kubelet{parts: []string{"2026-11-26T12:00:00Z one\n", ""}, goes: true, clean: true}
	if out, notes, err := k.follows(t); out != "[worker/0] one\n" || err != nil || strings.Contains(notes, "missing") {
		t.Errorf("of a log that was read to its end: got %q, %v, and it tells %q", out, err, notes)
	}
}

func TestAnAPIServerThatRestartsEndsNoLog(t *testing.T) {
	k := &kubelet{parts: []string{"2026-11-26T12:00:00Z one\n", "2026-11-26T12:00:01Z two\n"}, trouble: map[string]int{"/log": 2, "/pods": 1, "/pods/train-worker-0": 2}}
	out, notes, err := k.follows(t)
	if err != nil || out != "[worker/0] one\n[worker/0] two\n" {
		t.Errorf("got %q, %v", out, err)
	}
	if !strings.Contains(notes, "Asking the API server again") {
		t.Errorf("it tells %q", notes)
	}
}

// TestALogThatBreaksOffBeforeItsFirstLineLosesNoneByTheTail, which counts when it is first opened. Nor does --since move on.
func TestALogThatBreaksOffBeforeItsFirstLineLosesNoneByTheTail(t *testing.T) {
	const lines = "2026-11-26T12:00:00Z one\n2026-11-26T12:00:01Z two\n"
	tail := func(o *logOptions) { o.tail = 1 }
	since := func(o *logOptions) { o.since = time.Hour }
	for _, tc := range []struct {
		flags func(*logOptions)
		ago   time.Duration
	}{{tail, 0}, {since, time.Hour}} {
		k := &kubelet{parts: []string{"", lines}}
		if out, _, err := k.follows(t, tc.flags); err != nil || out != "[worker/0] one\n[worker/0] two\n" {
			t.Errorf("got %q, %v", out, err)
		}
		from, err := time.Parse(time.RFC3339, k.sinces[1])
		if early := time.Now().Add(-tc.ago).Sub(from); err != nil || early < 0 || early > time.Minute {
			t.Errorf("it is asked for from %q on", k.sinces)
		}
	}
	k := &kubelet{parts: []string{lines}, trouble: map[string]int{"/log": 2}}
	if out, _, err := k.follows(t, tail); err != nil || out != "[worker/0] two\n" {
		t.Errorf("of a log that was not opened at first: got %q, %v", out, err)
	}
}

func TestLinesWithoutATimeAreShownAsTheyAre(t *testing.T) {
	k := &kubelet{parts: []string{"no time here\n"}}
	if out, _, err := k.follows(t); err != nil || out != "[worker/0] no time here\n" {
		t.Errorf("got %q, %v", out, err)
	}
}

// TestALogIsOpenedAgainOnlyWhereItsContainerMayStartAgain, be it an init container, a sidecar or one for debugging.
func TestALogIsOpenedAgainOnlyWhereItsContainerMayStartAgain(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	for _, tc := range []struct {
		policy           corev1.RestartPolicy
		container        string
		endsWith0, fails bool
	}{
		{corev1.RestartPolicyNever, "main", true, true},
		{corev1.RestartPolicyOnFailure, "main", true, false},
		{corev1.RestartPolicyAlways, "main", false, false},
		{corev1.RestartPolicyNever, "init", true, true},
		{corev1.RestartPolicyOnFailure, "init", true, false},
		{corev1.RestartPolicyAlways, "init", true, false},
		{corev1.RestartPolicyNever, "sidecar", false, false},
		{corev1.RestartPolicyAlways, "sidecar", false, false},
		{corev1.RestartPolicyAlways, "debug", true, true},
	} {
		for code, want := range map[int32]bool{0: tc.endsWith0, 1: tc.fails} {
			ended := func(name string) []corev1.ContainerStatus {
				return []corev1.ContainerStatus{{Name: name, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code}}}}
			}
			pod := &corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: ended("main"), EphemeralContainerStatuses: ended("debug")}}
			pod.Status.InitContainerStatuses = append(ended("init"), ended("sidecar")...)
			pod.Spec.RestartPolicy = tc.policy
			pod.Spec.Containers = []corev1.Container{{Name: "main"}}
			pod.Spec.InitContainers = []corev1.Container{{Name: "init"}, {Name: "sidecar", RestartPolicy: &always}}
			pod.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debug"}}}
			if got := hasEnded(pod, tc.container); got != want {
				t.Errorf("%s of a Pod that restarts %s, with code %d: ended for good is %v", tc.container, tc.policy, code, got)
			}
		}
	}
}
