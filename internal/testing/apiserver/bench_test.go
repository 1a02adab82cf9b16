// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/lockstep-k8s/lockstep/client/clientset/versioned"
	"github.com/lockstep-k8s/lockstep/internal/testing/apiserver"
)

func BenchmarkNew(b *testing.B) {
	for b.Loop() {
		apiserver.New(b)
	}
}

func BenchmarkClients(b *testing.B) {
	server := apiserver.New(b)
	for b.Loop() {
		config := server.Config()
		if _, err := versioned.NewForConfig(config); err != nil {
			b.Fatal(err)
		}
		config.ContentType = "application/vnd.kubernetes.protobuf"
		if _, err := kubernetes.NewForConfig(config); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkPodFromBirthToDeath(b *testing.B) {
	server := apiserver.New(b)
	config := server.Config()
	config.ContentType = "application/vnd.kubernetes.protobuf"
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		b.Fatal(err)
	}
	pods := client.CoreV1().Pods("ns")
	for b.Loop() {
		if _, err := pods.Create(b.Context(), newPod("a"), metav1.CreateOptions{}); err != nil {
			b.Fatal(err)
		}
		if _, err := pods.Get(b.Context(), "a", metav1.GetOptions{}); err != nil {
			b.Fatal(err)
		}
		if err := pods.Delete(b.Context(), "a", metav1.DeleteOptions{}); err != nil {
			b.Fatal(err)
		}
	}
}
