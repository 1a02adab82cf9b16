// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// newAsker takes whatever certificate a server has, shows its own ones, and follows no redirection.
func newAsker(own ...tls.Certificate) *http.Client {
	return &http.Client{
		Transport:     &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true, Certificates: own}, DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// Ask gets an address of a server of Lockstep's, with a token if there is one, and returns the status and the body.
func Ask(ctx context.Context, url, token string) (int, string, error) {
	return send(ctx, newAsker(), http.MethodGet, url, bearer(token), "")
}

// MustPut puts a text at an address, as Ask gets one, and has the test fail if there is no answer.
func MustPut(t testing.TB, url, token, text string) (int, string) {
	t.Helper()
	status, body, err := send(t.Context(), newAsker(), http.MethodPut, url, bearer(token), text)
	if err != nil {
		t.Fatal(err)
	}
	return status, body
}

// bearer is the header of a request with a token, if there is one.
func bearer(token string) http.Header {
	if token == "" {
		return nil
	}
	return http.Header{"Authorization": {"Bearer " + token}}
}

func send(ctx context.Context, as *http.Client, method, url string, header http.Header, text string) (int, string, error) {
	request, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(text))
	if err != nil {
		return 0, "", err
	}
	maps.Copy(request.Header, header)
	response, err := as.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return response.StatusCode, string(body), err
}

// AskAs is Ask with a client certificate, if there is one, and headers in place of a token.
func AskAs(ctx context.Context, url string, own *tls.Certificate, header http.Header) (int, string, error) {
	asker := newAsker()
	if own != nil {
		asker = newAsker(*own)
	}
	return send(ctx, asker, http.MethodGet, url, header, "")
}

// MustAskAs is AskAs, and has the test fail if there is no answer.
func MustAskAs(t testing.TB, url string, own *tls.Certificate, header http.Header) (int, string) {
	t.Helper()
	status, body, err := AskAs(t.Context(), url, own, header)
	if err != nil {
		t.Fatal(err)
	}
	return status, body
}

// MustAsk is Ask, and has the test fail if there is no answer.
func MustAsk(t testing.TB, url, token string) (int, string) {
	t.Helper()
	status, body, err := Ask(t.Context(), url, token)
	if err != nil {
		t.Fatal(err)
	}
	return status, body
}

// Token makes a token of a service account.
func (c *Cluster) Token(t testing.TB, namespace, account string) string {
	t.Helper()
	made, err := c.Kube.CoreV1().ServiceAccounts(namespace).CreateToken(t.Context(), account, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To[int64](24 * 60 * 60)}, // a soak takes hours
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return made.Status.Token
}

// ReaderOfMetrics is the token of an account in a namespace that has the role for metrics, until the test ends.
func (c *Cluster) ReaderOfMetrics(t testing.TB, namespace string) string {
	t.Helper()
	reader, err := c.Kube.CoreV1().ServiceAccounts(namespace).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "reader"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if out, err := c.Kubectl(t.Context(), "create", "clusterrolebinding", namespace, "--clusterrole=lockstep-metrics-reader", "--serviceaccount="+namespace+":"+reader.Name); err != nil {
		t.Fatal(err, out)
	}
	t.Cleanup(func() {
		if err := c.Kube.RbacV1().ClusterRoleBindings().Delete(context.WithoutCancel(t.Context()), namespace, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	c.WaitMay(t, authorizationv1.SubjectAccessReviewSpec{
		User:                  ServiceAccount(namespace, reader.Name),
		NonResourceAttributes: &authorizationv1.NonResourceAttributes{Verb: "get", Path: "/metrics"},
	})
	return c.Token(t, namespace, reader.Name)
}

// ServiceAccount is the name of a service account as a user.
func ServiceAccount(namespace, name string) string {
	return "system:serviceaccount:" + namespace + ":" + name
}

// WaitMay waits until the API server lets a user do something. The API server learns of roles and bindings by watches, some time
// after their creation. Until then the user is refused, and programs remember refusals for a while.
func (c *Cluster) WaitMay(t testing.TB, review authorizationv1.SubjectAccessReviewSpec) {
	t.Helper()
	Eventually(t, "the right of "+review.User+" to be in force", func(ctx context.Context) (bool, string, error) {
		answer, err := c.Kube.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{Spec: review}, metav1.CreateOptions{})
		if err != nil {
			return false, "", err
		}
		return answer.Status.Allowed, answer.Status.Reason, nil
	})
}

// FreeAddress is one of this machine on which nobody listens. Its port lies below 32768, where Linux takes the ports of
// connections and of servers that ask for any: one of these could otherwise take the port between its choice and its use.
// The ports of local clusters begin at 20000.
func FreeAddress() (string, error) {
	const first, ports, tries = 10000, 10000, 100
	var errs []error
	for range tries {
		free, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", first+rand.IntN(ports)))
		if err == nil {
			return free.Addr().String(), free.Close()
		}
		errs = append(errs, err)
	}
	return "", errors.Join(errs...)
}
