// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/internal/reading"
	"github.com/lockstep-k8s/lockstep/internal/terminal"
	"github.com/lockstep-k8s/lockstep/internal/view"
)

// session is one run of the program: where it reads and writes, and with which cluster.
type session struct {
	in          io.Reader
	out, errOut io.Writer
	flags       *genericclioptions.ConfigFlags
	// style is how standard output is written.
	style terminal.Style
	// screen is standard output, if that is a terminal, and nil else.
	screen *os.File
	// noting is held while a note is written, because the logs of several tasks are followed concurrently.
	noting sync.Mutex
}

func newSession(in io.Reader, out, errOut io.Writer) *session {
	s := &session{in: in, out: out, errOut: errOut, flags: newFlags()}
	if file, ok := out.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		s.screen = file
	}
	// https://no-color.org: any value but the empty one.
	s.style.Colours = s.screen != nil && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	return s
}

// note writes a line beside the output.
func (s *session) note(format string, args ...any) {
	s.noting.Lock()
	defer s.noting.Unlock()
	fmt.Fprintln(s.errOut, terminal.Clean(fmt.Sprintf(format, args...)))
}

// write prints lines. They may contain texts of other users, so on a terminal it removes all control characters except
// tabs.
func (s *session) write(text string) error {
	if s.screen != nil {
		text = cleanBetween(text, "\n", "\t")
	}
	_, err := io.WriteString(s.out, text)
	return err
}

// cleanBetween makes a text harmless, and keeps the separators.
func cleanBetween(text string, separators ...string) string {
	if len(separators) == 0 {
		return terminal.Clean(text)
	}
	parts := strings.Split(text, separators[0])
	for i := range parts {
		parts[i] = cleanBetween(parts[i], separators[1:]...)
	}
	return strings.Join(parts, separators[0])
}

// cluster is the cluster of a session, with the rights of the user.
type cluster struct {
	// namespace is that of --namespace, or of the context.
	namespace string
	config    *rest.Config
	reader    *reading.Reader
}

// connect makes the clients. It sends no request.
func (s *session) connect() (*cluster, error) {
	config, err := s.flags.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	namespace, _, err := s.flags.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, err
	}
	config.QPS, config.Burst = 50, 100
	config.UserAgent = "kubectl-lockstep"
	reader, err := reading.New(config)
	if err != nil {
		return nil, err
	}
	reader.AsksAboutFields = true
	return &cluster{namespace, config, reader}, nil
}

// namespaceAsked is that of --namespace, empty if there is none.
func (s *session) namespaceAsked() string {
	if s.flags == nil || s.flags.Namespace == nil {
		return ""
	}
	return *s.flags.Namespace
}

// in returns the cluster, seen from a namespace.
func (c *cluster) in(namespace string) *cluster {
	return &cluster{namespace, c.config, c.reader}
}

// target is the object that a command works on: a Framework, or anything else (a job of another kind or a PodGroup).
// The other field is nil.
type target struct {
	fw  *frameworkv1.Framework
	job *reading.Job
}

// object returns the object itself.
func (t target) object() metav1.Object {
	if t.fw != nil {
		return t.fw
	}
	return t.job.Object
}

// String returns how people name the target: KIND/NAME.
func (t target) String() string {
	kind := "framework"
	if t.fw == nil {
		kind = strings.ToLower(t.job.Kind)
	}
	return kind + "/" + t.object().GetName()
}

// state returns the state in which the target is, in a word.
func (t target) state() string {
	if t.fw != nil {
		return view.FrameworkState(t.fw)
	}
	return t.job.State
}

// isVolcano reports whether the target is a Job of Volcano.
func (t target) isVolcano() bool {
	return t.fw == nil && t.job.Resource.Group == batchv1alpha1.SchemeGroupVersion.Group
}

// named reads what has a name, as people write it.
func (c *cluster) named(ctx context.Context, text string) (target, error) {
	n, err := reading.ParseName(c.namespace, text)
	if err != nil {
		return target{}, err
	}
	fw, job, err := c.reader.Named(ctx, n)
	return target{fw, job}, err
}

// framework reads a Framework that the user names. If the name is that of a job of another kind, framework returns an
// error with the command to use instead.
func (c *cluster) framework(ctx context.Context, text, instead string) (*frameworkv1.Framework, error) {
	t, err := c.named(ctx, text)
	if err == nil && t.fw == nil {
		err = unfit(t, instead)
	}
	return t.fw, err
}

// unfit returns an error which says that the command does not support this kind of object, and which command to use
// instead.
func unfit(t target, instead string) error {
	return misuse(t.String()+" is not a Framework, and this verb needs one", instead)
}

// now returns the time from which ages are computed.
func now() time.Time { return time.Now() }
