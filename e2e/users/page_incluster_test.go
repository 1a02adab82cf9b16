//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package users

import (
	"context"
	"crypto/tls"
	"crypto/x509/pkix"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/e2e/testbed"
	"github.com/lockstep-k8s/lockstep/internal/localenv/jobs"
)

// viewer makes a service account that may view a namespace, and returns a token of it.
func viewer(t *testing.T, namespace, name string) string {
	t.Helper()
	if _, err := cluster.Kube.CoreV1().ServiceAccounts(namespace).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	mayView(t, namespace, rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Name: name, Namespace: namespace})
	return cluster.Token(t, namespace, name)
}

// mayView lets somebody view a namespace, by a binding of his name, and waits until he may.
func mayView(t *testing.T, namespace string, who rbacv1.Subject) {
	t.Helper()
	if _, err := cluster.Kube.RbacV1().RoleBindings(namespace).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: who.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
		Subjects:   []rbacv1.Subject{who},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	review := authorizationv1.SubjectAccessReviewSpec{User: who.Name, ResourceAttributes: &authorizationv1.ResourceAttributes{
		Namespace: namespace, Verb: "list", Group: frameworkv1.SchemeGroupVersion.Group, Resource: frameworkv1.FrameworkPlural}}
	switch who.Kind {
	case rbacv1.ServiceAccountKind:
		review.User = testbed.ServiceAccount(who.Namespace, who.Name)
	case rbacv1.GroupKind:
		review.Groups = []string{who.Name}
	}
	cluster.WaitMay(t, review)
}

