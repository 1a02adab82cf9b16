// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net"
)

// tfConfig is what TF_CONFIG holds.
type tfConfig struct {
	Cluster map[string][]string
	Task    struct {
		Type  string
		Index int
	}
}

// serverType is the type of the tasks that all others call.
const serverType = "ps"

// tensorflow calls all parameter servers, or is one of them and waits for the calls of all
// others.
func tensorflow(ctx context.Context, config string, listen func(port string) (net.Listener, error)) error {
	var c tfConfig
	if err := json.Unmarshal([]byte(config), &c); err != nil {
		return fmt.Errorf("TF_CONFIG is %q: %w", config, err)
	}
	servers, others := c.Cluster[serverType], 0
	for kind, addresses := range c.Cluster {
		if kind != serverType {
			others += len(addresses)
		}
	}
	me := fmt.Sprintf("%s-%d", c.Task.Type, c.Task.Index)
	switch {
	case len(servers) == 0 || others == 0:
		return fmt.Errorf("TF_CONFIG is %q: want parameter servers, and others that call them", config)
	case c.Task.Type != serverType:
		for _, server := range servers {
			callers, err := call(ctx, server, me)
			if err != nil {
				return err
			}
			log.Printf("%s: %s was called by all %s", me, server, callers)
		}
		return nil
	case c.Task.Index < 0 || c.Task.Index >= len(servers):
		return errors.New("TF_CONFIG does not have the address of this task")
	}
	_, port, err := net.SplitHostPort(servers[c.Task.Index])
	if err != nil {
		return fmt.Errorf("TF_CONFIG: %w", err)
	}
	listener, err := listen(port)
	if err != nil {
		return err
	}
	defer listener.Close()
	callers, err := answer(ctx, listener, others)
	if err != nil {
		return err
	}
	log.Printf("%s: called by %v", me, callers)
	return nil
}
