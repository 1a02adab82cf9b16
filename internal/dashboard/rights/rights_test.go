// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/kubernetes"

	"github.com/lockstep-k8s/lockstep/internal/testing/apiserver"
)

// book is an authorizer that knows what is allowed, as VERB RESOURCE NAMESPACE NAME.
type book struct {
	allowed map[string]bool
	err     error
	asked   []string
}

func (b *book) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	resource := a.GetResource()
	if a.GetSubresource() != "" {
		resource += "/" + a.GetSubresource()
	}
	question := strings.Join([]string{a.GetUser().GetName(), a.GetVerb(), resource, a.GetNamespace(), a.GetName()}, " ")
	b.asked = append(b.asked, question)
	if b.allowed[question] {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, "", b.err
}

// readsAs makes a client of a server in memory that reads for a visitor.
func readsAs(t *testing.T, name string, asks *book) kubernetes.Interface {
	t.Helper()
	api := apiserver.New(t)
	for _, namespace := range []string{"a", "b"} {
		pod := &corev1.Pod{}
		pod.Namespace, pod.Name = namespace, "p"
		apiserver.Add(api, pod)
	}
	config := api.Config()
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return &Transport{User: &user.DefaultInfo{Name: name}, Asks: asks, Next: next}
	})
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func TestAVisitorReadsWhatHeMayAndNothingElse(t *testing.T) {
	asks := &book{allowed: map[string]bool{"ada get pods a p": true, "ada list pods a ": true, "ada watch pods a ": true, "ada list pods b p": true}}
	pods := readsAs(t, "ada", asks).CoreV1()
	if _, err := pods.Pods("a").Get(t.Context(), "p", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
	if list, err := pods.Pods("a").List(t.Context(), metav1.ListOptions{}); err != nil || len(list.Items) != 1 {
		t.Error(list, err)
	}
	if _, err := pods.Pods("b").List(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=p"}); err != nil {
		t.Errorf("a list of one name asks for that name: %v", err)
	}
	watch, err := pods.Pods("a").Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	watch.Stop()

	for what, read := range map[string]func() error{
		`pods "p" is forbidden: User "ada" cannot get it in the namespace "b"`: func() error {
			_, err := pods.Pods("b").Get(t.Context(), "p", metav1.GetOptions{})
			return err
		},
		`User "ada" cannot list it`: func() error {
			_, err := pods.Pods("").List(t.Context(), metav1.ListOptions{})
			return err
		},
		`User "ada" cannot get it in the namespace "a"`: func() error {
			_, err := pods.Pods("a").GetLogs("p", &corev1.PodLogOptions{}).Stream(t.Context())
			return err
		},
	} {
		if err := read(); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), what) {
			t.Errorf("got %v, want %s", err, what)
		}
	}
	if last := asks.asked[len(asks.asked)-1]; !strings.HasPrefix(last, "ada ") {
		t.Errorf("it asked %s", last)
	}
}

func TestNothingIsChangedForAnybody(t *testing.T) {
	asks := &book{allowed: map[string]bool{"root delete pods a p": true, "root create pods a ": true}}
	pods := readsAs(t, "root", asks).CoreV1().Pods("a")
	if err := pods.Delete(t.Context(), "p", metav1.DeleteOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("it deletes: %v", err)
	}
	if _, err := pods.Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "q"}}, metav1.CreateOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("it creates: %v", err)
	}
	if len(asks.asked) > 0 {
		t.Errorf("it asked %v", asks.asked)
	}
}

func TestWhereNobodyCanBeAskedNothingIsRead(t *testing.T) {
	asks := &book{err: errors.New("the API server is away")}
	_, err := readsAs(t, "ada", asks).CoreV1().Pods("a").Get(t.Context(), "p", metav1.GetOptions{})
	if err == nil || apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "the API server is away") {
		t.Errorf("got %v", err)
	}
}
