// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
)

// local listens on a free port of this host, whatever named port is asked for, and gives its address. Each
// time any port is asked for it is another one.
func local(t *testing.T) (address string, listen listenFunc) {
	t.Helper()
	fixed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { fixed.Close() })
	return fixed.Addr().String(), func(port string) (net.Listener, error) {
		if port == "0" {
			return net.Listen("tcp", "127.0.0.1:0")
		}
		return fixed, nil
	}
}

// inTime is a context that ends the call of a roll in which somebody is missing.
func inTime(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(t.Context(), d, errors.New("time is up"))
	t.Cleanup(cancel)
	return ctx
}

// together runs processes beside each other and wants none to fail.
func together(t *testing.T, processes ...func() error) {
	t.Helper()
	var group sync.WaitGroup
	for i, process := range processes {
		group.Go(func() {
			if err := process(); err != nil {
				t.Errorf("process %d: %v", i, err)
			}
		})
	}
	group.Wait()
}

func TestEachTaskOfACluster(t *testing.T) {
	ctx := inTime(t, time.Minute)
	ps, listenPS := local(t)
	first, listenFirst := local(t)
	second, listenSecond := local(t)
	chief, listenChief := local(t)
	config := func(kind string, index int) string {
		return fmt.Sprintf(`{"cluster":{"ps":[%q],"worker":[%q,%q],"chief":[%q]},"task":{"type":%q,"index":%d}}`, ps, first, second, chief, kind, index)
	}
	together(t,
		func() error { return tensorflow(ctx, config("worker", 0), listenFirst) },
		func() error { return tensorflow(ctx, config("worker", 1), listenSecond) },
		func() error { return tensorflow(ctx, config("chief", 0), listenChief) },
		func() error { return tensorflow(ctx, config("ps", 0), listenPS) },
	)
}

// environment is one that has nothing but these pairs of names and values.
func environment(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}

func TestNodesOfTorchrunMeetAtTheFirst(t *testing.T) {
	ctx := inTime(t, time.Minute)
	address, listen := local(t)
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	node := func(rank string) func() error {
		return func() error {
			return torchrun(ctx, environment("PET_NNODES", "3", "PET_NODE_RANK", rank, "PET_MASTER_ADDR", host, "PET_MASTER_PORT", port), listen)
		}
	}
	together(t, node("2"), node("0"), node("1"))
}

func TestNodesOfRayMeetAtTheHead(t *testing.T) {
	ctx := inTime(t, time.Minute)
	address, listen := local(t)
	node := func(isHead bool) func() error {
		return func() error { return ray(ctx, environment("RAY_ADDRESS", address, "RAY_NODES", "3"), isHead, listen) }
	}
	together(t, node(false), node(true), node(false))
}

func TestMembersOfAnotherMeetingAreNoticed(t *testing.T) {
	ctx := inTime(t, time.Minute)
	address, listen := local(t)
	errs := make(chan error)
	for _, meeting := range []string{"this", "another"} {
		go func() { errs <- meet(ctx, address, meeting == "this", 2, member{meeting: meeting, rank: -1}, listen) }()
	}
	for range 2 {
		if err := <-errs; err == nil || !strings.Contains(err.Error(), "is at the meeting") {
			t.Errorf("a member of another meeting is met: %v", err)
		}
	}
}

func TestAllRanksFindTheMaster(t *testing.T) {
	ctx := inTime(t, time.Minute)
	address, listen := local(t)
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	process := func(rank string) func() error {
		return func() error {
			return pytorch(ctx, environment("RANK", rank, "WORLD_SIZE", "3", "MASTER_ADDR", host, "MASTER_PORT", port), listen)
		}
	}
	together(t, process("0"), process("1"), process("2"))
}

func TestWhoIsMissingIsTold(t *testing.T) {
	address, listen := local(t)
	ctx := inTime(t, time.Second)
	env := environment("RANK", "0", "WORLD_SIZE", "3", "MASTER_ADDR", "here", "MASTER_PORT", "1")
	// Its call is given up when nobody answers.
	caller := make(chan error, 1)
	go func() {
		_, err := call(ctx, address, "1")
		caller <- err
	}()
	if err := pytorch(ctx, env, listen); err == nil || !strings.Contains(err.Error(), "1 of 2 have called, [1]: time is up") {
		t.Errorf("without one of the others the master says %v", err)
	}
	if err := <-caller; err == nil || !strings.Contains(err.Error(), "time is up") {
		t.Errorf("a worker that gets no answer says %v", err)
	}
}

// sshFiles are the files of plugin ssh for one host.
func sshFiles(t *testing.T, host, address string) string {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	name, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for file, content := range map[string][]byte{
		"id_rsa":          pem.EncodeToMemory(block),
		"authorized_keys": ssh.MarshalAuthorizedKey(signer.PublicKey()),
		"config":          fmt.Appendf(nil, "StrictHostKeyChecking no\nHost %s\n  HostName %s\n  Port %s\n", host, name, port),
	} {
		if err := os.WriteFile(filepath.Join(dir, file), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestOnlyWhoHasTheKeyLogsIn(t *testing.T) {
	address, listen := local(t)
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	host, _, _ = strings.Cut(host, ".")
	folder, stranger := sshFiles(t, host, address), sshFiles(t, host, address)
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- serveSSH(ctx, folder, listen) }()
	if err := mpi(inTime(t, time.Minute), host+".job", folder, listen); err != nil {
		t.Errorf("with the key: %v", err)
	}
	if err := mpi(inTime(t, time.Second), host+".job", stranger, listen); err == nil || !strings.Contains(err.Error(), "unable to authenticate") {
		t.Errorf("with another key: %v", err)
	}
	if err := mpi(t.Context(), "other.job", folder, listen); err == nil || !strings.Contains(err.Error(), "does not know the host \"other\"") {
		t.Errorf("a host that is not in the config: %v", err)
	}
	stop()
	if err := <-served; err != nil {
		t.Error(err)
	}
}

func TestWhatMakesNoSenseIsTold(t *testing.T) {
	none := func(string) string { return "" }
	for want, args := range map[string][]string{
		"want one argument": nil,
		"not \"bowling\"":   {"bowling"},
		"TF_CONFIG is \"\"": {"tensorflow"},
		"PET_NNODES is":     {"torchrun"},
		"RANK: ":            {"pytorch"},
		"RAY_NODES is":      {"ray-head"},
		"RAY_ADDRESS: ":     {"ray"},
		"MPI_HOST is empty": {"mpi"},
	} {
		if err := run(t.Context(), args, none); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("rollcall %v says %v, want %q", args, err, want)
		}
	}
}
