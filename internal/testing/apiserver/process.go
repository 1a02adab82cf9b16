// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"net"
	"os"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"k8s.io/client-go/rest"
)

// Process is a program that uses the server, such as a controller or a scheduler. Its watches may lag behind those of
// other processes, and it can be killed.
type Process struct {
	server *Server
	name   string
	dead   chan struct{}
	die    sync.Once

	// The lock of the server guards the rest.

	// writes is how many more writes the process lives for; negative means for
	// ever.
	writes int
	// limits is how far into the log the process may see, by table. A table without a limit is missing.
	limits map[*table]int
	// delays is how long events are under way, by table.
	delays map[*table]time.Duration
}

// Process returns the process with a name, and creates it at the first call.
func (s *Server) Process(name string) *Process {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.processes[name]
	if p == nil {
		p = &Process{server: s, name: name, dead: make(chan struct{}), writes: -1,
			limits: map[*table]int{}, delays: map[*table]time.Duration{}}
		s.processes[name] = p
	}
	return p
}

// Config returns a client configuration for the process. The client does not limit its rate of requests unless a test
// sets a limit.
func (p *Process) Config() *rest.Config {
	return &rest.Config{Host: "http://apiserver", Transport: p, QPS: -1, UserAgent: p.name}
}

// Kill ends the process's watches, and makes the server ignore its further requests. A request under way is still
// carried out if its Fault says Late.
func (p *Process) Kill() {
	p.die.Do(func() { close(p.dead) })
}

// KillAfter kills the process when it begins its write number n+1.
func (p *Process) KillAfter(n int) {
	p.server.mu.Lock()
	defer p.server.mu.Unlock()
	p.writes = n
}

// Dead reports whether the process was killed.
func (p *Process) Dead() bool {
	select {
	case <-p.dead:
		return true
	default:
		return false
	}
}

// outlives counts a request, and returns whether the process still does the write.
func (p *Process) outlives(write bool) bool {
	p.server.mu.Lock()
	defer p.server.mu.Unlock()
	if write && p.writes == 0 {
		p.Kill()
	}
	if write && p.writes > 0 {
		p.writes--
	}
	return !p.Dead()
}

// Hold hides changes of a resource's objects from the process until Release is called. resource is a name such as
// "pods".
func (p *Process) Hold(resource string) {
	p.server.mu.Lock()
	defer p.server.mu.Unlock()
	t := p.server.table(resource)
	p.limits[t] = len(t.log)
}

// Release shows the process the next n events of a resource that is held.
func (p *Process) Release(resource string, n int) {
	p.server.mu.Lock()
	defer p.server.mu.Unlock()
	t := p.server.table(resource)
	if limit, held := p.limits[t]; held {
		p.limits[t] = min(limit+n, len(t.log))
		t.notify()
	}
}

// ReleaseAll shows the process everything of a resource, and holds it no longer.
func (p *Process) ReleaseAll(resource string) {
	p.server.mu.Lock()
	defer p.server.mu.Unlock()
	t := p.server.table(resource)
	delete(p.limits, t)
	t.notify()
}

// Delay delays the events of a resource to the process by d.
func (p *Process) Delay(resource string, d time.Duration) {
	p.server.mu.Lock()
	defer p.server.mu.Unlock()
	t := p.server.table(resource)
	p.delays[t] = d
	t.notify()
}

// DropWatches ends the process's watches of a resource, as a lost connection would. Clients then watch again from the
// last version that they have seen.
func (p *Process) DropWatches(resource string) { p.end(resource, ended) }

// ExpireWatches ends the process's watches of a resource with the error that their version is too old. Clients then
// list again, and learn only from the list which objects are gone.
func (p *Process) ExpireWatches(resource string) { p.end(resource, expired) }

func (p *Process) end(resource string, how ending) {
	p.server.mu.Lock()
	defer p.server.mu.Unlock()
	t := p.server.table(resource)
	for w := range t.watches {
		if w.process == p {
			w.ending = how
			w.notify()
		}
	}
}

// Bookmark sends the server's version to all watches of a resource.
func (s *Server) Bookmark(resource string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.append(s.table(resource), event{version: s.version})
}

// Forget makes the server forget past changes of a resource's objects. A watch from an earlier version then has to
// list again.
func (s *Server) Forget(resource string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.table(resource).forgotten = s.version
}

// DropBefore drops what the server remembers of changes before a time, unless a watch has still to send them. A watch from
// an earlier version then has to list again, and the server can't be restored to one. A server that runs for long would
// fill the memory otherwise.
func (s *Server) DropBefore(at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.tables {
		n, _ := slices.BinarySearchFunc(t.log, at, func(e event, at time.Time) int { return e.at.Compare(at) })
		for w := range t.watches {
			n = min(n, w.next)
		}
		for _, p := range s.processes {
			if limit, held := p.limits[t]; held {
				n = min(n, limit)
			}
		}
		if n == 0 || 2*n < len(t.log) { // moving the rest would take longer than it is worth
			continue
		}
		t.forgotten = max(t.forgotten, t.log[n-1].version)
		t.log = slices.Delete(t.log, 0, n)
		for w := range t.watches {
			w.next -= n
		}
		for _, p := range s.processes {
			if _, held := p.limits[t]; held {
				p.limits[t] -= n
			}
		}
	}
}

// Restore resets the server to its state at a version, like an etcd that is restored from a backup. All watches end,
// and the next write gets a version that existed before.
func (s *Server) Restore(version string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	backup, err := strconv.ParseUint(version, 10, 64)
	if err != nil || backup > s.version {
		s.t.Fatalf("restoring the version %q, of %d", version, s.version)
	}
	s.version = backup
	clear(s.byUID)
	for _, t := range s.tables {
		end := t.since(backup)
		objects := t.state(end)
		t.log, t.forgotten = t.log[:end], backup
		clear(t.objects)
		for _, r := range objects {
			t.objects[keyOf(r)] = r
			s.byUID[r.meta.UID] = stored{t, keyOf(r)}
		}
		for w := range t.watches {
			w.next, w.initial, w.ending = len(t.log), nil, expired
			w.notify()
		}
		for _, p := range s.processes {
			if limit, held := p.limits[t]; held {
				p.limits[t] = min(limit, len(t.log))
			}
		}
	}
}

// Errors that a client sees instead of an answer.
var (
	errRefused = &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	errLost    = &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", syscall.ECONNRESET)}
)
