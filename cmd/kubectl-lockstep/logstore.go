// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/internal/view"
)

const (
	// storeVariable and tokenVariable are environment variables: the default of --log-store, and the bearer token for
	// the store.
	storeVariable = "LOCKSTEP_LOG_STORE"
	tokenVariable = "LOCKSTEP_LOG_STORE_TOKEN"
	// storePatience is how long a log store may take to begin its answer.
	storePatience = 30 * time.Second
)

// logStore is a server that keeps the logs of Pods that are gone. It answers a GET with the lines of one task.
type logStore struct {
	// template is a URL with placeholders: see placeholders.
	template string
	// field is the name of the field that has the line, if each line is a JSON object. Empty if lines are plain text.
	field  string
	client *http.Client
}

// placeholder finds what is put into a template.
var placeholder = regexp.MustCompile(`\{([a-z]+)\}`)

// placeholders are what a template may have.
var placeholders = []string{"namespace", "framework", "uid", "attempt", "role", "index", "pod", "start", "end"}

// newLogStore is one for a template; nil if that is empty.
func newLogStore(template, field string) (*logStore, error) {
	if template == "" {
		return nil, nil
	}
	for _, name := range placeholder.FindAllStringSubmatch(template, -1) {
		if !slices.Contains(placeholders, name[1]) {
			return nil, misuse("--log-store has no placeholder "+name[0], "it has {"+strings.Join(placeholders, "}, {")+"}")
		}
	}
	at, err := url.Parse(placeholder.ReplaceAllString(template, "x"))
	if err != nil || at.Scheme != "https" && at.Scheme != "http" || at.Host == "" {
		return nil, misuse("--log-store is not the URL of a log store", "such as https://logs.example.com/{namespace}/{pod}.log?from={start}&to={end}")
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.ResponseHeaderTimeout = storePatience
	return &logStore{template: template, field: field, client: &http.Client{Transport: transport}}, nil
}

// storedTask is a task with a log in a store.
type storedTask struct {
	framework  *frameworkv1.Framework
	attempt    int32
	role       string
	index      int32
	start, end time.Time
}

// url returns where the log of a task is.
func (s *logStore) url(t *storedTask) string {
	values := map[string]string{
		"namespace": t.framework.Namespace, "framework": t.framework.Name, "uid": string(t.framework.UID), "attempt": strconv.Itoa(int(t.attempt)),
		"role": t.role, "index": strconv.Itoa(int(t.index)), "pod": frameworkv1.PodName(t.framework.Name, t.role, t.index),
		"start": t.start.UTC().Format(time.RFC3339), "end": t.end.UTC().Format(time.RFC3339),
	}
	return placeholder.ReplaceAllStringFunc(s.template, func(name string) string { return url.QueryEscape(values[strings.Trim(name, "{}")]) })
}

// open begins to read the log of a task.
func (s *logStore) open(ctx context.Context, t *storedTask) (io.ReadCloser, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url(t), nil)
	if err != nil {
		return nil, err
	}
	if token := os.Getenv(tokenVariable); token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := s.client.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		_ = response.Body.Close()
		return nil, fmt.Errorf("the log store answers %s", response.Status)
	}
	if s.field == "" {
		return response.Body, nil
	}
	reader, writer := io.Pipe()
	go func() {
		defer response.Body.Close()
		_ = writer.CloseWithError(s.texts(response.Body, writer))
	}()
	return reader, nil
}

// texts copies the field of each line.
func (s *logStore) texts(from io.Reader, to io.Writer) error {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var line map[string]any
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			return fmt.Errorf("a line of the log store is no object of JSON: %w", err)
		}
		text, is := line[s.field].(string)
		if !is {
			return fmt.Errorf("a line of the log store has no text in its field %q", s.field)
		}
		if _, err := fmt.Fprintln(to, text); err != nil {
			return err
		}
	}
	return lines.Err()
}

// storedTasks returns the requested tasks of an attempt, as far as they are known.
func storedTasks(fw *frameworkv1.Framework, attempt int32, which chosen) ([]storedTask, error) {
	start, end, known := attemptTimes(fw, attempt)
	if !known {
		return nil, &failure{code: exitNotFound, message: fmt.Sprintf("when attempt %d of %s ran is not known: the status keeps the last attempts alone", attempt, fw.Name),
			hint: "`history` lists those that are known"}
	}
	if which.index >= 0 {
		return []storedTask{{fw, attempt, which.role, int32(which.index), start, end}}, nil
	}
	var tasks []storedTask
	for _, role := range fw.Spec.TaskRoles {
		for index := range role.TaskNumber {
			if which.role == "" || which.role == role.Name {
				tasks = append(tasks, storedTask{fw, attempt, role.Name, index, start, end})
			}
		}
	}
	if len(tasks) == 0 {
		return nil, &failure{code: exitNotFound, message: fw.Name + " has no such tasks", hint: "`describe` lists its roles"}
	}
	return tasks, nil
}

// attemptTimes returns when an attempt began and ended. For an attempt that has not ended, the end is now.
func attemptTimes(fw *frameworkv1.Framework, attempt int32) (start, end time.Time, known bool) {
	status := fw.Status
	if status == nil {
		return start, end, false
	}
	if attempt == status.AttemptStatus.ID {
		return status.AttemptStatus.StartTime.Time, endOf(status.AttemptStatus.CompletionTime), true
	}
	for i := range status.History {
		if record := &status.History[i]; record.ID == attempt {
			return record.StartTime.Time, endOf(record.CompletionTime), true
		}
	}
	return start, end, false
}

// endOf returns when something ended, or now if it has not.
func endOf(completion *metav1.Time) time.Time {
	if completion == nil {
		return now()
	}
	return completion.Time
}

// showStored shows logs from a store. If one log can't be read, the others are still shown.
func (o *logOptions) showStored(ctx context.Context, store *logStore, tasks []storedTask) error {
	var streams errgroup.Group
	streams.SetLimit(maxStreams)
	for i := range tasks {
		task := &tasks[i]
		streams.Go(func() error {
			name := view.TaskName(task.role, task.index)
			log, err := store.open(ctx, task)
			if err == nil {
				err = o.copy(o.prefix(name, i), log, nil)
				err = errors.Join(err, log.Close())
			}
			if ctx.Err() != nil {
				return context.Canceled
			}
			switch {
			case errors.As(err, new(unwritable)):
				return err
			case err != nil:
				o.cannotShow(name, err)
			default:
				o.shown.Add(1)
			}
			return nil
		})
	}
	return cmp.Or(streams.Wait(), o.result())
}
