// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"time"
)

// Options say what to measure.
type Options struct {
	// Cases is a regular expression that selects by name.
	Cases string
	// Rounds is how often to measure what is compared, at least 1.
	Rounds int
	// Out is the folder of results, made if missing.
	Out string
}

// Run measures the selected cases one after the other and writes the report. It
// goes on after a case that fails. It returns an error if one failed, or if one
// of its figures misses its bar.
func Run(ctx context.Context, cases []Case, options Options) error {
	selected, err := choose(cases, options)
	if err != nil {
		return err
	}
	results, err := load(options.Out)
	if err != nil {
		return err
	}
	var errs []error
	for _, c := range selected {
		if ctx.Err() != nil {
			errs = append(errs, ctx.Err())
			break
		}
		result, err := measure(ctx, c, options)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", c.Name, err))
			continue
		}
		for _, figure := range result.Figures {
			if !figure.Holds() {
				errs = append(errs, fmt.Errorf("%s misses its bar: %s", c.Name, figure))
			}
		}
		results.put(c, result)
		if err := results.save(options.Out); err != nil {
			return err
		}
	}
	if err := results.print(os.Stdout, selected); err != nil {
		return err
	}
	return errors.Join(errs...)
}

func choose(cases []Case, options Options) ([]Case, error) {
	if options.Rounds < 1 {
		return nil, fmt.Errorf("-rounds %d is not at least 1", options.Rounds)
	}
	pattern, err := regexp.Compile(options.Cases)
	if err != nil {
		return nil, fmt.Errorf("-cases %q: %w", options.Cases, err)
	}
	var selected []Case
	for _, c := range cases {
		if pattern.MatchString(c.Name) {
			selected = append(selected, c)
		}
	}
	if len(selected) == 0 {
		return nil, fmt.Errorf("-cases %q fits none of the cases, see -list", options.Cases)
	}
	return selected, nil
}

// measure runs one case and draws its pictures.
func measure(ctx context.Context, c Case, options Options) (result Result, err error) {
	limit := c.Limit
	if limit == 0 {
		limit = DefaultLimit
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	b := &Bench{Rounds: options.Rounds, name: c.Name}
	defer func() { err = errors.Join(err, b.down(ctx)) }()
	b.Logf("%s", c.Title)
	if err := c.Run(ctx, b); err != nil {
		return Result{}, err
	}
	for _, chart := range b.charts {
		if err := os.MkdirAll(options.Out, 0o755); err != nil {
			return Result{}, err
		}
		if err := os.WriteFile(filepath.Join(options.Out, chart.File), []byte(chart.SVG()), 0o644); err != nil {
			return Result{}, err
		}
	}
	return Result{Title: c.Title, Measured: time.Now().UTC().Truncate(time.Second), Machine: thisMachine(), Figures: b.figures}, nil
}
