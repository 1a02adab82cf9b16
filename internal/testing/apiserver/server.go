// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"fmt"
	"reflect"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// Server is an API server in memory. It is safe for concurrent use.
type Server struct {
	t testing.TB
	// looking is held while the hook looks at a request.
	looking sync.Mutex

	mu      sync.Mutex
	now     func() time.Time
	skew    time.Duration
	version uint64
	uids    int
	tables  map[schema.GroupVersionResource]*table
	byType  map[reflect.Type]*table
	// byUID has every object, to find owners.
	byUID     map[types.UID]stored
	processes map[string]*Process
	hook      Hook
	observer  Observer
	// writing is the name of the process with the present request.
	writing string
	journal []Entry
	garbage garbage
	// discovers says that questions which resources there are get an answer.
	discovers bool
}

// stored is where an object is.
type stored struct {
	table *table
	key   types.NamespacedName
}

// Option is a setting of a Server.
type Option func(*Server)

// WithResource adds a resource to the server, or replaces one of the server's own resources.
func WithResource(r Resource) Option {
	return func(s *Server) { s.register(r) }
}

// WithDiscovery makes the server answer discovery requests. Without it they are refused.
func WithDiscovery() Option {
	return func(s *Server) { s.discovers = true }
}

// WithClock sets the clock of the server. The default is time.Now.
func WithClock(now func() time.Time) Option {
	return func(s *Server) { s.now = now }
}

// New returns a Server without objects. In a bubble of testing/synctest, a goroutine of the bubble has to call it.
func New(t testing.TB, options ...Option) *Server {
	s := &Server{
		t:         t,
		now:       time.Now,
		version:   1,
		tables:    map[schema.GroupVersionResource]*table{},
		byType:    map[reflect.Type]*table{},
		byUID:     map[types.UID]stored{},
		processes: map[string]*Process{},
	}
	for _, r := range builtIn {
		s.add(r)
	}
	for _, option := range options {
		option(s)
	}
	return s
}

// builtIn are the resources that every server has. They are never changed.
var builtIn = func() []*resource {
	var known []*resource
	for _, r := range resources() {
		known = append(known, newResource(r))
	}
	return known
}()

func (s *Server) register(r Resource) { s.add(newResource(r)) }

func (s *Server) add(r *resource) {
	t := &table{resource: r, objects: map[types.NamespacedName]*revision{}}
	s.tables[r.GroupVersionResource] = t
	if r.goType != nil {
		s.byType[r.goType] = t
	}
}

// Config returns how a test's own clients reach the server.
func (s *Server) Config() *rest.Config {
	return s.Process("test").Config()
}

// SetSkew sets the server's clock ahead of all other clocks by d, from now on.
func (s *Server) SetSkew(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.skew = d
}

// Version returns the resource version of the last write.
func (s *Server) Version() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return formatVersion(s.version)
}

// time returns the time by the server's clock, as precise as in objects.
func (s *Server) time() metav1.Time {
	return metav1.NewTime(s.now().Add(s.skew).Truncate(time.Second))
}

// newUID returns a UID that the server has not used before. Equal runs of a test get equal UIDs.
func (s *Server) newUID() types.UID {
	s.uids++
	return types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012x", s.uids))
}

// table returns the table of a resource by its name, such as "pods"; a resource of the core group goes first. The test
// fails if there is none.
func (s *Server) table(name string) *table {
	s.t.Helper()
	var found *table
	for id, table := range s.tables {
		// Core events and those of their own group have one name.
		if id.Resource == name && (found == nil || id.Group == "") {
			found = table
		}
	}
	if found == nil {
		s.t.Fatalf("the API server has no resource %q", name)
	}
	return found
}
