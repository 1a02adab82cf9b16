// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/lockstep-k8s/lockstep/localcluster/cluster"
	"github.com/lockstep-k8s/lockstep/localcluster/process"
	"github.com/lockstep-k8s/lockstep/localcluster/realnode"
)

// NodeProgram is the name under which `status` and `logs` know the init of the real node.
const NodeProgram = "node"

// Names of the hidden subcommands with which lockstep-local starts itself.
const (
	SuperviseCommand = "supervise"
	NodeCommand      = "node"
	ReapCommand      = "reap"
)

// startRealNode brings up the node that runs containers, and the name server for its Pods.
func (s *supervisor) startRealNode(ctx context.Context, client kubernetes.Interface) error {
	if !s.plan.Options.RealNode {
		return nil
	}
	began := time.Now()
	forwardAPI(netip.AddrPortFrom(s.plan.Network.APIService(), 443), s.plan.Ports.APIServer)
	planFile, err := realnode.Prepare(&s.plan)
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding the executable: %w", err)
	}
	spec := process.Spec{
		Name:     NodeProgram,
		Path:     self,
		Args:     []string{NodeCommand, planFile},
		Dir:      s.plan.Layout.Dir,
		Log:      s.plan.Layout.Log(NodeProgram),
		Isolated: true,
	}
	ready := func(ctx context.Context) error {
		node, err := client.CoreV1().Nodes().Get(ctx, cluster.RealNodeName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if !IsReady(node) {
			return fmt.Errorf("node %s is not ready: %s", node.Name, readyMessage(node))
		}
		return nil
	}
	if err := s.group.Start(ctx, spec, ready); err != nil {
		return err
	}
	s.progress("node %s is ready after %s", cluster.RealNodeName, since(began))
	return s.start(ctx, s.plan.CoreDNS())
}

func readyMessage(node *corev1.Node) string {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Message
		}
	}
	return "it has not reported yet"
}

// forwardAPI makes the API server reachable under its cluster IP, which the bridge has as an
// address: without kube-proxy nothing else would, and clients in Pods look for it there.
func forwardAPI(at netip.AddrPort, port int) {
	listener, err := net.Listen("tcp4", at.String())
	if err != nil {
		// Pods can do without; those that cannot will say so.
		log.Printf("the API server will not be reachable from Pods: %v", err)
		return
	}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go forward(conn, fmt.Sprintf("127.0.0.1:%d", port))
		}
	}()
}

func forward(conn net.Conn, target string) {
	defer conn.Close()
	upstream, err := net.Dial("tcp4", target)
	if err != nil {
		log.Printf("forwarding to the API server: %v", err)
		return
	}
	defer upstream.Close()
	done := make(chan struct{}, 2)
	for _, pair := range [][2]net.Conn{{conn, upstream}, {upstream, conn}} {
		go func() {
			io.Copy(pair[0], pair[1])
			done <- struct{}{}
		}()
	}
	<-done // one side has closed: so does the other
}

// startReaper starts the process that cleans up should this one be killed. It inherits the
// lock, so that the directory counts as in use until it is done. The returned pipe is open in
// this process alone (Go sets close-on-exec): the reaper sees its end when the pipe is closed
// or this process is gone, however that happens.
func startReaper(layout cluster.Layout, lockFile *os.File) (*os.File, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding the executable: %w", err)
	}
	read, write, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("making a pipe: %w", err)
	}
	defer read.Close()
	cmd := exec.Command(self, ReapCommand, layout.Dir)
	cmd.Stdin = read
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	cmd.ExtraFiles = []*os.File{lockFile}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		write.Close()
		return nil, fmt.Errorf("starting the reaper: %w", err)
	}
	go cmd.Wait()
	return write, nil
}

// Reap waits until the supervisor that started it is gone, and removes what that left outside
// the directory of the cluster.
func Reap(dir string) error {
	io.Copy(io.Discard, os.Stdin)
	return realnode.Cleanup(cluster.Layout{Dir: dir})
}
