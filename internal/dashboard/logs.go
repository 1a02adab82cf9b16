// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/internal/terminal"
	"github.com/lockstep-k8s/lockstep/internal/view"
)

// The bounds of a log.
const (
	maxLogLines = 500
	maxLogBytes = 256 << 10
)

// podLog is what the page of a log shows.
type podLog struct {
	Namespace, Pod string
	// Framework is the owner of the Pod; empty if there is none.
	Framework  string
	Containers []string
	Container  string
	Lines      []string
	// Missing says why there are no lines.
	Missing string
}

// logs returns the page of the end of a Pod's log.
func (s *Server) logs(_ context.Context, r request) (*opened, error) {
	kube, namespace, name := r.visitor.Reader.Kube, r.PathValue("namespace"), r.PathValue("pod")
	container := r.URL.Query().Get("container")
	return &opened{make: func(ctx context.Context) (*page, error) {
		pod, err := kube.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		content := &podLog{Namespace: namespace, Pod: name, Framework: pod.Labels[frameworkv1.KeyFrameworkName], Container: container}
		for _, of := range [][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
			for i := range of {
				content.Containers = append(content.Containers, of[i].Name)
			}
		}
		if content.Container == "" && len(content.Containers) > 0 {
			content.Container = content.Containers[0]
		}
		if pod.Spec.NodeName == "" {
			content.Missing = "the Pod has no node yet"
			if reason, message := view.WaitingOf(pod); reason != "" {
				content.Missing += ": " + strings.TrimSuffix(reason+": "+message, ": ")
			}
			return &page{Title: "Log of " + name, Tab: "jobs", Template: "logs", Content: content, Namespace: namespace}, nil
		}
		// Without a limit of bytes: that would cut off the end.
		tail := int64(maxLogLines)
		log, err := kube.CoreV1().Pods(namespace).GetLogs(name, &corev1.PodLogOptions{Container: content.Container, TailLines: &tail}).Stream(ctx)
		if err != nil {
			content.Missing = err.Error()
		} else {
			defer func() { _ = log.Close() }()
			text, err := end(log)
			if err != nil {
				content.Missing = err.Error()
			}
			for line := range strings.Lines(text) {
				content.Lines = append(content.Lines, terminal.Clean(strings.TrimRight(line, "\r\n")))
			}
		}
		return &page{Title: "Log of " + name, Tab: "jobs", Template: "logs", Content: content, Namespace: namespace}, nil
	}}, nil
}

// end reads a log, and returns the last lines, of at most maxLogBytes.
func end(log io.Reader) (string, error) {
	var text []byte
	cut := false
	part := make([]byte, 32<<10)
	for {
		n, err := log.Read(part)
		text = append(text, part[:n]...)
		if len(text) > 2*maxLogBytes || err != nil && len(text) > maxLogBytes {
			text = append(text[:0], text[len(text)-maxLogBytes:]...)
			cut = true
		}
		if err == nil {
			continue
		}
		if cut {
			// The first line has lost the beginning.
			if _, whole, _ := bytes.Cut(text, []byte("\n")); len(whole) > 0 {
				text = whole
			}
		}
		if errors.Is(err, io.EOF) {
			err = nil
		}
		return string(text), err
	}
}
