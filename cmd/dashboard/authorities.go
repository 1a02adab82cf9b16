// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"time"

	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/apiserver/pkg/server/options"
	"k8s.io/klog/v2"
)

// authoritiesTime bounds how long the start waits for the certificate authorities, because an API server may publish
// none.
const authoritiesTime = 5 * time.Second

// authorities are the certificate authorities of users and of proxies, read from a ConfigMap of the cluster. The
// server would otherwise start before it has read the ConfigMap, and refuse the first visitor with a certificate. So
// the first step of reading lasts until the ConfigMap was read.
type authorities struct {
	dynamiccertificates.CAContentProvider
	reading dynamiccertificates.ControllerRunner
	// lookups is how many readers there are. Each sends to heard when it has read.
	lookups int
	heard   chan struct{}
}

// awaited makes the server wait until it has read its certificate authorities from the cluster, if the options let it
// look them up there. proxies says whether the authorities of authenticating proxies are among them; the options may
// allow to start without those.
func awaited(provider dynamiccertificates.CAContentProvider, by *options.DelegatingAuthenticationOptions, proxies bool) dynamiccertificates.CAContentProvider {
	reading, reads := provider.(dynamiccertificates.ControllerRunner)
	if !reads || by.SkipInClusterLookup {
		return provider
	}
	a := &authorities{CAContentProvider: provider, reading: reading}
	if by.ClientCert.ClientCA == "" {
		a.lookups++
	}
	if by.RequestHeader.ClientCAFile == "" && proxies {
		a.lookups++
	}
	a.heard = make(chan struct{}, a.lookups)
	provider.AddListener(a)
	return a
}

// Enqueue hears that an authority was read.
func (a *authorities) Enqueue() {
	select {
	case a.heard <- struct{}{}:
	default: // One has changed since.
	}
}

// RunOnce starts to read the authorities, which goes on until the context ends, and returns when they are read, or
// after authoritiesTime.
func (a *authorities) RunOnce(ctx context.Context) error {
	go a.reading.Run(ctx, 1)
	late := time.After(authoritiesTime)
	for range a.lookups {
		select {
		case <-a.heard:
		case <-ctx.Done():
			return nil
		case <-late:
			klog.FromContext(ctx).Info("The API server does not name all authorities of client certificates yet: who shows a certificate may not be known until it does")
			return nil
		}
	}
	return nil
}

// Run lasts until the context ends. RunOnce has begun what there is to do.
func (a *authorities) Run(ctx context.Context, _ int) { <-ctx.Done() }
