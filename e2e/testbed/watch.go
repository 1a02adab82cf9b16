// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
)

// Watch watches what has happened since a list, until the test ends. The list may
// be of another kind: resource versions are those of etcd, which all kinds share.
// The API server ends a watch that it can't send to fast enough, as on a busy
// machine; this one goes on after the last event that came.
func Watch(t testing.TB, since metav1.ListInterface, watched cache.WatchFuncWithContext) watch.Interface {
	t.Helper()
	watcher, err := watchtools.NewRetryWatcherWithContext(t.Context(), since.GetResourceVersion(), &cache.ListWatch{WatchFuncWithContext: watched})
	if err != nil {
		t.Fatal(err)
	}
	return watcher
}
