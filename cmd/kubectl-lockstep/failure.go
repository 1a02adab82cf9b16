// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/lockstep-k8s/lockstep/internal/reading"
)

// Exit codes, as docs/kubectl.md has them.
const (
	exitOK          = 0
	exitFailed      = 1
	exitMisuse      = 2
	exitNotFound    = 3
	exitForbidden   = 4
	exitTimeout     = 5
	exitOtherState  = 6
	exitByEviction  = 7
	exitNoRoom      = 8
	exitInterrupted = 130
)

// failure is an error with what a person needs to know of it.
type failure struct {
	code int
	// message is what went wrong, hint what to do about it. The hint may be empty.
	message, hint string
}

func (f *failure) Error() string { return f.message }

// misuse says that the command itself is wrong.
func misuse(message, hint string) error {
	return &failure{code: exitMisuse, message: message, hint: hint}
}

// explain converts the error of a request to a message that helps the user.
func explain(err error) *failure {
	f := &failure{code: exitFailed, message: err.Error()}
	switch {
	case errors.Is(err, reading.ErrAmbiguous), errors.Is(err, reading.ErrName):
		f.code = exitMisuse
	case apierrors.IsForbidden(err):
		f.code, f.hint = exitForbidden, "this program has your own rights; ask an administrator of the namespace for the role edit, or view to read"
	case apierrors.IsUnauthorized(err):
		f.code, f.hint = exitForbidden, "the cluster does not know you: log in again"
	case reading.IsUnserved(err):
		f.code, f.hint = exitNotFound, "the cluster does not serve the kind Framework: is Lockstep installed there?"
	case apierrors.IsNotFound(err):
		f.code, f.hint = exitNotFound, "is it in another namespace? `get -A` lists those of all"
	case apierrors.IsConflict(err):
		f.hint = "another client has changed the object meanwhile: try again"
	case errors.Is(err, context.DeadlineExceeded), apierrors.IsTimeout(err), apierrors.IsServerTimeout(err):
		f.code = exitTimeout
	case clientcmd.IsEmptyConfig(err):
		f.hint = "no cluster is configured: set KUBECONFIG, or --kubeconfig"
	}
	return f
}
