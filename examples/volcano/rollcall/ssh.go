// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
)

// sshFolder is where plugin ssh has put the keys and what ssh has to know of the hosts, or where an
// MPIJob has its keys.
const sshFolder = "/root/.ssh"

// mpi logs in to each host as mpirun does, and asks for its name.
func mpi(ctx context.Context, hosts, folder string) error {
	if hosts == "" {
		return errors.New("MPI_HOST is empty")
	}
	signer, err := readKey(folder)
	if err != nil {
		return err
	}
	config, err := readConfig(filepath.Join(folder, "config"))
	if err != nil {
		return err
	}
	for host := range strings.SplitSeq(hosts, ",") {
		name, _, _ := strings.Cut(host, ".")
		address, found := config[name]
		if !found {
			return fmt.Errorf("the config of ssh does not know the host %q", name)
		}
		said, err := askUntil(ctx, address, signer)
		if err != nil {
			return fmt.Errorf("logging in to %s at %s: %w", name, address, err)
		}
		if said != name {
			return fmt.Errorf("%s says that its name is %q, want %q", address, said, name)
		}
		log.Printf("logged in to %s", said)
	}
	return nil
}

// mpiByFile is mpi for the hosts of a file that OpenMPI reads, each with its slots, by the names that
// they have there.
func mpiByFile(ctx context.Context, hostFile, folder string) error {
	content, err := os.ReadFile(hostFile)
	if err != nil {
		return err
	}
	signer, err := readKey(folder)
	if err != nil {
		return err
	}
	n := 0
	for line := range strings.Lines(string(content)) {
		host, slots, _ := strings.Cut(strings.TrimSpace(line), " ")
		if !strings.HasPrefix(slots, "slots=") {
			return fmt.Errorf("a line of %s is %q, want a host and its slots", hostFile, line)
		}
		name, _, _ := strings.Cut(host, ".")
		said, err := askUntil(ctx, net.JoinHostPort(host, "22"), signer)
		if err != nil {
			return fmt.Errorf("logging in to %s: %w", host, err)
		}
		if said != name {
			return fmt.Errorf("%s says that its name is %q, want %q", host, said, name)
		}
		log.Printf("logged in to %s", said)
		n++
	}
	if n == 0 {
		return fmt.Errorf("%s names no hosts", hostFile)
	}
	return nil
}

// readKey reads the private key of ssh.
func readKey(folder string) (ssh.Signer, error) {
	key, err := os.ReadFile(filepath.Join(folder, "id_rsa"))
	if err != nil {
		return nil, err
	}
	signer, err := ssh.ParsePrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("reading id_rsa: %w", err)
	}
	return signer, nil
}

// readConfig reads where the hosts of a configuration of ssh are, by their short names.
func readConfig(file string) (map[string]string, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	addresses := map[string]string{}
	var host, name string
	for lines := bufio.NewScanner(bytes.NewReader(content)); lines.Scan(); {
		key, value, _ := strings.Cut(strings.TrimSpace(lines.Text()), " ")
		switch key {
		case "Host":
			host = value
		case "HostName":
			name = value
		case "Port":
			addresses[host] = net.JoinHostPort(name, value)
		}
	}
	return addresses, nil
}

// askUntil asks a host for its name until it answers.
func askUntil(ctx context.Context, address string, key ssh.Signer) (string, error) {
	for {
		said, err := ask(ctx, address, key)
		if err == nil {
			return said, nil
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return "", fmt.Errorf("%w; last: %w", context.Cause(ctx), err)
		}
	}
}

func ask(ctx context.Context, address string, key ssh.Signer) (string, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	connection, channels, requests, err := ssh.NewClientConn(conn, address, &ssh.ClientConfig{
		User: "root",
		Auth: []ssh.AuthMethod{ssh.PublicKeys(key)},
		// As the config says (StrictHostKeyChecking no): each Pod has a key of its own.
		HostKeyCallback: ssh.InsecureIgnoreHostKey(),
	})
	if err != nil {
		return "", err
	}
	client := ssh.NewClient(connection, channels, requests)
	defer client.Close()
	session, err := client.NewSession()
	if err != nil {
		return "", err
	}
	defer session.Close()
	said, err := session.Output("hostname")
	return strings.TrimSpace(string(said)), err
}

// serveSSH is an sshd that knows one command, hostname. Whoever has the private key of an
// authorized one may log in.
func serveSSH(ctx context.Context, folder string, listen func(port string) (net.Listener, error)) error {
	authorized, err := os.ReadFile(filepath.Join(folder, "authorized_keys"))
	if err != nil {
		return err
	}
	public, _, _, _, err := ssh.ParseAuthorizedKey(authorized)
	if err != nil {
		return fmt.Errorf("reading authorized_keys: %w", err)
	}
	config := &ssh.ServerConfig{PublicKeyCallback: func(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
		if !bytes.Equal(key.Marshal(), public.Marshal()) {
			return nil, errors.New("the key is not an authorized one")
		}
		return nil, nil
	}}
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return err
	}
	own, err := ssh.NewSignerFromKey(private)
	if err != nil {
		return err
	}
	config.AddHostKey(own)
	listener, err := listen("22")
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { listener.Close() })()
	for {
		conn, err := listener.Accept()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		go func() {
			if err := serveLogin(conn, config); err != nil {
				log.Printf("%s: %v", conn.RemoteAddr(), err)
			}
		}()
	}
}

// serveLogin serves one connection until its client ends it.
func serveLogin(conn net.Conn, config *ssh.ServerConfig) error {
	defer conn.Close()
	connection, channels, requests, err := ssh.NewServerConn(conn, config)
	if err != nil {
		return err
	}
	defer connection.Close()
	go ssh.DiscardRequests(requests)
	for asked := range channels {
		if asked.ChannelType() != "session" {
			if err := asked.Reject(ssh.UnknownChannelType, "want a session"); err != nil {
				return err
			}
			continue
		}
		channel, requests, err := asked.Accept()
		if err != nil {
			return err
		}
		for request := range requests {
			if err := serveCommand(channel, request); err != nil {
				return err
			}
		}
	}
	return nil
}

// serveCommand executes a command, which ends the session.
func serveCommand(channel ssh.Channel, request *ssh.Request) error {
	var command struct{ Line string }
	known := request.Type == "exec" && ssh.Unmarshal(request.Payload, &command) == nil && command.Line == "hostname"
	if err := request.Reply(known, nil); err != nil || !known {
		return err
	}
	name, err := os.Hostname()
	if err != nil {
		return err
	}
	if _, err := io.WriteString(channel, name+"\n"); err != nil {
		return err
	}
	if _, err := channel.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{})); err != nil {
		return err
	}
	return channel.Close()
}
