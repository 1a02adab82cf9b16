// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Command frameworkbarrier is an init container that waits until every task of
// its Framework has an address. See package barrier and docs/barrier.md.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/component-base/version"
	"k8s.io/klog/v2"

	"github.com/lockstep-k8s/lockstep/barrier"
)

// terminationLog is where the kubelet looks for a container's last words, unless
// the Pod says otherwise. They become part of the Framework's status.
const terminationLog = "/dev/termination-log"

const usage = `frameworkbarrier waits until every task of its Framework has an address, and
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
		fmt.Println("frameworkbarrier version", version.Get().String())
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
	if flag.NArg() > 0 {
		return fmt.Errorf("%w: takes flags only, got %q", barrier.ErrConfig, flag.Arg(0))
	}
	config, err := barrier.FromEnv(os.Getenv, isFile)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	klog.FromContext(ctx).Info("Waiting for the tasks of a Framework", "framework", klog.KRef(config.Namespace, config.Name),
		"interval", config.Interval, "timeout", config.Timeout, "version", version.Get().GitVersion)

	b, err := barrier.New(config)
	if err != nil {
		return err
	}
	return b.Run(ctx)
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// leaveLastWords writes to the termination log if there is one. Outside a
// container there is none, and nothing is lost.
func leaveLastWords(message string) {
	file, err := os.OpenFile(terminationLog, os.O_WRONLY, 0)
	if err != nil {
		return
	}
	defer file.Close()
	_, _ = file.WriteString(message)
}
