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

// local listens on a free port of this host, whatever port is asked for, and gives its address.
func local(t *testing.T) (address string, listen func(string) (net.Listener, error)) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	return listener.Addr().String(), func(string) (net.Listener, error) { return listener, nil }
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

func TestWorkersFindAllParameterServers(t *testing.T) {
	ctx := inTime(t, time.Minute)
	first, listenFirst := local(t)
	second, listenSecond := local(t)
	config := func(kind string, index int) string {
		return fmt.Sprintf(`{"cluster":{"ps":[%q,%q],"worker":["a:1","b:1"],"chief":["c:1"]},"task":{"type":%q,"index":%d}}`, first, second, kind, index)
	}
	together(t,
		func() error { return tensorflow(ctx, config("worker", 0), nil) },
		func() error { return tensorflow(ctx, config("worker", 1), nil) },
		func() error { return tensorflow(ctx, config("chief", 0), nil) },
		func() error { return tensorflow(ctx, config("ps", 0), listenFirst) },
		func() error { return tensorflow(ctx, config("ps", 1), listenSecond) },
	)
}

func TestAllRanksFindTheMaster(t *testing.T) {
	ctx := inTime(t, time.Minute)
	address, listen := local(t)
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	process := func(rank string) func() error {
		env := map[string]string{"RANK": rank, "WORLD_SIZE": "3", "MASTER_ADDR": host, "MASTER_PORT": port}
		return func() error { return pytorch(ctx, func(name string) string { return env[name] }, listen) }
	}
	together(t, process("0"), process("1"), process("2"))
}

func TestWhoIsMissingIsTold(t *testing.T) {
	address, listen := local(t)
	ctx := inTime(t, time.Second)
	config := fmt.Sprintf(`{"cluster":{"ps":[%q],"worker":["a:1","b:1"]},"task":{"type":"ps","index":0}}`, address)
	// Its call is given up when nobody answers.
	caller := make(chan error, 1)
	go func() {
		_, err := call(ctx, address, "worker-1")
		caller <- err
	}()
	if err := tensorflow(ctx, config, listen); err == nil || !strings.Contains(err.Error(), "1 of 2 have called, [worker-1]: time is up") {
		t.Errorf("without one of its workers a parameter server says %v", err)
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
	if err := mpi(inTime(t, time.Minute), host+".job", folder); err != nil {
		t.Errorf("with the key: %v", err)
	}
	if err := mpi(inTime(t, time.Second), host+".job", stranger); err == nil || !strings.Contains(err.Error(), "unable to authenticate") {
		t.Errorf("with another key: %v", err)
	}
	if err := mpi(t.Context(), "other.job", folder); err == nil || !strings.Contains(err.Error(), "does not know the host \"other\"") {
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
		"RANK: ":            {"pytorch"},
		"MPI_HOST is empty": {"mpi"},
	} {
		if err := run(t.Context(), args, none); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("rollcall %v says %v, want %q", args, err, want)
		}
	}
}
