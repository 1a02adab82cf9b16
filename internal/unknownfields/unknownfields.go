// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package unknownfields asks the API server which fields of a Pod template it does not know. The API server silently
// drops such fields when a Pod is created, so that a Pod with the mistyped field `resurces` runs without requests.
package unknownfields

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/lockstep-k8s/lockstep/internal/quantity"
	"github.com/lockstep-k8s/lockstep/internal/text"
)

// PodName is the name of the Pod in the request to the API server. The request creates no Pod.
const PodName = "asked-about"

// elsewhere is the Pod's namespace in the request, which differs from the namespace that the request is sent to. So the
// API server decodes the Pod, and then refuses it before admission plugins, webhooks and quotas see it.
const elsewhere = "lockstep-asks-for-unknown-fields"

// Of returns the paths of the fields in a Pod template that the API server does not know, such as
// spec.containers[0].resurces. template is JSON. Of sends a dry-run creation, for which the client needs the right to
// create Pods in the namespace. Of returns an error if the API server did not answer that.
func Of(ctx context.Context, core rest.Interface, namespace string, template []byte) ([]string, error) {
	if err := quantity.CheckJSON(template); err != nil {
		return nil, err // The API server would read the quantity for hours, whether or not somebody waits for the answer.
	}
	pod, err := podOf(template)
	if err != nil {
		return nil, err
	}
	err = core.Post().Namespace(namespace).Resource("pods").
		Param("dryRun", metav1.DryRunAll).Param("fieldValidation", metav1.FieldValidationStrict).
		SetHeader("Content-Type", runtime.ContentTypeJSON).SetHeader("Accept", runtime.ContentTypeJSON).
		MaxRetries(0).Body(pod).Do(ctx).Error()
	switch {
	case err == nil:
		return nil, nil
	case !apierrors.IsBadRequest(err):
		return nil, err
	}
	if fields := named(err.Error()); len(fields) > 0 {
		return fields, nil
	}
	// No field says this here: unknown ones were named above.
	if strings.Contains(err.Error(), "namespace of the provided object does not match") {
		return nil, nil // All of it was decoded.
	}
	return nil, err
}

// podOf makes a Pod of a template, with all of its fields.
func podOf(template []byte) ([]byte, error) {
	fields, metadata := map[string]json.RawMessage{}, map[string]json.RawMessage{}
	if err := json.Unmarshal(template, &fields); err != nil {
		return nil, fmt.Errorf("the template is no JSON object: %w", err)
	}
	if raw, ok := fields["metadata"]; ok {
		if err := json.Unmarshal(raw, &metadata); err != nil {
			return nil, fmt.Errorf("the template's metadata are no JSON object: %w", err)
		}
	}
	if metadata == nil {
		metadata = map[string]json.RawMessage{} // It was null.
	}
	metadata["name"], metadata["namespace"] = quoted(PodName), quoted(elsewhere)
	var err error
	if fields["metadata"], err = json.Marshal(metadata); err != nil {
		return nil, err
	}
	fields["apiVersion"], fields["kind"] = quoted("v1"), quoted("Pod")
	return json.Marshal(fields)
}

func quoted(text string) json.RawMessage { return json.RawMessage(strconv.Quote(text)) }

// unknown is how the API server names a field that it does not know.
var unknown = regexp.MustCompile(`unknown field ("(?:[^"\\]|\\.)*")`)

// A message names at most so many fields, and of each path at most so many bytes.
const (
	maxFields = 100
	maxPath   = 256
)

// named returns the fields that an error of strict decoding names.
func named(message string) []string {
	var fields []string
	if !strings.Contains(message, "strict decoding error") {
		return nil
	}
	for _, found := range unknown.FindAllStringSubmatch(message, maxFields) {
		if path, err := strconv.Unquote(found[1]); err == nil {
			fields = append(fields, text.Shorten(path, maxPath))
		}
	}
	return fields
}

// told is how many fields Message names.
const told = 4

// Message returns which fields of a job are unknown, by their paths.
func Message(paths []string) string {
	var b strings.Builder
	for i, path := range paths[:min(told, len(paths))] {
		if i > 0 {
			b.WriteString("; ")
		}
		b.WriteString(path + ": unknown field")
	}
	if more := len(paths) - told; more > 0 {
		fmt.Fprintf(&b, "; and %d more", more)
	}
	return b.String()
}