func TestInAClusterEachVisitorSeesWhatHeMayRead(t *testing.T) {
	address, namespace, other := cluster.RunDashboard(t), cluster.Namespace(t), cluster.Namespace(t)
	token := viewer(t, namespace, "ada")
	for _, of := range []string{namespace, other} {
		if _, err := cluster.Lockstep.FrameworkcontrollerV1().Frameworks(of).Create(t.Context(),
			jobs.MakeFramework("training").Gang().Role("worker", 2, jobs.RunForever()).Obj(), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	get := func(path, token string) (int, string) {
		t.Helper()
		return testbed.MustAsk(t, address+path, token)
	}
	for _, c := range []struct {
		who, path, token string
		status           int
		says             string
	}{
		{"a stranger", "/?namespace=" + namespace, "", http.StatusUnauthorized, "log in at /login"},
		{"somebody with a wrong token", "/?namespace=" + namespace, "guess", http.StatusUnauthorized, "log in at /login"},
		{"ada", "/?namespace=" + namespace, token, http.StatusOK, "training"},
		{"ada", "/frameworks/" + namespace + "/training", token, http.StatusOK, "All tasks are placed together, or none."},
		{"ada, elsewhere", "/?namespace=" + other, token, http.StatusForbidden, "cannot list it in the namespace &#34;" + other},
		{"ada, elsewhere", "/frameworks/" + other + "/training", token, http.StatusForbidden, "cannot get it in the namespace &#34;" + other},
		{"ada, elsewhere", "/logs/" + other + "/training-worker-0", token, http.StatusForbidden, "forbidden"},
		{"ada, everywhere", "/?namespace=*", token, http.StatusForbidden, "forbidden"},
	} {
		status, body := get(c.path, c.token)
		if status != c.status || !strings.Contains(body, c.says) {
			t.Errorf("%s gets of %s: %d, want %d and %q\n%s", c.who, c.path, status, c.status, c.says, body)
		}
		if strings.Contains(body, "TFJob") {
			t.Errorf("%s is told of kinds that the cluster does not have\n%s", c.who, body)
		}
	}
	// What is there of other namespaces is counted at most.
	for _, path := range []string{"/nodes", "/queue"} {
		if status, body := get(path+"?namespace="+namespace, token); status != http.StatusOK || !strings.Contains(body, "you may not list") || strings.Contains(body, other) {
			t.Errorf("ada sees on %s: %d %s", path, status, body)
		}
	}
	// The right is taken away: the page is, too, when what is remembered of it has run out.
	if err := cluster.Kube.RbacV1().RoleBindings(namespace).Delete(t.Context(), "ada", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	testbed.EventuallyWithin(t, 30*time.Second, "ada's right to be gone", func(context.Context) (bool, string, error) {
		status, _ := get("/frameworks/"+namespace+"/training", token)
		return status == http.StatusForbidden, fmt.Sprint(status), nil
	})
}

func TestInAClusterAPersonLogsInWithAToken(t *testing.T) {
	address, namespace := cluster.RunDashboard(t), cluster.Namespace(t)
	v := &visitor{t: t, namespace: namespace, origin: address}
	v.opensTab()
	v.creates(jobs.MakeFramework("training").Role("worker", 1, jobs.RunForever()))
	v.does(chromedp.Navigate(address + "/?" + url.Values{"namespace": {namespace}}.Encode()))
	v.sees("Log in", "kubectl create token")
	v.does(chromedp.SendKeys(chromedp.CSS("#token"), "guess\n"))
	v.sees("does not know this token")
	v.does(chromedp.SendKeys(chromedp.CSS("#token"), viewer(t, namespace, "grace")+"\n"))
	v.sees("training", "1 of 1 job")
	v.finds("#live.on")
	if cookies := evaluates[string](v, "document.cookie"); cookies != "" {
		t.Errorf("a script reads %s", cookies)
	}
	if who := evaluates[string](v, `document.querySelector(".who").innerText`); who != "system:serviceaccount:"+namespace+":grace" {
		t.Errorf("the page says that %q looks", who)
	}
	v.clicks("header form button")
	v.sees("Log in")
	v.does(chromedp.Navigate(address + "/"))
	v.sees("Log in")
}

func TestInAClusterProgramsShowACertificateAndProxiesSayForWhom(t *testing.T) {
	address, namespace, other := cluster.RunDashboard(t), cluster.Namespace(t), cluster.Namespace(t)
	viewer(t, namespace, "ada")
	ada := "system:serviceaccount:" + namespace + ":ada"
	mayView(t, namespace, rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "alan"})
	mayView(t, namespace, rbacv1.Subject{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: namespace + ":readers"})
	remote := func(user string, groups ...string) http.Header {
		return http.Header{"X-Remote-User": {user}, "X-Remote-Group": groups}
	}
	byClient, byProxy := cluster.Certificate(t, testbed.ClientCA, pkix.Name{CommonName: "alan"}),
		cluster.Certificate(t, testbed.FrontProxyCA, pkix.Name{CommonName: "proxy"})
	for _, c := range []struct {
		who       string
		shows     *tls.Certificate
		says      http.Header
		namespace string
		status    int
	}{
		{"a program with the certificate of a user", &byClient, nil, namespace, http.StatusOK},
		{"a program with the certificate of a user, elsewhere", &byClient, nil, other, http.StatusForbidden},
		{"a proxy for a user", &byProxy, remote(ada), namespace, http.StatusOK},
		{"a proxy for a user of a group", &byProxy, remote("grace", namespace+":readers"), namespace, http.StatusOK},
		{"a proxy for a user, elsewhere", &byProxy, remote(ada), other, http.StatusForbidden},
		{"a proxy for a user without rights", &byProxy, remote("grace"), namespace, http.StatusForbidden},
		{"a proxy for nobody", &byProxy, nil, namespace, http.StatusUnauthorized},
		{"a user who says that he is another one", &byClient, remote("admin", "system:masters"), other, http.StatusForbidden},
		{"a stranger who says that he is somebody", nil, remote(ada), namespace, http.StatusUnauthorized},
	} {
		status, body := testbed.MustAskAs(t, address+"/?namespace="+c.namespace, c.shows, c.says)
		if status != c.status {
			t.Errorf("%s is answered with %d, want %d\n%s", c.who, status, c.status, body)
		}
	}
}
