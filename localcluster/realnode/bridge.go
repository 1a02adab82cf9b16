// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package realnode

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"

	"github.com/vishvananda/netlink"

	"github.com/lockstep-k8s/lockstep/localcluster/cluster"
)

// CreateBridge chooses a network that the machine does not use and makes its bridge, with the
// address of the node and that of the API server's Service. The bridge carries dir as its
// alias: that is how RemoveBridges knows whose it is.
//
// The name of the bridge stands for the network, and only one process can make it: two
// clusters that start at once get different networks.
func CreateBridge(dir string) (cluster.Network, error) {
	used, err := usedPrefixes()
	if err != nil {
		return cluster.Network{}, err
	}
	for {
		network, err := cluster.ChooseNetwork(used)
		if err != nil {
			return network, err
		}
		err = createBridge(network, dir)
		if err == nil {
			return network, nil
		}
		if !errors.Is(err, os.ErrExist) {
			return network, err
		}
		used = append(used, network.Pods())
	}
}

func createBridge(network cluster.Network, dir string) error {
	attributes := netlink.NewLinkAttrs()
	attributes.Name = network.BridgeName()
	attributes.HardwareAddr = hardwareAddr(network)
	bridge := &netlink.Bridge{LinkAttrs: attributes}
	if err := netlink.LinkAdd(bridge); err != nil {
		return fmt.Errorf("making bridge %s: %w", attributes.Name, err)
	}
	if err := configureBridge(bridge, network, dir); err != nil {
		return errors.Join(err, netlink.LinkDel(bridge))
	}
	return nil
}

// hardwareAddr is a locally administered address for the bridge. A bridge without one of its own
// takes the lowest of its ports' and so changes it as Pods come and go; the others then send to
// the old one for up to 45 seconds.
func hardwareAddr(network cluster.Network) net.HardwareAddr {
	ip := network.Bridge().As4()
	return net.HardwareAddr{0x02, 0, ip[0], ip[1], ip[2], ip[3]}
}

func configureBridge(bridge *netlink.Bridge, network cluster.Network, dir string) error {
	if err := netlink.LinkSetAlias(bridge, alias(dir)); err != nil {
		return fmt.Errorf("marking bridge %s: %w", bridge.Name, err)
	}
	addresses := []netip.Prefix{
		netip.PrefixFrom(network.Bridge(), network.Pods().Bits()),
		netip.PrefixFrom(network.APIService(), 32),
	}
	for _, a := range addresses {
		ipnet := &net.IPNet{IP: a.Addr().AsSlice(), Mask: net.CIDRMask(a.Bits(), 32)}
		if err := netlink.AddrAdd(bridge, &netlink.Addr{IPNet: ipnet}); err != nil {
			return fmt.Errorf("giving bridge %s the address %s: %w", bridge.Name, a, err)
		}
	}
	if err := netlink.LinkSetUp(bridge); err != nil {
		return fmt.Errorf("setting bridge %s up: %w", bridge.Name, err)
	}
	return nil
}

// RemoveBridges removes the bridges that CreateBridge made for dir.
func RemoveBridges(dir string) error {
	links, err := netlink.LinkList()
	if err != nil {
		return fmt.Errorf("listing network interfaces: %w", err)
	}
	for _, link := range links {
		if link.Type() != "bridge" || link.Attrs().Alias != alias(dir) {
			continue
		}
		if err := netlink.LinkDel(link); err != nil {
			return fmt.Errorf("removing bridge %s: %w", link.Attrs().Name, err)
		}
	}
	return nil
}

// alias is at most 255 bytes long, because dir is short (cluster.Options.Validate).
func alias(dir string) string {
	return "lockstep-local " + dir
}

// usedPrefixes lists the networks that the machine has an address in or a route to.
func usedPrefixes() ([]netip.Prefix, error) {
	var used []netip.Prefix
	add := func(n *net.IPNet) {
		if n == nil {
			return
		}
		address, ok := netip.AddrFromSlice(n.IP.To4())
		bits, _ := n.Mask.Size()
		// The default route leads everywhere and uses nothing.
		if ok && bits > 0 {
			used = append(used, netip.PrefixFrom(address, bits))
		}
	}
	addresses, err := netlink.AddrList(nil, netlink.FAMILY_V4)
	if err != nil {
		return nil, fmt.Errorf("listing addresses: %w", err)
	}
	for _, a := range addresses {
		add(a.IPNet)
	}
	routes, err := netlink.RouteList(nil, netlink.FAMILY_V4)
	if err != nil {
		return nil, fmt.Errorf("listing routes: %w", err)
	}
	for _, r := range routes {
		add(r.Dst)
	}
	return used, nil
}
