//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package dashboard looks at the web page as a person does: in a browser, on a real API server.
package dashboard

import (
	"context"
	"os"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/lockstep-k8s/lockstep/e2e/testbed"
	"github.com/lockstep-k8s/lockstep/internal/localenv"
)

var (
	// cluster is what the tests share. TestMain sets it once, before any test.
	cluster *testbed.Cluster
	// browser is the context of a browser, in which each test opens tabs of its own.
	browser context.Context
)

func TestMain(m *testing.M) {
	closes := func() {}
	code := testbed.Main(m, localenv.Options{
		SimulatedNodes: 6, NodeCPU: "8", NodePods: 2000, With: "scheduler",
	}, func(ctx context.Context, c *testbed.Cluster) error {
		cluster = c
		options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.IgnoreCertErrors, chromedp.WindowSize(1280, 900))
		if path := os.Getenv("BROWSER"); path != "" {
			options = append(options, chromedp.ExecPath(path))
		}
		allocator, closeAllocator := chromedp.NewExecAllocator(ctx, options...)
		var closeBrowser context.CancelFunc
		browser, closeBrowser = chromedp.NewContext(allocator)
		closes = func() {
			closeBrowser()
			closeAllocator() // It waits for the browser, and removes its files.
		}
		if err := chromedp.Do(browser, chromedp.Navigate("about:blank")); err != nil {
			return err
		}
		return c.RunController(ctx, localenv.ControllerOptions{})
	})
	closes()
	os.Exit(code)
}
