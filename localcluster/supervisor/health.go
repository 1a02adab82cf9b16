// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/lockstep-k8s/lockstep/localcluster/cluster"
)

// healthChecker asks programs on this machine whether they are healthy.
type healthChecker struct {
	client *http.Client
}

// newHealthChecker returns a checker that identifies itself as the administrator, for etcd
// answers nobody else. It does not check whom it talks to: the scheduler serves a certificate
// that it made itself, and the answer is worth no more than a port number.
func newHealthChecker(layout cluster.Layout) (*healthChecker, error) {
	name := cluster.Admin().Name
	pair, err := tls.LoadX509KeyPair(layout.Cert(name), layout.Key(name))
	if err != nil {
		return nil, fmt.Errorf("loading the administrator's certificate: %w", err)
	}
	return &healthChecker{client: &http.Client{
		Timeout: 5 * time.Second,
		Transport: &http.Transport{
			DisableKeepAlives: true,
			TLSClientConfig: &tls.Config{
				Certificates:       []tls.Certificate{pair},
				InsecureSkipVerify: true,
			},
		},
	}}, nil
}

// check returns nil if the URL answers 200, and else what it said.
func (h *healthChecker) check(ctx context.Context, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := h.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusOK {
		return nil
	}
	body, _ := io.ReadAll(io.LimitReader(response.Body, 300))
	return fmt.Errorf("%s answers %s: %s", url, response.Status, strings.Join(strings.Fields(string(body)), " "))
}
