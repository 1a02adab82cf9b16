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
	"golang.org/x/sync/errgroup"
)

// sshFolder is where plugin ssh has put the keys and what ssh has to know of the hosts, or where an
// MPIJob has its keys.
const sshFolder = "/root/.ssh"

// host is one that mpirun starts a process on.
type host struct{ name, address string }

// mpi is launch for the hosts of a list, where they are by the configuration of ssh.
func mpi(ctx context.Context, list, folder string, listen listenFunc) error {
	if list == "" {
		return errors.New("MPI_HOST is empty")
	}
	config, err := readConfig(filepath.Join(folder, "config"))
	if err != nil {
		return err
	}
	var hosts []host
	for long := range strings.SplitSeq(list, ",") {
		name, _, _ := strings.Cut(long, ".")
		address, found := config[name]
		if !found {
			return fmt.Errorf("the config of ssh does not know the host %q", name)
		}
		hosts = append(hosts, host{name, address})
	}
	return launch(ctx, hosts, folder, listen)
}

// mpiByFile is launch for the hosts of a file that OpenMPI reads, each with its slots, by the names that
// they have there.
func mpiByFile(ctx context.Context, hostFile, folder string, listen listenFunc) error {
	content, err := os.ReadFile(hostFile)
	if err != nil {
		return err
	}
	var hosts []host
	for line := range strings.Lines(string(content)) {
		long, slots, _ := strings.Cut(strings.TrimSpace(line), " ")
		if !strings.HasPrefix(slots, "slots=") {
			return fmt.Errorf("a line of %s is %q, want a host and its slots", hostFile, line)
		}
		name, _, _ := strings.Cut(long, ".")
		hosts = append(hosts, host{name, net.JoinHostPort(long, "22")})
	}
	if len(hosts) == 0 {
		return fmt.Errorf("%s names no hosts", hostFile)
	}
	return launch(ctx, hosts, folder, listen)
}

// launch logs in to each host as mpirun does, asks for its name, and starts what calls back, and hears from the
// launcher where the others are.
func launch(ctx context.Context, hosts []host, folder string, listen listenFunc) error {
	key, err := readKey(folder)
	if err != nil {
		return err
	}
	meeting, err := listen("0")
	if err != nil {
		return err
	}
	defer meeting.Close()
	at, err := addressOf(ctx, meeting)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	met := make(chan error, 1)
	go func() {
		_, err := answer(ctx, meeting, len(hosts), roll)
		met <- err
	}()
	for rank, host := range hosts {
		group.Go(func() error {
			said, err := askUntil(ctx, host.address, key, "hostname")
			if err != nil {
				return fmt.Errorf("logging in to %s at %s: %w", host.name, host.address, err)
			}
			if said != host.name {
				return fmt.Errorf("%s says that its name is %q, want %q", host.address, said, host.name)
			}
			log.Printf("logged in to %s", said)
			if _, err := ask(ctx, host.address, key, fmt.Sprintf("join %s %d", at, rank)); err != nil {
				return fmt.Errorf("having %s join the others: %w", host.name, err)
			}
			return nil
		})
	}
	// Who can't log in says why nobody has called back.
	if err := group.Wait(); err != nil {
		return err
	}
	if err := <-met; err != nil {
		return err
	}
	log.Printf("all %d hosts have called each other", len(hosts))
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

// askUntil has a host execute a command, and tries until it does.
func askUntil(ctx context.Context, address string, key ssh.Signer, command string) (string, error) {
	for {
		said, err := ask(ctx, address, key, command)
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

// ask has a host execute a command, and returns what that says.
func ask(ctx context.Context, address string, key ssh.Signer, command string) (string, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
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
	said, err := session.Output(command)
	return strings.TrimSpace(string(said)), err
}

// serveSSH is an sshd that knows two commands, hostname and join. Whoever has the private key of an
// authorized one may log in.
func serveSSH(ctx context.Context, folder string, listen listenFunc) error {
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
			if err := serveLogin(ctx, conn, config, listen); err != nil {
				log.Printf("%s: %v", conn.RemoteAddr(), err)
			}
		}()
	}
}

// serveLogin serves one connection until its client ends it.
func serveLogin(ctx context.Context, conn net.Conn, config *ssh.ServerConfig, listen listenFunc) error {
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
			if err := serveCommand(ctx, channel, request, listen); err != nil {
				return err
			}
		}
	}
	return nil
}

// serveCommand executes a command, which ends the session.
func serveCommand(ctx context.Context, channel ssh.Channel, request *ssh.Request, listen listenFunc) error {
	var command struct{ Line string }
	known := request.Type == "exec" && ssh.Unmarshal(request.Payload, &command) == nil
	if err := request.Reply(known, nil); err != nil || !known {
		return err
	}
	said, failed := execute(ctx, command.Line, listen)
	status := uint32(0)
	if failed != nil {
		log.Printf("%s: %v", command.Line, failed)
		status = 1
	}
	if _, err := io.WriteString(channel, said+"\n"); err != nil {
		return err
	}
	if _, err := channel.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{status})); err != nil {
		return err
	}
	return channel.Close()
}

// execute executes the command hostname, or "join ADDRESS RANK", which is for the launcher's host at that address.
func execute(ctx context.Context, line string, listen listenFunc) (string, error) {
	if line == "hostname" {
		return os.Hostname()
	}
	var address string
	var rank int
	if _, err := fmt.Sscanf(line, "join %s %d", &address, &rank); err != nil {
		return "", fmt.Errorf("want hostname, or join ADDRESS RANK: %w", err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("gave up after %v", patience))
	defer cancel()
	return "", meet(ctx, address, false, 0, member{rank: rank}, listen)
}
