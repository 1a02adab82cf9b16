// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/lockstep-k8s/lockstep/client/clientset/versioned"
)

// TestPoisonKeepsNobodyFromBeingSeen lists and watches Frameworks of which one
// does not decode.
func TestPoisonKeepsNobodyFromBeingSeen(t *testing.T) {
	const (
		good   = `{"metadata":{"name":"good","namespace":"ns","uid":"1","resourceVersion":"5"},"spec":{"taskRoles":[{"name":"w","taskNumber":2}]},"status":{"state":"Completed"}}`
		poison = `{"metadata":{"name":"poison","namespace":"ns","uid":"2","resourceVersion":"6"},"spec":{"taskRoles":[{"name":"w","taskNumber":"many"}]}}`
		late   = `{"metadata":{"name":"late","namespace":"ns","uid":"3","resourceVersion":"7"},"spec":{"taskRoles":[{"name":"w","taskNumber":99999999999}]}}`
		last   = `{"metadata":{"name":"last","namespace":"ns","uid":"4","resourceVersion":"8"},"spec":{}}`
	)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		query := r.URL.Query()
		switch {
		case query.Get("sendInitialEvents") != "":
			http.Error(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422}`, http.StatusUnprocessableEntity)
		case query.Get("watch") == "":
			fmt.Fprintf(w, `{"kind":"FrameworkList","apiVersion":"frameworkcontroller.microsoft.com/v1","metadata":{"resourceVersion":"6"},"items":[%s,%s]}`, good, poison)
		default:
			for _, object := range []string{late, last} {
				fmt.Fprintf(w, `{"type":"ADDED","object":%s}`, object)
			}
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}
	}))
	defer server.Close()
	client, err := versioned.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	informer := cache.NewSharedIndexInformerWithOptions(
		newFrameworkListWatch(client.FrameworkcontrollerV1().RESTClient()), &frameworkEntry{}, cache.SharedIndexInformerOptions{})
	var running sync.WaitGroup
	defer running.Wait() // it logs, and the next test may capture the log
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	running.Go(func() { informer.RunWithContext(ctx) })

	wantDecodes := map[string]bool{"good": true, "poison": false, "late": false, "last": true}
	err = wait.PollUntilContextTimeout(ctx, 10*time.Millisecond, 30*time.Second, true, func(context.Context) (bool, error) {
		return len(informer.GetStore().ListKeys()) == len(wantDecodes), nil
	})
	if err != nil {
		t.Fatalf("only %v are seen", informer.GetStore().ListKeys())
	}
	for _, object := range informer.GetStore().List() {
		entry := object.(*frameworkEntry)
		if decodes := entry.decodeError == nil; decodes != wantDecodes[entry.Name] {
			t.Errorf("%s decodes: %v (%v), want %v", entry.Name, decodes, entry.decodeError, wantDecodes[entry.Name])
		}
		if entry.Name == "good" && !json.Valid(entry.storedStatus) {
			t.Errorf("the status of %s is %q", entry.Name, entry.storedStatus)
		}
	}
}
