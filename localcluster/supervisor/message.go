// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"encoding/json"
	"io"
	"sync"

	"github.com/lockstep-k8s/lockstep/localcluster/cluster"
)

// Order is what `up` tells the supervisor, as one line of JSON on its standard input. `up`
// keeps that pipe open until the cluster is ready: should it close before, `up` is gone and
// the supervisor tears down what it has.
type Order struct {
	Options  cluster.Options   `json:"options"`
	Binaries map[string]string `json:"binaries"`
}

// Message is what the supervisor tells `up`, as lines of JSON on its standard output. The last
// one is Ready or has an Error.
type Message struct {
	// Progress is a line for a person to read.
	Progress string `json:"progress,omitempty"`
	Ready    bool   `json:"ready,omitempty"`
	Error    string `json:"error,omitempty"`
}

// sender writes messages. Nobody may be reading any more; then they are dropped.
type sender struct {
	mu  sync.Mutex
	out io.Writer
}

func (s *sender) send(m Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	json.NewEncoder(s.out).Encode(m)
}
