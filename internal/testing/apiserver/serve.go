// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// answer is what a request is answered with.
type answer struct {
	code        int
	contentType string
	header      http.Header
	body        io.ReadCloser
}

// RoundTrip implements http.RoundTripper. All work is done by the calling goroutine, and a waiting call is durably
// blocked in the sense of testing/synctest.
func (p *Process) RoundTrip(r *http.Request) (*http.Response, error) {
	if a, ok := p.server.discovered(r); ok {
		return response(r, a), nil
	}
	at := time.Now()
	call, err := p.newCall(r)
	if err != nil {
		return response(r, refuse(err)), nil
	}
	if !p.outlives(call.Verb.Writes()) {
		return nil, errRefused
	}
	s := p.server
	fault := s.fault(&call.Request)
	if err := p.wait(call, fault.Before); err != nil {
		if !fault.Late {
			s.record(call, at, 0, false)
			return nil, err
		}
		go func() {
			time.Sleep(fault.Before - time.Since(at))
			s.record(call, at, p.carryOut(call, fault).code, false)
		}()
		return nil, err
	}
	a := p.carryOut(call, fault)
	err = p.wait(call, fault.After)
	if err == nil && (fault.LoseAnswer || a.code == 0) {
		err = errLost
		if a.code == 0 {
			err = fault.Refusal
		}
	}
	s.record(call, at, a.code, err == nil)
	if err != nil {
		if a.body != nil {
			_ = a.body.Close()
		}
		return nil, err
	}
	return response(r, a), nil
}

// wait waits as long as the client does, too.
func (p *Process) wait(c *call, d time.Duration) error {
	if d > 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-c.ctx.Done():
		case <-p.dead:
		}
	}
	if p.Dead() {
		return errLost
	}
	return c.ctx.Err()
}

// carryOut does what is asked for, or refuses it.
func (p *Process) carryOut(c *call, fault Fault) answer {
	err := fault.Refusal
	if err == nil {
		var a answer
		if a, err = p.server.do(c); err == nil {
			return a
		}
	} else if asStatus(err) == nil {
		return answer{}
	}
	return refuse(err)
}

// do carries a request out.
func (s *Server) do(c *call) (answer, error) {
	var r *revision
	var err error
	code := http.StatusOK
	switch c.Verb {
	case Watch:
		s.mu.Lock()
		defer s.mu.Unlock()
		w, err := s.watch(c)
		if err != nil {
			return answer{}, err
		}
		contentType := c.format.contentType()
		if c.format.binary() {
			contentType += ";stream=watch"
		}
		return answer{code: code, contentType: contentType, body: w}, nil
	case List:
		version, items, err := s.list(c)
		if err != nil {
			return answer{}, err
		}
		data, err := encodeList(c.table.resource, version, items, c.format)
		return answer{code: code, contentType: c.format.contentType(), body: body(data)}, err
	case Get:
		r, err = s.get(c)
	case Create:
		code = http.StatusCreated
		if c.Subresource == "binding" {
			if err = s.bind(c); err == nil {
				return encodeAnswer(code, success(), asJSON)
			}
			break
		}
		r, err = s.create(c)
	case DryRun:
		err = s.tryCreation(c)
		if err == nil {
			return encodeAnswer(code, success(), asJSON)
		}
	case Update:
		r, err = s.update(c)
	case Patch:
		r, err = s.patch(c)
	case Apply:
		var created bool
		if r, created, err = s.apply(c); created {
			code = http.StatusCreated
		}
	case Delete:
		if r, err = s.delete(c); err == nil && r == nil {
			return encodeAnswer(code, success(), asJSON)
		}
	case DeleteCollection:
		if err = s.deleteCollection(c); err == nil {
			return encodeAnswer(code, success(), asJSON)
		}
	}
	if err != nil {
		return answer{}, err
	}
	data, err := r.encode(c.format)
	return answer{code: code, contentType: c.format.contentType(), body: body(data)}, err
}

func encodeAnswer(code int, object runtime.Object, f format) (answer, error) {
	data, err := encode(object, f)
	return answer{code: code, contentType: f.contentType(), body: body(data)}, err
}

func success() *metav1.Status {
	return &metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusSuccess}
}

func body(data []byte) io.ReadCloser { return io.NopCloser(bytes.NewReader(data)) }

// refuse returns the answer for an error.
func refuse(err error) answer {
	if errors.Is(err, errNoPage) {
		return answer{code: http.StatusNotFound, contentType: "text/plain", body: body([]byte(err.Error()))}
	}
	status := statusOf(err)
	data, err := json.Marshal(status)
	if err != nil {
		panic(err) // It is plain data.
	}
	a := answer{code: int(status.Code), contentType: runtime.ContentTypeJSON, body: body(data)}
	if status.Details != nil && status.Details.RetryAfterSeconds > 0 {
		a.header = http.Header{"Retry-After": {strconv.Itoa(int(status.Details.RetryAfterSeconds))}}
	}
	return a
}

func response(r *http.Request, a answer) *http.Response {
	if a.header == nil {
		a.header = http.Header{}
	}
	a.header.Set("Content-Type", a.contentType)
	return &http.Response{
		StatusCode: a.code, Status: strconv.Itoa(a.code) + " " + http.StatusText(a.code),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: a.header, Body: a.body, ContentLength: -1, Request: r,
	}
}

// ServeHTTP implements http.Handler, for tests that need sockets.
func (p *Process) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	response, err := p.RoundTrip(r)
	if err != nil {
		panic(http.ErrAbortHandler) // The connection breaks.
	}
	defer response.Body.Close()
	for name, values := range response.Header {
		w.Header()[name] = values
	}
	w.WriteHeader(response.StatusCode)
	flusher, _ := w.(http.Flusher)
	buffer := make([]byte, 32<<10)
	for {
		if flusher != nil {
			flusher.Flush()
		}
		n, err := response.Body.Read(buffer)
		if n > 0 {
			if _, err := w.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}
