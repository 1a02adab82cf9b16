// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"net/netip"
)

// Network is the address plan of one cluster: 10.X.0.0/16 for some X, of which
//
//	10.X.0.0/24   holds the Pods of the real node; 10.X.0.1 is the bridge, which is the
//	              node's address and where CoreDNS listens
//	10.X.64.0/18  holds the cluster IPs of Services; the first one is that of the API server
type Network struct {
	X uint8
}

// firstX and lastX bound X: a range of 10/8 that few private networks use.
const firstX, lastX = 150, 250

// BridgeName is the name of the bridge that the Pods of the real node hang on.
func (n Network) BridgeName() string { return "lockstep" + itoa(n.X) }

// Bridge is the address of the bridge.
func (n Network) Bridge() netip.Addr { return netip.AddrFrom4([4]byte{10, n.X, 0, 1}) }

// Pods holds the addresses of the real node's Pods.
func (n Network) Pods() netip.Prefix { return n.prefix(0, 24) }

// Services holds the cluster IPs.
func (n Network) Services() netip.Prefix { return n.prefix(64, 18) }

// APIService is the cluster IP of the Service default/kubernetes: the first of the range.
func (n Network) APIService() netip.Addr { return n.Services().Addr().Next() }

func (n Network) prefix(third byte, bits int) netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, n.X, third, 0}), bits)
}

// ErrNoNetwork says that every range that ChooseNetwork may give is in use.
var ErrNoNetwork = errors.New("no free network for Pods: the machine uses all of 10.150.0.0/16 to 10.250.0.0/16")

// ChooseNetwork returns the first network that overlaps none of those in use on the machine.
func ChooseNetwork(used []netip.Prefix) (Network, error) {
next:
	for x := firstX; x <= lastX; x++ {
		n := Network{X: uint8(x)}
		for _, u := range used {
			if u.Overlaps(n.prefix(0, 16)) {
				continue next
			}
		}
		return n, nil
	}
	return Network{}, ErrNoNetwork
}
