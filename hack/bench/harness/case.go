// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package harness runs measurements and reports them: it brings up clusters,
// reads what programs say of themselves, holds figures to bars, and keeps the
// results of a folder from run to run, so that cases can be measured one by one.
package harness

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/lockstep-k8s/lockstep/internal/localenv"
)

// Case is one measurement.
type Case struct {
	// Name is what -cases selects by: suite/case.
	Name string
	// Title says what is measured.
	Title string
	// Limit bounds the whole case, 0 for DefaultLimit.
	Limit time.Duration
	// Run measures. What it brought up by Bench is taken down after it.
	Run func(ctx context.Context, b *Bench) error
}

// DefaultLimit is how long a case may take: much longer than it does.
const DefaultLimit = 10 * time.Minute

// Bench is what a case has to work with.
type Bench struct {
	// Rounds is how often to measure what is compared.
	Rounds int

	name     string
	clusters []*localenv.Cluster
	figures  []Figure
	charts   []Chart
}

// Up brings a cluster up, which lasts as long as the case.
func (b *Bench) Up(ctx context.Context, options localenv.Options) (*Cluster, error) {
	options.Output = os.Stderr
	cluster, err := localenv.Up(ctx, options)
	if err != nil {
		return nil, err
	}
	b.clusters = append(b.clusters, cluster)
	return &Cluster{Cluster: cluster}, nil
}

// down takes all clusters down. ctx may have ended.
func (b *Bench) down(ctx context.Context) error {
	var first error
	for _, cluster := range b.clusters {
		if err := cluster.Down(context.WithoutCancel(ctx)); err != nil && first == nil {
			first = err
		}
	}
	b.clusters = nil
	return first
}

// Report reports a figure. How it came about goes to the log at once.
func (b *Bench) Report(figure Figure) {
	b.figures = append(b.figures, figure)
	b.Logf("%s", figure)
}

// Draw adds a picture, drawn when the case has ended well.
func (b *Bench) Draw(chart Chart) {
	b.charts = append(b.charts, chart)
}

// Logf tells whoever watches what is going on.
func (b *Bench) Logf(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%s %s: %s\n", time.Now().Format(time.TimeOnly), b.name, fmt.Sprintf(format, args...))
}
