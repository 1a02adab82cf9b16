// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package served

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
)

const (
	// changeInterval is the time between two requests that ask the API server what it serves. changeSettling is the
	// time between them while the answer differs from the one at the start. Both are lengthened by a random share of up
	// to changeJitter, so that replicas of the scheduler do not exit at the same time.
	changeInterval = 5 * time.Minute
	changeSettling = time.Minute
	changeJitter   = 0.5
	// changeAnswers is how often in a row the API server has to give the same new answer. While an API server with
	// several replicas is upgraded, old and new replicas answer by turns.
	changeAnswers = 10
	// leastLife is how long the program runs before it may exit for a change. If an API server keeps changing its
	// answer, there is a failover only now and then.
	leastLife = 30 * time.Minute
)

// AwaitChange waits for a change of the resources that the API server serves: a resource that the scheduler has done
// without since its start is now served, or one that the scheduler uses is no longer served. The API server has to say
// so for several minutes. AwaitChange returns a line that describes the change, or "" if ctx ends. The caller should
// then exit and be restarted, because a scheduler is built for the resources that were served at its start.
//
// AwaitChange ignores resources that the command line demands: without these the program would not start again.
func AwaitChange(ctx context.Context, a *APIs, config *rest.Config) (string, error) {
	again, err := askAnew(config)
	if err != nil {
		return "", err
	}
	began := time.Now()
	said, times := "", 0
	for pause := changeInterval; ; {
		select {
		case <-ctx.Done():
			return "", nil
		case <-time.After(wait.Jitter(pause, changeJitter)):
		}
		var change string
		now, err := again(ctx)
		if err == nil {
			change = changeTo(a, now)
		} // else it says nothing, and what it said before does not count
		if change != said {
			said, times = change, 0
		}
		if change == "" {
			pause = changeInterval
			continue
		}
		if times++; times >= changeAnswers && time.Since(began) >= leastLife {
			return fmt.Sprintf("API server %s %s: the program ends, to be started again for that", now.version, change), nil
		}
		pause = changeSettling
	}
}

// askAnew returns a function that asks the API server over a new connection each time. An existing connection always
// leads to the same replica of the API server.
func askAnew(config *rest.Config) (func(context.Context) (*APIs, error), error) {
	config = rest.CopyConfig(config)
	config.Timeout = answerTimeout
	config.DisableCompression = false // otherwise the client would share the scheduler's connection
	http, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("making a client for discovery: %w", err)
	}
	client, err := discovery.NewDiscoveryClientForConfigAndClient(config, http)
	if err != nil {
		return nil, fmt.Errorf("making a client for discovery: %w", err)
	}
	return func(ctx context.Context) (*APIs, error) {
		defer utilnet.CloseIdleConnectionsFor(http.Transport)
		return ask(ctx, client)
	}, nil
}

// changeTo returns a line that says which resources the API server now serves and did not serve before, or the reverse.
// It is "" if nothing has changed that the scheduler depends on.
func changeTo(a *APIs, now *APIs) string {
	var come, gone []schema.GroupVersionResource
	for _, resource := range followed(a) {
		switch was, is := a.serves(resource), now.serves(resource); {
		case is && !was:
			come = append(come, resource)
		case was && !is:
			gone = append(gone, resource)
		}
	}
	var parts []string
	if len(come) > 0 {
		parts = append(parts, "serves "+describe(come...)+" now, which it did not")
	}
	if len(gone) > 0 {
		parts = append(parts, "does not serve "+describe(gone...)+" any more")
	}
	return strings.Join(parts, ", and ")
}

// followed returns the resources that decide how the scheduler is built.
func followed(a *APIs) []schema.GroupVersionResource {
	var resources []schema.GroupVersionResource
	for _, kind := range claimKinds {
		resources = append(resources, kind.resource)
	}
	if !a.taintsAreFixed {
		resources = append(resources, deviceTaintRules)
	}
	return resources
}
