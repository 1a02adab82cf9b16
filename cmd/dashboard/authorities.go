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

// authoritiesTime is how long the start waits at most for the certificate authorities. The API server of a cluster may
// publish none.
const authoritiesTime = 5 * time.Second

// authorities are the certificate authorities of users and of proxies, from a ConfigMap of the cluster. Without them
// the server would refuse the first visitor who has a certificate. So the first step of reading ends only when the
// ConfigMap was read, and the server waits for that.
type authorities struct {
	dynamiccertificates.CAContentProvider
	reading dynamiccertificates.ControllerRunner
	// lookups is the number of readers. Each reader sends to heard when it has read the ConfigMap.
	lookups int
	heard   chan struct{}
}

// awaited returns a provider of certificate authorities that makes the server wait until they were read from the
// cluster, if the options allow reading them there. proxies says whether the provider is for the authorities of
// authenticating proxies, which the options may declare optional.
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

// RunOnce starts reading the authorities, which continues until the context ends. RunOnce returns when they have been
// read once, or after authoritiesTime.
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
