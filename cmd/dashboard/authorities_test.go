// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	certutil "k8s.io/client-go/util/cert"

	"github.com/lockstep-k8s/lockstep/internal/testing/apiserver"
)

// newAuthority is an authority, and its own certificate, with which it may show who it is.
func newAuthority(t *testing.T, name string) (authority []byte, own tls.Certificate) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := certutil.NewSelfSignedCACert(certutil.Config{CommonName: name}, key)
	if err != nil {
		t.Fatal(err)
	}
	authority, err = certutil.EncodeCertificates(signed)
	if err != nil {
		t.Fatal(err)
	}
	return authority, tls.Certificate{Certificate: [][]byte{signed.Raw}, PrivateKey: key}
}

// TestTheFirstVisitorMayShowACertificate, though the API server takes a second to name its authorities.
func TestTheFirstVisitorMayShowACertificate(t *testing.T) {
	users, ofUser := newAuthority(t, "ada")
	proxies, _ := newAuthority(t, "proxies")
	cluster := apiserver.New(t)
	apiserver.Add(cluster, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "extension-apiserver-authentication"},
		Data: map[string]string{
			"client-ca-file":                     string(users),
			"requestheader-client-ca-file":       string(proxies),
			"requestheader-allowed-names":        "[]",
			"requestheader-username-headers":     `["X-Remote-User"]`,
			"requestheader-group-headers":        `["X-Remote-Group"]`,
			"requestheader-extra-headers-prefix": `["X-Remote-Extra-"]`,
		},
	})
	cluster.SetHook(func(r *apiserver.Request) apiserver.Fault {
		if r.Verb == apiserver.List || r.InitialEvents {
			return apiserver.Fault{Before: time.Second}
		}
		return apiserver.Fault{}
	})
	f := newFlags()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f.serving.Listener = listener
	f.authentication.RemoteKubeConfigFile = filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"memory": {Server: "http://apiserver"}},
		Contexts:       map[string]*clientcmdapi.Context{"memory": {Cluster: "memory"}},
		CurrentContext: "memory",
	}, f.authentication.RemoteKubeConfigFile); err != nil {
		t.Fatal(err)
	}
	f.authentication.WithCustomRoundTripper(func(http.RoundTripper) http.RoundTripper { return cluster.Process(programName) })
	serving, who, err := f.secured()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	stopped, _, err := serving.Serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if visitor, known, err := who.AuthenticateRequest(r); err != nil || !known {
			_, _ = fmt.Fprint(w, "a stranger: ", err)
		} else {
			_, _ = fmt.Fprint(w, visitor.User.GetName())
		}
	}), shutdownTime, ctx.Done())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cancel(); <-stopped })
	client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{Certificates: []tls.Certificate{ofUser}, InsecureSkipVerify: true}}}
	answer, err := client.Get("https://" + listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if who, err := io.ReadAll(answer.Body); string(who) != "ada" {
		t.Errorf("the page is shown to %q, and %v", who, err)
	}
}

// silent reads nothing.
type silent struct {
	dynamiccertificates.CAContentProvider
}

func (silent) AddListener(dynamiccertificates.Listener) {}
func (silent) RunOnce(context.Context) error            { return nil }
func (silent) Run(ctx context.Context, _ int)           { <-ctx.Done() }

func TestAClusterWithoutAuthoritiesIsServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		runner := awaited(silent{}, newFlags().authentication, true).(dynamiccertificates.ControllerRunner)
		if err := runner.RunOnce(t.Context()); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took != authoritiesTime {
			t.Errorf("the page is served after %v, want %v", took, authoritiesTime)
		}
	})
}

// TestOnlyAuthoritiesThatAreLookedUpAreAwaited: where those of proxies could not be found, the page may be served without.
func TestOnlyAuthoritiesThatAreLookedUpAreAwaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		a := awaited(silent{}, newFlags().authentication, false).(*authorities)
		a.Enqueue()
		if err := a.RunOnce(t.Context()); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took > 0 {
			t.Errorf("the page is served %v after its one authority was read", took)
		}
	})
}
