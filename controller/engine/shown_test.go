// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/lockstep-k8s/lockstep/internal/informing"
	"github.com/lockstep-k8s/lockstep/internal/testing/apiserver"
)

// showConfigMaps has the process "reader" show the ConfigMaps of two namespaces.
func showConfigMaps(t *testing.T, server *apiserver.Server) *shownVersions {
	t.Helper()
	client, err := kubernetes.NewForConfig(server.Process("reader").Config())
	if err != nil {
		t.Fatal(err)
	}
	informer := informing.Namespaces{"a", "b"}.Informer(&corev1.ConfigMap{}, func(namespace string) cache.ListerWatcher {
		return informing.ListWatch(client, client.CoreV1().ConfigMaps(namespace), informing.WantCurrent)
	})
	shown, err := watchShown(informer)
	if err != nil {
		t.Fatal(err)
	}
	go informer.RunWithContext(t.Context())
	synctest.Wait()
	return shown
}

// TestANamespaceIsShownAsItWasListed though there be nothing in it: an object that was written there and is gone
// would be shown for ever, as it was written.
func TestANamespaceIsShownAsItWasListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := apiserver.New(t)
		reader, shown := server.Process("reader"), showConfigMaps(t, server)
		reader.Hold("configmaps")
		written := apiserver.Add(server, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "b", Name: "written"}})
		synctest.Wait()
		if atLeast(shown.in("b"), written.ResourceVersion) {
			t.Fatal("what is written counts as shown before it is")
		}
		apiserver.Remove[corev1.ConfigMap](server, "b", "written")
		reader.ExpireWatches("configmaps")
		reader.ReleaseAll("configmaps")
		time.Sleep(time.Minute)
		synctest.Wait()
		if seen := shown.in("b"); !atLeast(seen, written.ResourceVersion) {
			t.Errorf("the namespace was listed without it, and counts as shown up to %q, before it was written at %s", seen, written.ResourceVersion)
		}
	})
}

// TestANamespaceIsShownAsItWasRestored: etcd was restored from a backup, and has older versions since. What is written
// then would count as shown before it is.
func TestANamespaceIsShownAsItWasRestored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := apiserver.New(t)
		add := func(name string) string {
			return apiserver.Add(server, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "b", Name: name}}).ResourceVersion
		}
		backup := add("kept")
		shown := showConfigMaps(t, server)
		add("lost")
		newest := add("lost-too")
		synctest.Wait()
		if got := shown.in("b"); got != newest {
			t.Fatalf("the namespace counts as shown up to %q, want %q", got, newest)
		}
		server.Restore(backup)
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := shown.in("b"); got != backup {
			t.Errorf("the namespace counts as shown up to %q, and was restored as it was at %q", got, backup)
		}
	})
}
