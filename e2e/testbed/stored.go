// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/kubernetes/scheme"
)

// store is what a cluster keeps its objects in. A watch of it goes on where it was after the API
// server or etcd itself was killed; a new API server knows nothing of before.
type store struct {
	client *clientv3.Client
}

// openStore comes to the cluster's etcd, until the test ends.
func (c *Cluster) openStore(t testing.TB) *store {
	t.Helper()
	program, err := c.Program("etcd")
	if err != nil {
		t.Fatal(err)
	}
	certificates := transport.TLSInfo{
		CertFile:      filepath.Join(c.Dir, "pki", "etcd.crt"),
		KeyFile:       filepath.Join(c.Dir, "pki", "etcd.key"),
		TrustedCAFile: filepath.Join(c.Dir, "pki", "ca.crt"),
	}
	config, err := certificates.ClientConfig()
	if err != nil {
		t.Fatal(err)
	}
	client, err := clientv3.New(clientv3.Config{
		Endpoints: []string{"https://" + program.Address},
		TLS:       config,
		// A connection is tried again at once when etcd is back.
		DialKeepAliveTime: 5 * time.Second, DialKeepAliveTimeout: 5 * time.Second,
		Logger: zap.NewNop(),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() }) // the error is that of the context of its watches
	return &store{client}
}

// CountStored returns what counts all objects in the store but events, which go by themselves after
// an hour. It may be called until the test ends.
func (c *Cluster) CountStored(t testing.TB) func(ctx context.Context) (int, error) {
	t.Helper()
	stored := c.openStore(t)
	count := func(ctx context.Context, prefix string) (int64, error) {
		answer, err := stored.client.Get(ctx, prefix, clientv3.WithPrefix(), clientv3.WithCountOnly())
		if err != nil {
			return 0, fmt.Errorf("counting what is stored: %w", err)
		}
		return answer.Count, nil
	}
	return func(ctx context.Context) (int, error) {
		all, err := count(ctx, root)
		if err != nil {
			return 0, err
		}
		events, err := count(ctx, root+"events/")
		return int(all - events), err
	}
}

// root is what all keys begin with.
const root = "/registry/"

// keptAs says where objects of a kind are stored, and how to read one.
type keptAs struct {
	resource schema.GroupResource
	read     func(stored []byte) (object, error)
}

// object is what can be recorded.
type object interface {
	metav1.Object
	runtime.Object
}

var keptPods = keptAs{corev1.Resource("pods"), func(stored []byte) (object, error) {
	pod := &corev1.Pod{}
	_, _, err := scheme.Codecs.UniversalDeserializer().Decode(stored, nil, pod)
	return pod, err
}}

// keptJSON is how objects of custom resources are stored.
func keptJSON(resource schema.GroupResource, empty func() object) keptAs {
	return keptAs{resource, func(stored []byte) (object, error) {
		read := empty()
		return read, json.Unmarshal(stored, read)
	}}
}

// prefix is what the keys of a namespace's objects begin with.
func (k keptAs) prefix(namespace string) string {
	if k.resource.Group == "" {
		return root + k.resource.Resource + "/" + namespace + "/"
	}
	return root + k.resource.Group + "/" + k.resource.Resource + "/" + namespace + "/"
}

// follow tells of each write of a kind's objects in a namespace after a version, in order, until
// ctx ends. It returns why it could not go on. An object that is gone is as it was last.
func (s *store) follow(ctx context.Context, kind keptAs, namespace string, since int64, tell func(o object, gone bool)) error {
	watched := s.client.Watch(ctx, kind.prefix(namespace), clientv3.WithPrefix(), clientv3.WithRev(since+1), clientv3.WithPrevKV(), clientv3.WithFragment())
	for told := range watched {
		if err := told.Err(); err != nil {
			return fmt.Errorf("watching what is stored: %w", err)
		}
		for _, e := range told.Events {
			value, gone := e.Kv.Value, e.Type == clientv3.EventTypeDelete
			if gone {
				if e.PrevKv == nil {
					return fmt.Errorf("what was %s is forgotten", e.Kv.Key)
				}
				value = e.PrevKv.Value
			}
			read, err := kind.read(value)
			if err != nil {
				return fmt.Errorf("reading what is stored as %s: %w", e.Kv.Key, err)
			}
			read.SetResourceVersion(strconv.FormatInt(e.Kv.ModRevision, 10))
			tell(read, gone)
		}
	}
	if ctx.Err() == nil {
		return fmt.Errorf("a watch of what is stored has ended too early")
	}
	return nil
}
