// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Command frameworkbarrier runs as an init container. It waits until every task of its Framework has an address; with
// the argument `resolve`, until a host name can be resolved. See package barrier and docs/barrier.md.
package main

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"k8s.io/component-base/version"
	"k8s.io/klog/v2"

	"github.com/lockstep-k8s/lockstep/barrier"
	"github.com/lockstep-k8s/lockstep/internal/buildinfo"
)

// terminationLog is the file whose content the kubelet puts into the container's status, unless the Pod names another
// file. The content becomes part of the Framework's status.
const terminationLog = "/dev/termination-log"

const usage = `frameworkbarrier resolve [--tries N] [--interval DURATION] NAME waits until a name can be
looked up, as workers of a PyTorchJob do for their master. It exits with 0 or 1.

frameworkbarrier waits until every task of its Framework has an address, and
writes framework.json and injector.sh. It is configured by environment variables:

  FC_FRAMEWORK_NAMESPACE      the Framework; set by lockstep-controller
  FC_FRAMEWORK_NAME
  BARRIER_CHECK_INTERVAL_SEC  least time between looks, 5 or more (default 10)
  BARRIER_CHECK_TIMEOUT_SEC   how long to wait, 60 or more (default 600)
  BARRIER_OUTPUT_DIR          where to write (default /mnt/frameworkbarrier)
  KUBECONFIG                  the cluster (default $HOME/.kube/config if there is
                              one, else the Pod's service account)
  KUBE_APISERVER_ADDRESS      the API server, instead of the kubeconfig's

It exits with 0 when it has passed, 201 when tasks were missing until the end, 210
when its configuration is bad or there is no such Framework, and 1 else.

`

func main() {
	klog.InitFlags(nil)
	flag.Usage = func() {
		fmt.Fprint(flag.CommandLine.Output(), usage)
		flag.PrintDefaults()
	}
	shows := flag.Bool("version", false, "print the version")
	flag.Parse()
	if *shows {
		fmt.Println("frameworkbarrier version", buildinfo.Version())
		return
	}

	err := run()
	klog.Flush()
	if err != nil {
		message := fmt.Sprintf("frameworkbarrier: %v\n", err)
		fmt.Fprint(os.Stderr, message)
		leaveLastWords(message)
	}
	os.Exit(barrier.ExitCode(err))
}

func run() error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	switch {
	case flag.Arg(0) == "resolve":
		return resolve(ctx, flag.Args()[1:])
	case flag.NArg() > 0:
		return fmt.Errorf("%w: takes flags only, or resolve, got %q", barrier.ErrConfig, flag.Arg(0))
	}
	config, err := barrier.FromEnv(os.Getenv, isFile)
	if err != nil {
		return err
	}
	klog.FromContext(ctx).Info("Waiting for the tasks of a Framework", "framework", klog.KRef(config.Namespace, config.Name),
		"interval", config.Interval, "timeout", config.Timeout, "version", version.Get().GitVersion)

	b, err := barrier.New(config)
	if err != nil {
		return err
	}
	return b.Run(ctx)
}

// resolve waits until a name has an address.
func resolve(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("resolve", flag.ContinueOnError)
	tries := flags.Int("tries", 100, "how often to look the name up, 1 or more")
	interval := flags.Duration("interval", 2*time.Second, "the time from one try to the next")
	if err := flags.Parse(args); err != nil {
		return fmt.Errorf("%w: %w", barrier.ErrConfig, err)
	}
	if flags.NArg() != 1 || *tries < 1 || *interval < 0 {
		return fmt.Errorf("%w: resolve takes one name, --tries of 1 or more, and an --interval that is not negative", barrier.ErrConfig)
	}
	resolution := barrier.Resolution{Name: flags.Arg(0), Tries: *tries, Interval: *interval}
	return barrier.Resolve(ctx, resolution, net.DefaultResolver.LookupHost, os.Stdout)
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// leaveLastWords writes to the termination log, which exists only in a container.
func leaveLastWords(message string) {
	file, err := os.OpenFile(terminationLog, os.O_WRONLY, 0)
	if err != nil {
		return
	}
	defer file.Close()
	_, _ = file.WriteString(message)
}
