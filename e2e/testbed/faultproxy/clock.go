// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package faultproxy

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/client-go/kubernetes/scheme"
)

// SetAhead makes of the component one whose clock is ahead of all others by d, or behind them if d
// is negative. Call it before the component starts.
//
// To a component whose clock is an hour ahead all times of others are an hour in the past, and
// to the others its times are an hour in the future. That is what the proxy does: it takes the
// hour off each time in an answer, and adds it to each time in a request. So the component reads
// its own times as it has written them, those of others are off, and what is stored is what a
// component with such a clock would have stored. Requests and answers are JSON, as times are found by
// their form; times inside longer texts are left as they are.
func (p *Proxy) SetAhead(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ahead = d
}

func (p *Proxy) clockAhead() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ahead
}

// toStored makes of a request of the component what one with a clock that is ahead would have sent.
func toStored(r *http.Request, ahead time.Duration) error {
	if ahead == 0 {
		return nil
	}
	r.Header.Set("Accept", strings.ReplaceAll(r.Header.Get("Accept"), runtime.ContentTypeProtobuf, runtime.ContentTypeJSON))
	r.Header.Set("Accept-Encoding", "identity") // API servers compress watches, too.
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	if r.Header.Get("Content-Type") == runtime.ContentTypeProtobuf {
		if body, err = toJSON(body); err != nil {
			return fmt.Errorf("reading %s %s: %w", r.Method, r.URL.Path, err)
		}
		r.Header.Set("Content-Type", runtime.ContentTypeJSON)
	}
	body = shiftTimes(body, ahead)
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return nil
}

// toJSON makes JSON of an object in protobuf.
func toJSON(body []byte) ([]byte, error) {
	object, kind, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
	if err != nil {
		return nil, err
	}
	object.GetObjectKind().SetGroupVersionKind(*kind)
	var b bytes.Buffer
	err = json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme.Scheme, scheme.Scheme, json.SerializerOptions{}).Encode(object, &b)
	return b.Bytes(), err
}

// toSeen makes of an answer what a component with a clock that is ahead would see in it. Watches
// answer line by line.
func toSeen(answer *http.Response, ahead time.Duration) error {
	if ahead == 0 {
		return nil
	}
	if !isWatch(answer.Request) {
		body, err := io.ReadAll(answer.Body)
		if err != nil {
			return err
		}
		body = shiftTimes(body, -ahead)
		answer.Body, answer.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		answer.Header.Set("Content-Length", strconv.Itoa(len(body)))
		return nil
	}
	answer.Body = &shiftedLines{lines: bufio.NewReader(answer.Body), closer: answer.Body, by: -ahead}
	return nil
}

// shiftedLines is a body whose times are shifted.
type shiftedLines struct {
	lines  *bufio.Reader
	closer io.Closer
	by     time.Duration
	// rest is what was read of the last line and not handed out yet.
	rest []byte
}

// Read implements io.Reader.
func (s *shiftedLines) Read(b []byte) (int, error) {
	if len(s.rest) == 0 {
		line, err := s.lines.ReadBytes('\n')
		if len(line) == 0 {
			return 0, err
		}
		s.rest = shiftTimes(line, s.by)
	}
	n := copy(b, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

// Close implements io.Closer.
func (s *shiftedLines) Close() error { return s.closer.Close() }

// aTime finds times as Kubernetes writes them, in seconds and in microseconds.
var aTime = regexp.MustCompile(`"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"`)

// shiftTimes adds d to each time in a text of JSON.
func shiftTimes(text []byte, d time.Duration) []byte {
	return aTime.ReplaceAllFunc(text, func(found []byte) []byte {
		at, err := time.Parse(`"`+time.RFC3339Nano+`"`, string(found))
		if err != nil {
			return found // such as the 31st of June
		}
		layout := "2006-01-02T15:04:05Z"
		if bytes.ContainsRune(found, '.') {
			layout = "2006-01-02T15:04:05." + strings.Repeat("0", len(found)-len(`"2006-01-02T15:04:05.Z"`)) + "Z"
		}
		return at.Add(d).AppendFormat([]byte{}, `"`+layout+`"`)
	})
}
