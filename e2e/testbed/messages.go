// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"context"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Messages returns the messages of the events of a namespace, in one text. A field selector such as
// "involvedObject.kind=Pod,reason=Scheduled" says of which events, and an empty one selects all.
func (c *Cluster) Messages(ctx context.Context, namespace, selector string) (string, error) {
	events, err := c.Kube.CoreV1().Events(namespace).List(ctx, metav1.ListOptions{FieldSelector: selector})
	if err != nil {
		return "", err
	}
	var messages []string
	for i := range events.Items {
		messages = append(messages, events.Items[i].Message)
	}
	return strings.Join(messages, " "), nil
}

// WaitMessage waits until the message of an event contains a text. The selector is that of Messages.
func (c *Cluster) WaitMessage(t testing.TB, namespace, selector, text string) {
	t.Helper()
	Eventually(t, fmt.Sprintf("an event (%s) to say …%s…", selector, text), func(ctx context.Context) (bool, string, error) {
		messages, err := c.Messages(ctx, namespace, selector)
		return strings.Contains(messages, text), messages, err
	})
}
