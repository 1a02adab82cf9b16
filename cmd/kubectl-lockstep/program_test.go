// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/internal/testing/apiserver"
)

// user types commands in the namespace "a" of an API server in memory.
type user struct {
	t   testing.TB
	api *apiserver.Server
	// answers has what is answered in place of the API server, such as logs; nil is what the API server answers.
	answers func(*http.Request) *http.Response
	// terminal says that the user looks at a terminal.
	terminal bool
}

func someone(t testing.TB) *user {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	return &user{t: t, api: apiserver.New(t)}
}

// said is what a command printed, and its exit code.
type said struct {
	out, err string
	code     int
}

// types runs a command to its end.
func (u *user) types(args ...string) said { return u.typesUntil(u.t.Context(), args...) }

// typesUntil runs a command to its end, or until the context's.
func (u *user) typesUntil(ctx context.Context, args ...string) said {
	var out, errOut bytes.Buffer
	s := newSession(strings.NewReader(""), &out, &errOut)
	if u.terminal {
		s.screen = os.Stdout
	}
	s.flags.WithWrapConfigFn(func(config *rest.Config) *rest.Config {
		next := u.api.Config().Transport
		config.Transport = roundTripper(func(r *http.Request) (*http.Response, error) {
			if u.answers != nil {
				if answer := u.answers(r); answer != nil {
					answer.Request = r
					return answer, nil
				}
			}
			return next.RoundTrip(r)
		})
		return config
	})
	code := s.run(ctx, append([]string{"kubectl-lockstep", "--server=https://apiserver", "--token=mine", "--namespace=a"}, args...))
	return said{out.String(), errOut.String(), code}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// answered is an answer of an API server.
func answered(status int, contentType, body string) *http.Response {
	return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {contentType}}, Body: io.NopCloser(strings.NewReader(body))}
}

// sees has the test fail unless a command exited with a code and printed these texts.
func (u *user) sees(s said, code int, texts ...string) {
	u.t.Helper()
	if s.code != code {
		u.t.Errorf("exit code %d, want %d\n%s%s", s.code, code, s.out, s.err)
	}
	for _, text := range texts {
		if !strings.Contains(s.out+s.err, text) {
			u.t.Errorf("%q is not in\n%s%s", text, s.out, s.err)
		}
	}
}

// has adds a Framework called train with roles worker and ps of two tasks and one, in a state and an attempt.
func (u *user) has(state frameworkv1.FrameworkState, attempt int32) *frameworkv1.Framework {
	fw := failedTwice()
	fw.Namespace, fw.Status.State, fw.Status.AttemptStatus.ID = "a", state, attempt
	return apiserver.Add(u.api, fw)
}

// hasPod adds a Pod of a task in the current attempt of a Framework.
func (u *user) hasPod(fw *frameworkv1.Framework, role string, index int32, change func(*corev1.Pod)) {
	pod := &corev1.Pod{}
	pod.Namespace, pod.Name = fw.Namespace, frameworkv1.PodName(fw.Name, role, index)
	pod.Labels = map[string]string{frameworkv1.KeyFrameworkName: fw.Name}
	pod.Annotations = map[string]string{
		frameworkv1.KeyFrameworkUID: string(fw.UID), frameworkv1.KeyFrameworkAttemptID: strconv.Itoa(int(fw.Status.AttemptStatus.ID)),
		frameworkv1.KeyTaskRoleName: role, frameworkv1.KeyTaskIndex: strconv.Itoa(int(index)),
	}
	pod.Spec.Containers = []corev1.Container{{Name: "main"}}
	pod.Status.Phase = corev1.PodRunning
	if change != nil {
		change(pod)
	}
	apiserver.Add(u.api, pod)
}

// goes has the Framework train be in a state from now on.
func (u *user) goes(state frameworkv1.FrameworkState) {
	apiserver.Change(u.api, "a", "train", func(fw *frameworkv1.Framework) { fw.Status.State = state })
}
