// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package barrier

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"
)

// maxLookup bounds one lookup of Resolve: a resolver asks several servers about several domains, and some never answer.
const maxLookup = 10 * time.Second

// Resolution is what Resolve waits for.
type Resolution struct {
	// Name is the name of a host, completed by the search domains of the Pod as programs do.
	Name string
	// Tries is the number of lookups, 1 or more, and Interval the time from one to the next.
	Tries    int
	Interval time.Duration
}

// Resolve looks up a name until it has an address, and writes a line about each try. It returns
// ErrNoAddress after the last one, and ErrTerminated if ctx ends before. lookup is that of a net.Resolver.
func Resolve(ctx context.Context, r Resolution, lookup func(ctx context.Context, host string) ([]string, error), out io.Writer) error {
	for try := 1; ; try++ {
		bounded, stop := context.WithTimeout(ctx, maxLookup)
		addresses, err := lookup(bounded, r.Name)
		stop()
		if err == nil && len(addresses) > 0 {
			fmt.Fprintf(out, "%s has the address %s\n", r.Name, strings.Join(addresses, ", "))
			return nil
		}
		if ctx.Err() == nil {
			fmt.Fprintf(out, "try %d of %d: %s has no address yet: %v\n", try, r.Tries, r.Name, err)
			if try >= r.Tries {
				return fmt.Errorf("%w: %s, after %d tries", ErrNoAddress, r.Name, try)
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w while waiting for the address of %s", ErrTerminated, r.Name)
		case <-time.After(r.Interval):
		}
	}
}
