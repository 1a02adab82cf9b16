// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/lockstep-k8s/lockstep/internal/cputime"
)

// count counts bindings, and tells when the first and the last one came.
type count struct {
	n       atomic.Int64
	all     int64
	reached chan time.Time
	// first is sent the processor time that was used when the first one came.
	first chan time.Duration
}

func newCount(all int) *count {
	return &count{all: int64(all), reached: make(chan time.Time, 1), first: make(chan time.Duration, 1)}
}

func (c *count) add() {
	n := c.n.Add(1)
	if n == 1 {
		used, _ := cputime.Used() // it has not failed before
		c.first <- used
	}
	if n == c.all {
		c.reached <- time.Now()
	}
}

// client is a real client but for bindings, which it counts and does not write.
type client struct {
	kubernetes.Interface
	all *count
}

func (c client) CoreV1() typedcorev1.CoreV1Interface {
	return core{CoreV1Interface: c.Interface.CoreV1(), all: c.all}
}

type core struct {
	typedcorev1.CoreV1Interface
	all *count
}

func (c core) Pods(namespace string) typedcorev1.PodInterface {
	return podClient{PodInterface: c.CoreV1Interface.Pods(namespace), all: c.all}
}

type podClient struct {
	typedcorev1.PodInterface
	all *count
}

func (c podClient) Bind(context.Context, *corev1.Binding, metav1.CreateOptions) error {
	c.all.add()
	return nil
}
