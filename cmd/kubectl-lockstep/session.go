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
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/internal/reading"
	"github.com/lockstep-k8s/lockstep/internal/terminal"
)

// session is one run of the program: where it reads and writes, and whom it asks.
type session struct {
	in          io.Reader
	out, errOut io.Writer
	flags       *genericclioptions.ConfigFlags
	// style is how standard output is written.
	style terminal.Style
	// screen is standard output, if that is a terminal, and nil else.
	screen *os.File
	// noting is held while a note is written: the logs of several tasks are followed beside each other.
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

// write writes lines of which some may be by others: as they are or, on a terminal, made harmless. Tabs are harmless.
func (s *session) write(text string) error {
	if s.screen != nil {
		text = cleanBetween(text, "\n", "\t")
	}
	_, err := io.WriteString(s.out, text)
	return err
}

// cleanBetween makes a text harmless, and leaves the separators in it as they are.
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

// cluster is whom a session asks, with the rights of the user.
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
	return &cluster{namespace, config, reader}, err
}

// namespaceAsked is that of --namespace, empty if there is none.
func (s *session) namespaceAsked() string {
	if s.flags == nil || s.flags.Namespace == nil {
		return ""
	}
	return *s.flags.Namespace
}

// in is the cluster, seen from a namespace.
func (c *cluster) in(namespace string) *cluster {
	return &cluster{namespace, c.config, c.reader}
}

// named is which Framework has a name, as people write it.
func (c *cluster) named(text string) (reading.Name, error) {
	n, err := reading.ParseName(c.namespace, text)
	if err == nil && !n.IsFramework() {
		err = misuse(text+" is no Framework, and this verb is for Frameworks alone", "`get`, `why` and `simulate` are for other jobs, too")
	}
	return n, err
}

// framework reads the Framework of a name, as people write it.
func (c *cluster) framework(ctx context.Context, text string) (*frameworkv1.Framework, error) {
	n, err := c.named(text)
	if err != nil {
		return nil, err
	}
	return c.reader.Framework(ctx, n.Namespace, n.Name)
}

// now is the time that ages are told by.
func now() time.Time { return time.Now() }
