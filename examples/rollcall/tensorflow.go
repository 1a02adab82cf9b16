// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"slices"
)

// tfConfig is what TF_CONFIG holds.
type tfConfig struct {
	Cluster map[string][]string
	Task    struct {
		Type  string
		Index int
	}
}

// tensorflow calls all others of the cluster, and is called by them at its own address.
func tensorflow(ctx context.Context, config string, listen listenFunc) error {
	var c tfConfig
	if err := json.Unmarshal([]byte(config), &c); err != nil {
		return fmt.Errorf("TF_CONFIG is %q: %w", config, err)
	}
	if c.Task.Index < 0 || c.Task.Index >= len(c.Cluster[c.Task.Type]) {
		return fmt.Errorf("TF_CONFIG is %q, which does not have the address of this task", config)
	}
	me := c.Task.Index
	var addresses []string
	for _, kind := range slices.Sorted(maps.Keys(c.Cluster)) {
		if kind == c.Task.Type {
			me += len(addresses)
		}
		addresses = append(addresses, c.Cluster[kind]...)
	}
	_, port, err := net.SplitHostPort(addresses[me])
	if err != nil {
		return fmt.Errorf("TF_CONFIG: %w", err)
	}
	own, err := listen(port)
	if err != nil {
		return err
	}
	defer own.Close()
	return all(ctx, own, me, addresses)
}
