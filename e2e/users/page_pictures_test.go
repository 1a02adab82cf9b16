//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package users

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/internal/localenv/jobs"
)

// TestPicturesAreOfAPlayedScene plays what the pictures in the documents show.
func TestPicturesAreOfAPlayedScene(t *testing.T) {
	nodes, err := cluster.Kube.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range nodes.Items {
		zone := fmt.Sprintf(`{"metadata":{"labels":{%q:"zone-%c"}}}`, corev1.LabelTopologyZone, 'a'+i%3)
		if _, err := cluster.Kube.CoreV1().Nodes().Patch(t.Context(), nodes.Items[i].Name, types.MergePatchType, []byte(zone), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	v := opensPage(t)
	// It holds all nodes for a while, so that the others have to wait.
	v.creates(jobs.MakeFramework("warm-up").Gang().Role("probe", 6, jobs.RunFor(5*time.Second, 0).CPU("8").Completes(1, 6)))
	cluster.WaitFramework(t, v.namespace, "warm-up", "run", func(fw *frameworkv1.Framework) bool {
		return fw.Status != nil && fw.Status.Tasks != nil && fw.Status.Tasks.Running+fw.Status.Tasks.Succeeded == 6
	})
	// Its third attempt runs on, however long the browser takes.
	v.creates(jobs.MakeFramework("resnet").Gang().Retry(false, 3).
		Role("chief", 1, jobs.RunFor(6*time.Second, 139).InFirstAttempts(2).CPU("1")).
		Role("ps", 2, jobs.RunForever().CPU("1")).
		Role("worker", 8, jobs.RunForever().CPU("2")))
	v.creates(jobs.MakeFramework("embeddings").Gang().Role("worker", 4, jobs.RunForever().CPU("2")))
	v.creates(jobs.MakeFramework("nightly-eval").Role("eval", 3, jobs.RunFor(time.Second, 0).Completes(1, 3)))
	v.creates(jobs.MakeFramework("broken").Role("main", 1, jobs.RunFor(time.Second, 1)))
	v.creates(jobs.MakeFramework("drafts").Execution(frameworkv1.ExecutionCreate).Role("worker", 16, jobs.RunForever()))
	cluster.WaitFramework(t, v.namespace, "resnet", "run", func(fw *frameworkv1.Framework) bool {
		return fw.Status != nil && fw.Status.Tasks != nil && fw.Status.Tasks.Running >= 10
	})
	v.creates(jobs.MakeFramework("llm-70b").Gang().Role("worker", 6, jobs.RunForever().CPU("7")))
	cluster.WaitFramework(t, v.namespace, "resnet", "run a third time", func(fw *frameworkv1.Framework) bool {
		return fw.Status != nil && fw.Status.AttemptStatus.ID == 2 && fw.Status.Tasks.Running >= 10
	})
	v.opens("/")
	v.sees("resnet", "embeddings", "Succeeded", "Failed", "NotStarted")
	v.takes("dashboard-list")
	v.opens("/frameworks/" + v.namespace + "/resnet")
	v.sees("attempt 2", "by topology.kubernetes.io/zone", "retried after")
	v.finds("#live.on")
	v.takes("dashboard-framework")
	v.inTheDark()
	v.takes("dashboard-framework-dark")
	v.opens("/queue")
	v.sees("llm-70b")
	v.opens("/nodes")
	v.sees("zone-a", "resnet", "embeddings")
	v.takes("dashboard-nodes-dark")
	v.opens("/frameworks/" + v.namespace + "/llm-70b/why")
	v.sees("NotEnoughResources")
	v.takes("dashboard-why-dark")
}

// inTheDark has the browser prefer dark colours.
func (v *visitor) inTheDark() {
	v.t.Helper()
	v.does(func(ctx context.Context, target *chromedp.Target) (chromedp.Void, error) {
		_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "dark"}}})
		return chromedp.Void{}, err
	})
}

// takes a picture of what is to be seen.
func (v *visitor) takes(name string) {
	v.t.Helper()
	ctx, cancel := context.WithTimeout(v.tab, patience)
	defer cancel()
	picture, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	if err != nil {
		v.t.Fatal(err)
	}
	if *pictures == "" {
		return
	}
	if err := os.WriteFile(filepath.Join(*pictures, name+".png"), picture, 0o644); err != nil {
		v.t.Fatal(err)
	}
}
