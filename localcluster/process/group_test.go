// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

func shell(t *testing.T, name, script string) Spec {
	t.Helper()
	dir := t.TempDir()
	return Spec{Name: name, Path: "/bin/sh", Args: []string{"-c", script}, Dir: dir, Log: filepath.Join(dir, name+".log")}
}

func healthy(context.Context) error { return nil }

// exists is healthy once a file of the program's directory exists.
func exists(spec Spec, name string) func(context.Context) error {
	return func(context.Context) error {
		_, err := os.Stat(filepath.Join(spec.Dir, name))
		return err
	}
}

// eventually fails the test unless the condition holds within a minute.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	deadline := time.After(time.Minute)
	for !condition() {
		select {
		case <-deadline:
			t.Fatalf("waiting until %s", what)
		case <-ticker.C:
		}
	}
}

func isGone(pid int) bool {
	return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
}

func TestStartWaitsForHealth(t *testing.T) {
	g := NewGroup(nil, nil)
	defer g.Stop(0)
	spec := shell(t, "slow", "sleep 0.3; touch ready; sleep 60")
	if err := g.Start(t.Context(), spec, exists(spec, "ready")); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(spec.Dir, "ready")); err != nil {
		t.Error("Start returned before the program was healthy")
	}
	if s := g.Statuses(); len(s) != 1 || s[0].State != Running || s[0].PID == 0 {
		t.Errorf("statuses %+v", s)
	}
}

func TestAProgramThatDiesWhileStartingIsQuoted(t *testing.T) {
	g := NewGroup(nil, nil)
	defer g.Stop(0)
	spec := shell(t, "broken", "echo port is taken; exit 7")
	err := g.Start(t.Context(), spec, func(context.Context) error { return errors.New("not yet") })
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"broken ended while starting", "exit status 7", "port is taken"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %q, want %q in it", err, want)
		}
	}
}

func TestAProgramThatIsNeverHealthyIsGivenUp(t *testing.T) {
	g := NewGroup(nil, nil)
	defer g.Stop(0)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	err := g.Start(ctx, shell(t, "sick", "sleep 60"), func(context.Context) error { return errors.New("fever") })
	if err == nil || !strings.Contains(err.Error(), "sick did not get healthy") || !strings.Contains(err.Error(), "fever") {
		t.Errorf("error %v", err)
	}
}

func TestAMissingProgramIsNamed(t *testing.T) {
	g := NewGroup(nil, nil)
	defer g.Stop(0)
	spec := shell(t, "absent", "")
	spec.Path = filepath.Join(spec.Dir, "absent")
	if err := g.Start(t.Context(), spec, healthy); err == nil || !strings.Contains(err.Error(), "starting absent") {
		t.Errorf("error %v", err)
	}
}

func TestAProgramThatDiesIsStartedAgain(t *testing.T) {
	var mu sync.Mutex
	var changes []State
	g := NewGroup(nil, func(s []Status) {
		mu.Lock()
		defer mu.Unlock()
		changes = append(changes, s[0].State)
	})
	defer g.Stop(0)
	if err := g.Start(t.Context(), shell(t, "mortal", "sleep 60"), healthy); err != nil {
		t.Fatal(err)
	}
	first := g.Statuses()[0].PID
	if err := syscall.Kill(first, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the program runs again", func() bool {
		s := g.Statuses()[0]
		return s.State == Running && s.PID != first && s.Restarts == 1
	})
	mu.Lock()
	defer mu.Unlock()
	if len(changes) < 4 {
		t.Errorf("told of changes %v, want also those of the restart", changes)
	}
}

func TestStopEndsEverything(t *testing.T) {
	g := NewGroup(nil, nil)
	// It starts no other program when it is asked, which might take longer than the grace period on a busy machine.
	polite := shell(t, "polite", "trap ': >asked; exit 0' TERM; touch ready; while :; do sleep 0.05; done")
	stubborn := shell(t, "stubborn", "trap '' TERM; touch ready; while :; do sleep 0.05; done")
	for _, spec := range []Spec{polite, stubborn} {
		if err := g.Start(t.Context(), spec, exists(spec, "ready")); err != nil {
			t.Fatal(err)
		}
	}
	g.Stop(500 * time.Millisecond)
	for _, s := range g.Statuses() {
		if s.State != Stopped || !isGone(s.PID) {
			t.Errorf("after Stop %s is %s, process %d gone: %v", s.Name, s.State, s.PID, isGone(s.PID))
		}
	}
	if exists(polite, "asked")(t.Context()) != nil {
		t.Error("a program was killed without being asked to end")
	}
	if err := g.Start(t.Context(), shell(t, "late", "sleep 60"), healthy); err == nil {
		t.Error("a program could be started after Stop")
	}
}

func TestProxiesOfTheUserAreNotPassedOn(t *testing.T) {
	t.Setenv("https_proxy", "http://192.0.2.1:3128")
	g := NewGroup(nil, nil)
	defer g.Stop(0)
	spec := shell(t, "env", `echo "proxy=$https_proxy mine=$MINE"; touch ready; sleep 60`)
	spec.Env = []string{"MINE=yes"}
	if err := g.Start(t.Context(), spec, exists(spec, "ready")); err != nil {
		t.Fatal(err)
	}
	if got := Tail(spec.Log, 1); len(got) != 1 || got[0] != "proxy= mine=yes" {
		t.Errorf("the program sees %q", got)
	}
}

func TestTail(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(path, []byte(strings.Repeat("x\n", 20000)+"one\n\ntwo\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(Tail(path, 2), "|"); got != "one|two" {
		t.Errorf("Tail = %q", got)
	}
	if got := Tail(path+".none", 2); got != nil {
		t.Errorf("Tail of a missing file = %q", got)
	}
}
