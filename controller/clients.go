// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/lockstep-k8s/lockstep/client/clientset/versioned"
	"github.com/lockstep-k8s/lockstep/controller/adapter"
)

// Clients are what the controller reads and writes with.
type Clients = adapter.Clients

// NewClients returns clients of an API server that share one rate limit: the RateLimiter of config or, without one, its
// QPS and Burst. With a Burst of 0 or less, requests are sent one by one.
func NewClients(config *rest.Config) (Clients, error) {
	var clients Clients
	var err error
	config = rest.CopyConfig(config)
	if config.RateLimiter == nil && config.QPS > 0 {
		config.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(config.QPS, max(1, config.Burst))
	}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return once{next} })
	core := rest.CopyConfig(config)
	core.ContentType = runtime.ContentTypeProtobuf
	core.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	if clients.Kube, err = kubernetes.NewForConfig(core); err != nil {
		return clients, fmt.Errorf("making the Kubernetes client: %w", err)
	}
	if clients.Lockstep, err = versioned.NewForConfig(config); err != nil {
		return clients, fmt.Errorf("making the Lockstep client: %w", err)
	}
	if clients.Metadata, err = metadata.NewForConfig(config); err != nil {
		return clients, fmt.Errorf("making the metadata client: %w", err)
	}
	if clients.Dynamic, err = dynamic.NewForConfig(config); err != nil {
		return clients, fmt.Errorf("making the dynamic client: %w", err)
	}
	return clients, nil
}

// once makes client-go send each request only once. By default client-go repeats a request up to ten times if the
// answer's header names a pause. The controller has a back-off of its own, which takes all failures of a Framework into
// account, and reads the pause from the answer's body.
type once struct {
	http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (o once) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := o.RoundTripper.RoundTrip(request)
	if response == nil || response.Header.Get(retryAfter) == "" {
		return response, err
	}
	seconds, malformed := strconv.Atoi(response.Header.Get(retryAfter))
	response.Header.Del(retryAfter)
	contentType, _, _ := strings.Cut(response.Header.Get("Content-Type"), ";")
	if malformed == nil && contentType != runtime.ContentTypeJSON && contentType != runtime.ContentTypeProtobuf {
		err = errors.Join(err, tellPause(response, seconds))
	}
	return response, err
}

const retryAfter = "Retry-After"

// maxAnswer bounds what is read of an answer in plain text, in bytes.
const maxAnswer = 4096

// tellPause turns the plain text with which an overloaded API server answers into a Status that names the requested
// pause.
func tellPause(response *http.Response, seconds int) error {
	text, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return err
	}
	status := metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure,
		Code:     int32(response.StatusCode),
		Reason:   reasonOf(response.StatusCode),
		Message:  strings.TrimSpace(string(text)),
		Details:  &metav1.StatusDetails{RetryAfterSeconds: int32(min(max(0, seconds), math.MaxInt32))},
	}
	data, err := json.Marshal(status)
	if err != nil {
		return err
	}
	err = response.Body.Close()
	response.Body = io.NopCloser(bytes.NewReader(data))
	response.ContentLength = int64(len(data))
	response.Header.Set("Content-Type", runtime.ContentTypeJSON)
	response.Header.Set("Content-Length", strconv.Itoa(len(data)))
	return err
}

// reasonOf returns the status reason for the HTTP code of a plain-text answer.
func reasonOf(code int) metav1.StatusReason {
	switch code {
	case http.StatusTooManyRequests:
		return metav1.StatusReasonTooManyRequests
	case http.StatusServiceUnavailable:
		return metav1.StatusReasonServiceUnavailable
	default:
		return metav1.StatusReasonInternalError
	}
}
