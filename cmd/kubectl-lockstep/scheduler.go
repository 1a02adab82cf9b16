// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
)

// maxRefusal is how much is read of an answer that is none.
const maxRefusal = 4 << 10

func addScheduler(cmd *cobra.Command, at *string) {
	cmd.Flags().StringVar(at, "scheduler", "", "URL of the scheduler's --answers-address, such as https://127.0.0.1:10260 where kubectl forwards that port: what the scheduler alone knows is then told, too")
}

// connectToAsk checks the flags of a verb that asks why gangs wait before it connects to the cluster. at is where the
// scheduler answers, nil if it is not to be asked.
func (s *session) connectToAsk(output, scheduler string) (c *cluster, at *url.URL, err error) {
	if err := checkOutput(output); err != nil {
		return nil, nil, err
	}
	if at, err = parseScheduler(scheduler); err != nil {
		return nil, nil, err
	}
	c, err = s.connect()
	return c, at, err
}

// parseScheduler reads --scheduler; nil if that is empty.
func parseScheduler(text string) (*url.URL, error) {
	if text == "" {
		return nil, nil
	}
	at, err := url.Parse(text)
	// The token of the user is sent there.
	if err != nil || at.Scheme != "https" || at.Host == "" || strings.Trim(at.Path, "/") != "" || at.RawQuery != "" {
		return nil, misuse("--scheduler="+text+" is not the URL of a scheduler", "such as https://127.0.0.1:10260")
	}
	return at, nil
}

// askScheduler asks the scheduler, with the credentials that the user has for the API server.
func (c *cluster) askScheduler(ctx context.Context, at *url.URL, path, query string, answer any) error {
	config := rest.CopyConfig(c.config)
	if config.Impersonate.UserName != "" {
		return misuse("--as and --scheduler don't go together", "the scheduler answers whoever asks it")
	}
	config.Host, config.Transport = at.Host, nil
	// The scheduler has another certificate than the API server and, if it was given none, one that it has made itself.
	// Whom a port of this machine is forwarded to, the API server has vouched for.
	ip := net.ParseIP(at.Hostname())
	config.ServerName, config.CAFile, config.CAData = "", "", nil
	if config.Insecure = at.Hostname() == "localhost" || ip != nil && ip.IsLoopback(); config.Insecure {
		config.Proxy = nil // Behind that of the cluster there is another loopback.
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return err
	}
	where := url.URL{Scheme: "https", Host: at.Host, Path: "/lockstep/v1/" + path, RawQuery: query}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, where.String(), nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("asking the scheduler: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(response.Body, maxRefusal))
		refused := &failure{code: exitFailed, message: fmt.Sprintf("the scheduler answers %s: %s", response.Status, text)}
		switch response.StatusCode {
		case http.StatusUnauthorized, http.StatusForbidden:
			refused.code = exitForbidden
		case http.StatusServiceUnavailable:
			refused.hint = "only the replica that leads answers: `kubectl -n lockstep-system get lease lockstep-scheduler` says which"
		}
		return refused
	}
	return json.NewDecoder(response.Body).Decode(answer)
}
