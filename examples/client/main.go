// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Command client shows how a program of yours uses the typed client: it creates a gang, waits until it
// runs, tells what changes, and stops it.
//
//	go run ./examples/client -namespace default -image IMAGE
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	watchtools "k8s.io/client-go/tools/watch"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/client/clientset/versioned"
	typedv1 "github.com/lockstep-k8s/lockstep/client/clientset/versioned/typed/framework/v1"
)

func main() {
	namespace := flag.String("namespace", "default", "where the job is created")
	image := flag.String("image", "busybox", "image of its tasks")
	patience := flag.Duration("patience", 5*time.Minute, "how long is waited for each step")
	flag.Parse()
	if err := run(context.Background(), *namespace, *image, *patience); err != nil {
		fmt.Fprintln(os.Stderr, "client:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, namespace, image string, patience time.Duration) error {
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(clientcmd.NewDefaultClientConfigLoadingRules(), nil).ClientConfig()
	if err != nil {
		return err
	}
	clients, err := versioned.NewForConfig(config)
	if err != nil {
		return err
	}
	frameworks := clients.FrameworkcontrollerV1().Frameworks(namespace)
	fw, err := gang(image)
	if err != nil {
		return err
	}
	job, err := frameworks.Create(ctx, fw, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	fmt.Println("created", job.Name)
	running := func(fw *frameworkv1.Framework) bool {
		return fw.Status != nil && fw.Status.Tasks != nil && fw.Status.Tasks.Running == 3
	}
	if err := wait(ctx, frameworks, job.Name, patience, running); err != nil {
		return err
	}
	stop := []byte(`{"spec":{"executionType":"Stop"}}`)
	if _, err := frameworks.Patch(ctx, job.Name, types.MergePatchType, stop, metav1.PatchOptions{}); err != nil {
		return err
	}
	over := func(fw *frameworkv1.Framework) bool {
		return fw.Status != nil && fw.Status.State == frameworkv1.FrameworkCompleted
	}
	if err := wait(ctx, frameworks, job.Name, patience, over); err != nil {
		return err
	}
	return frameworks.Delete(ctx, job.Name, metav1.DeleteOptions{})
}

// gang is a job of three workers that start together or not at all.
func gang(image string) (*frameworkv1.Framework, error) {
	fw := &frameworkv1.Framework{ObjectMeta: metav1.ObjectMeta{GenerateName: "example-"}}
	fw.Spec.ExecutionType = frameworkv1.ExecutionStart
	fw.Spec.Gang = &frameworkv1.GangSpec{}
	role := frameworkv1.TaskRoleSpec{Name: "worker", TaskNumber: 3}
	// A template is kept as JSON, so that fields of any version of Kubernetes survive.
	template, err := json.Marshal(corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever,
		Containers:    []corev1.Container{{Name: "main", Image: image, Command: []string{"sleep", "3600"}, ImagePullPolicy: corev1.PullIfNotPresent}},
	}})
	if err != nil {
		return nil, err
	}
	role.Task.Pod.Raw = template
	fw.Spec.TaskRoles = []frameworkv1.TaskRoleSpec{role}
	return fw, nil
}

// wait waits until a job is as wanted, and prints each new state. It outlives lost connections.
func wait(ctx context.Context, frameworks typedv1.FrameworkInterface, name string, patience time.Duration, wanted func(*frameworkv1.Framework) bool) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	named := func(o *metav1.ListOptions) {
		o.FieldSelector = fields.OneTermEqualSelector("metadata.name", name).String()
	}
	source := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			named(&o)
			return frameworks.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			named(&o)
			return frameworks.Watch(ctx, o)
		},
	}
	var last frameworkv1.FrameworkState
	_, err := watchtools.UntilWithSync(ctx, source, &frameworkv1.Framework{}, nil, func(event watch.Event) (bool, error) {
		fw, ok := event.Object.(*frameworkv1.Framework)
		if !ok || event.Type == watch.Deleted {
			return false, errors.New(name + " was deleted")
		}
		if fw.Status != nil && fw.Status.State != last {
			last = fw.Status.State
			fmt.Println(name, "is", last)
		}
		return wanted(fw), nil
	})
	return err
}
