//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package compat replays a folder of FrameworkController's example manifests, with
// their images replaced, on a real node, and checks that each comes to the end
// that its comments and the user manual document. Configuration files among them
// must be accepted. The folder is an argument:
//
//	make compat EXAMPLES=DIR
package compat

import (
	"context"
	"errors"
	"flag"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"testing"
	"time"

	configv1alpha1 "github.com/lockstep-k8s/lockstep/apis/config/v1alpha1"
	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/e2e/testbed"
	"github.com/lockstep-k8s/lockstep/internal/localenv"
)

var (
	examples = flag.String("examples", "", "folder of Framework manifests, *.yaml")
	images   = flag.String("images", "../../bin/images", "folder of the image tars")
)

// patience is how long a manifest may take: the longest sleeps for a minute in
// each of four attempts.
const patience = 8 * time.Minute

// cluster is what the tests share. TestMain sets it once, before any test.
var cluster *testbed.Cluster

func TestMain(m *testing.M) {
	os.Exit(testbed.Main(m, localenv.Options{RealNode: true, With: "controller,scheduler"}, func(ctx context.Context, c *testbed.Cluster) error {
		if *examples == "" {
			return errors.New("compat: name a folder of manifests with -examples")
		}
		cluster = c
		return c.LoadImages(ctx, *images, "toolbox", "frameworkbarrier")
	}))
}

// documented is what a manifest's comments promise, as a question to the
// Framework. A manifest that is not listed is expected to succeed.
var documented = map[string]struct {
	what string
	seen func(fw *frameworkv1.Framework) bool
}{
	"batchsucceeded":            {"succeed in its first attempt", completed(0, 0)},
	"batchwithservicesucceeded": {"succeed when all workers have, its servers running", completed(0, 0)},
	"batchfailedpermanent":      {"fail for good, without a retry", completed(210, 0)},
	"batchfailedunknown":        {"fail after one retry of the task and one of the Framework", completed(1, 1)},
	"batchstatefulfailed":       {"fail after one retry of the task and one of the Framework", completed(1, 1)},
	"batchfailedtransient":      {"retry its task again and again", retriedTask(2)},
	"batchfailedtransientconflict": {"wait a random time before it retries", func(fw *frameworkv1.Framework) bool {
		delay := fw.Status.RetryPolicyStatus.RetryDelaySec
		return fw.Status.State == frameworkv1.FrameworkAttemptCompleted && delay != nil && *delay >= 60 && *delay <= 900
	}},
	"service": {"serve for ever", func(fw *frameworkv1.Framework) bool {
		return fw.Status.Tasks != nil && fw.Status.Tasks.Running == fw.Status.Tasks.Total
	}},
	"servicestateful": {"serve once its tasks have found each other by name", func(fw *frameworkv1.Framework) bool {
		return fw.Status.Tasks != nil && fw.Status.Tasks.Running == fw.Status.Tasks.Total
	}},
}

func completed(code frameworkv1.CompletionCode, retries int32) func(*frameworkv1.Framework) bool {
	return func(fw *frameworkv1.Framework) bool {
		done := fw.Status.AttemptStatus.CompletionStatus
		return fw.Status.State == frameworkv1.FrameworkCompleted && done != nil && done.Code == code &&
			fw.Status.RetryPolicyStatus.TotalRetriedCount == retries
	}
}

func retriedTask(times int32) func(*frameworkv1.Framework) bool {
	return func(fw *frameworkv1.Framework) bool {
		roles := fw.Status.AttemptStatus.TaskRoleStatuses
		if len(roles) == 0 || len(roles[0].TaskStatuses) == 0 {
			return false
		}
		retries := roles[0].TaskStatuses[0].RetryPolicyStatus
		return retries.TotalRetriedCount >= times && retries.AccountableRetriedCount == 0
	}
}

func TestManifests(t *testing.T) {
	for file := range manifestsBelow(t, *examples) {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		manifest, name, err := testbed.ReplaceImages(content)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if manifest == "" { // no objects: a configuration, then
			if _, err := configv1alpha1.Decode(content); err != nil {
				t.Errorf("%s: neither a manifest nor a configuration: %v", file, err)
			}
			continue
		}
		if name == "" {
			t.Logf("%s holds no Framework", file)
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel() // They sleep most of their time.
			namespace := cluster.Namespace(t)
			// What the manifests' comments ask the user to do beforehand.
			cluster.GrantBarrier(t, namespace)
			if out, err := cluster.KubectlApply(t.Context(), namespace, manifest); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			want, ok := documented[name]
			if !ok {
				want.what, want.seen = "succeed", completed(0, 0)
			}
			cluster.WaitFrameworkWithin(t, patience, namespace, name, want.what, func(fw *frameworkv1.Framework) bool {
				return fw.Status != nil && want.seen(fw)
			})
		})
	}
}

// manifestsBelow yields the YAML files of a folder and of those in it.
func manifestsBelow(t *testing.T, dir string) iter.Seq[string] {
	return func(yield func(string) bool) {
		found := 0
		err := filepath.WalkDir(dir, func(file string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || filepath.Ext(file) != ".yaml" {
				return err
			}
			if found++; !yield(file) {
				return fs.SkipAll
			}
			return nil
		})
		if err != nil || found == 0 {
			t.Errorf("%d *.yaml below %q (%v)", found, dir, err)
		}
	}
}
