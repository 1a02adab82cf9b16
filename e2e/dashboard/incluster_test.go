//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/lockstep-k8s/lockstep/e2e/testbed"
	"github.com/lockstep-k8s/lockstep/internal/localenv"
	"github.com/lockstep-k8s/lockstep/internal/localenv/jobs"
)

// served is where a lockstep-dashboard serves that has the rights of manifests/dashboard and no others.
func served(t *testing.T) string {
	t.Helper()
	rendered, err := cluster.Kubectl(t.Context(), "kustomize", "../../manifests/dashboard")
	if err != nil {
		t.Fatal(err, rendered)
	}
	manifest := filepath.Join(t.TempDir(), "dashboard.yaml")
	// The Deployment has no node that would run it: the program runs here, with its service account.
	if err := os.WriteFile(manifest, []byte(strings.ReplaceAll(rendered, "replicas: 1", "replicas: 0")), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := cluster.Kubectl(t.Context(), "apply", "--server-side", "-f", manifest); err != nil {
		t.Fatal(err, out)
	}
	free, err := testbed.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(free)
	if err != nil {
		t.Fatal(err)
	}
	// It ends with the test.
	_, err = localenv.Start(t.Context(), filepath.Join(cluster.Logs(), "dashboard.log"), "lockstep-dashboard", "--bind-address=127.0.0.1",
		"--secure-port="+port, "--kubeconfig="+kubeconfigOf(t, "lockstep-system", "lockstep-dashboard"))
	if err != nil {
		t.Fatal(err)
	}
	address := "https://" + free
	if err := localenv.Await(t.Context(), "lockstep-dashboard", func(ctx context.Context) (bool, string, error) {
		status, body, err := testbed.Ask(ctx, address+"/readyz", "")
		return status == http.StatusOK, fmt.Sprint(status, body, err), nil
	}); err != nil {
		t.Fatal(err)
	}
	return address
}

// kubeconfigOf is a file by which a program is a service account.
func kubeconfigOf(t *testing.T, namespace, account string) string {
	t.Helper()
	config, err := clientcmd.LoadFromFile(cluster.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	for name := range config.AuthInfos {
		config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: cluster.Token(t, namespace, account)}
	}
	path := filepath.Join(t.TempDir(), account)
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// viewer makes a service account that may view a namespace, and returns a token of it.
func viewer(t *testing.T, namespace, name string) string {
	t.Helper()
	if _, err := cluster.Kube.CoreV1().ServiceAccounts(namespace).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := cluster.Kube.RbacV1().RoleBindings(namespace).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Name: name, Namespace: namespace}},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return cluster.Token(t, namespace, name)
}

func TestInAClusterEachVisitorSeesWhatHeMayRead(t *testing.T) {
	address, namespace, other := served(t), cluster.Namespace(t), cluster.Namespace(t)
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
	for _, path := range []string{"/nodes", "/line"} {
		if status, body := get(path+"?namespace="+namespace, token); status != http.StatusOK || !strings.Contains(body, "you may not list") || strings.Contains(body, other) {
			t.Errorf("ada sees on %s: %d %s", path, status, body)
		}
	}
	// The right is taken away: the page is, too, when what is remembered of it has run out.
	if err := cluster.Kube.RbacV1().RoleBindings(namespace).Delete(t.Context(), "ada", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := localenv.Await(t.Context(), "ada's right to be gone", func(context.Context) (bool, string, error) {
		status, _ := get("/frameworks/"+namespace+"/training", token)
		return status == http.StatusForbidden, fmt.Sprint(status), nil
	}); err != nil {
		t.Error(err)
	}
}

func TestInAClusterAPersonLogsInWithAToken(t *testing.T) {
	address, namespace := served(t), cluster.Namespace(t)
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
