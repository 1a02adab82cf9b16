// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
)

// Bounds of what strangers can have the API server asked. Answers are kept for as long as
// Kubernetes' own components keep them.
const (
	knownTTL, allowedTTL, refusedTTL = 10 * time.Second, 5 * time.Minute, 30 * time.Second

	reviewTime  = 10 * time.Second
	reviewQPS   = 20
	reviewBurst = 40
	// maxAnswers is how many answers are kept, and maxGuarded how many requests may be under way
	// beside each other.
	maxAnswers = 1024
	maxGuarded = 32
	// maxToken is how many bytes a token may have.
	maxToken = 16 << 10
)

// guard lets those in whom the API server knows by a token (TokenReview), and allows to use the
// path (SubjectAccessReview), as components of Kubernetes do. It is written with client-go alone,
// because the packages of Kubernetes' API server for that double the size of the program.
type guard struct {
	client kubernetes.Interface
	// known has the users of tokens, by the hash of the token, and allowed whether a request may be
	// made, by the hash of user, verb and path.
	known, allowed *cache.LRUExpireCache
	slots          chan struct{}
}

func newGuard(config *rest.Config) (*guard, error) {
	own := rest.CopyConfig(config)
	own.QPS, own.Burst, own.RateLimiter = reviewQPS, reviewBurst, nil // Nothing else waits for it.
	client, err := kubernetes.NewForConfig(own)
	if err != nil {
		return nil, fmt.Errorf("making the client that asks about clients: %w", err)
	}
	return &guard{
		client: client, slots: make(chan struct{}, maxGuarded),
		known: cache.NewLRUExpireCache(maxAnswers), allowed: cache.NewLRUExpireCache(maxAnswers),
	}, nil
}

// before guards a handler.
func (g *guard) before(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case g.slots <- struct{}{}:
			defer func() { <-g.slots }()
		default:
			w.Header().Set("Retry-After", "1")
			http.Error(w, "too many requests are under way", http.StatusTooManyRequests)
			return
		}
		if status := g.refusal(r); status != 0 {
			http.Error(w, http.StatusText(status), status)
			return
		}
		handler.ServeHTTP(w, r)
	})
}

// refusal is the status with which a request is refused, 0 if it is let in. Why is in the log: a
// stranger learns nothing.
func (g *guard) refusal(r *http.Request) int {
	ctx, cancel := context.WithTimeout(r.Context(), reviewTime)
	defer cancel()
	logger := klog.FromContext(ctx)
	user, err := g.userOf(ctx, r.Header.Get("Authorization"))
	switch {
	case err != nil:
		logger.Error(err, "Asking who a client is failed", "path", cutPath(r.URL.Path))
		return http.StatusInternalServerError
	case user == nil:
		return http.StatusUnauthorized
	}
	switch allowed, err := g.mayUse(ctx, user, strings.ToLower(r.Method), r.URL.Path); {
	case err != nil:
		logger.Error(err, "Asking what a client may do failed", "user", user.Username, "path", cutPath(r.URL.Path))
		return http.StatusInternalServerError
	case !allowed:
		logger.V(2).Info("Refused a request", "user", user.Username, "verb", r.Method, "path", cutPath(r.URL.Path))
		return http.StatusForbidden
	default:
		return 0
	}
}

// userOf is the user whose token a request has. Nil if it has none, or one that the API server
// does not know.
func (g *guard) userOf(ctx context.Context, header string) (*authenticationv1.UserInfo, error) {
	scheme, token, _ := strings.Cut(header, " ")
	if token = strings.TrimSpace(token); !strings.EqualFold(scheme, "bearer") || token == "" || len(token) > maxToken {
		return nil, nil
	}
	key := sha256.Sum256([]byte(token))
	if user, ok := g.known.Get(key); ok {
		return user.(*authenticationv1.UserInfo), nil
	}
	review, err := g.client.AuthenticationV1().TokenReviews().Create(ctx,
		&authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("reviewing a token: %w", err)
	}
	var user *authenticationv1.UserInfo
	if review.Status.Authenticated {
		user = &review.Status.User
	}
	g.known.Add(key, user, knownTTL)
	return user, nil
}

// mayUse says whether a user may make a request.
func (g *guard) mayUse(ctx context.Context, user *authenticationv1.UserInfo, verb, path string) (bool, error) {
	extra := make(map[string]authorizationv1.ExtraValue, len(user.Extra))
	for name, values := range user.Extra {
		extra[name] = authorizationv1.ExtraValue(values)
	}
	spec := authorizationv1.SubjectAccessReviewSpec{
		User: user.Username, UID: user.UID, Groups: user.Groups, Extra: extra,
		NonResourceAttributes: &authorizationv1.NonResourceAttributes{Verb: verb, Path: path},
	}
	question, err := spec.Marshal()
	if err != nil {
		return false, fmt.Errorf("writing a SubjectAccessReview: %w", err)
	}
	key := sha256.Sum256(question)
	if allowed, ok := g.allowed.Get(key); ok {
		return allowed.(bool), nil
	}
	review, err := g.client.AuthorizationV1().SubjectAccessReviews().Create(ctx,
		&authorizationv1.SubjectAccessReview{Spec: spec}, metav1.CreateOptions{})
	switch {
	case err != nil:
		return false, fmt.Errorf("reviewing a request: %w", err)
	case review.Status.Allowed:
		g.allowed.Add(key, true, allowedTTL)
		return true, nil
	case review.Status.EvaluationError != "":
		return false, errors.New(review.Status.EvaluationError)
	default:
		g.allowed.Add(key, false, refusedTTL)
		return false, nil
	}
}

// cutPath is the beginning of a path, for the log.
func cutPath(path string) string { return path[:min(len(path), 200)] }
