// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// Ports are the TCP ports of one cluster: neighbours in a block. All are bound to 127.0.0.1,
// but Kubelet, which is bound to the bridge.
type Ports struct {
	Claim, APIServer, EtcdClient, EtcdPeer, ControllerManager, Kwok int
	Controller, Scheduler                                           int
	Kubelet, KubeletHealth, CoreDNSHealth                           int
}

// Blocks of ports lie below 32768, where Linux takes the ports of outgoing connections from:
// such a connection could otherwise take a port between its choice and its use.
const (
	blockSize  = 16
	firstBlock = 20000
	blocks     = 780
)

func portsOf(base int) Ports {
	return Ports{
		Claim: base, APIServer: base + 1, EtcdClient: base + 2, EtcdPeer: base + 3,
		ControllerManager: base + 4, Kwok: base + 5, Controller: base + 6, Scheduler: base + 7,
		Kubelet: base + 8, KubeletHealth: base + 9, CoreDNSHealth: base + 10,
	}
}

// ClaimPorts finds a block of free ports. The first port of the block stands for the whole:
// it stays bound by the returned listener for as long as the cluster lives, so that no other
// lockstep-local takes the block.
func ClaimPorts() (Ports, net.Listener, error) {
	start := rand.IntN(blocks)
	for i := range blocks {
		base := firstBlock + (start+i)%blocks*blockSize
		claim, err := net.Listen("tcp4", loopback(base))
		if err != nil {
			continue
		}
		if allFree(base+1, base+blockSize-1) {
			return portsOf(base), claim, nil
		}
		claim.Close()
	}
	return Ports{}, nil, errors.New("no block of 16 free TCP ports between 20000 and 32480 on 127.0.0.1")
}

func allFree(from, to int) bool {
	for port := from; port <= to; port++ {
		l, err := net.Listen("tcp4", loopback(port))
		if err != nil {
			return false
		}
		l.Close()
	}
	return true
}

func loopback(port int) string {
	return fmt.Sprintf("127.0.0.1:%d", port)
}

func itoa[T int | uint8](n T) string {
	return strconv.Itoa(int(n))
}
