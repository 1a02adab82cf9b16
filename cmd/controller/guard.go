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

	"golang.org/x/time/rate"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/lockstep-k8s/lockstep/internal/lanes"
	"github.com/lockstep-k8s/lockstep/internal/text"
)

// Bounds on the requests to the API server that clients can cause. Answers are cached as long as by Kubernetes' own
// components.
const (
	knownTTL, allowedTTL, refusedTTL = 10 * time.Second, 5 * time.Minute, 30 * time.Second
	// guestTTL is how long it is remembered that a token was let in: as long as a token of a Pod
	// lives.
	guestTTL = time.Hour

	reviewTime  = 10 * time.Second
	reviewQPS   = 20
	reviewBurst = 40
	// maxReviews is how many questions of a lane may be under way beside each other, and maxServed
	// how many requests that were let in. queueTime is how long others wait for their turn.
	maxReviews = 16
	maxServed  = 32
	queueTime  = 2 * time.Second
	// maxAnswers is how many answers are kept.
	maxAnswers = 1024
	// linesAtOnce is how many lines of a kind the log has at least, and lineEvery how far apart they are after that.
	linesAtOnce, lineEvery = 10, 10 * time.Second
	// maxToken is how many bytes a token may have.
	maxToken = 16 << 10
)

// errBusy is of a question that has waited for its turn in vain.
var errBusy = errors.New("too many questions are under way")

// guard admits a client if the API server knows the client's token (TokenReview) and lets the client use the path
// (SubjectAccessReview), as components of Kubernetes do. It is written with client-go only, because the API server's packages for that would
// double the size of the program.
//
// Requests without a token, or with cached answers, do not wait. All other requests cost a call to the API server.
// They wait in two separately limited queues, so that unknown clients can't keep out a Prometheus that was admitted
// before.
type guard struct {
	// known has the users of tokens, by the hash of the token. allowed has whether a request may be made, by the hash
	// of user, verb and path.
	known, allowed *cache.LRUExpireCache
	lanes          *lanes.Lanes
	// clients has one for each lane.
	clients map[lanes.Lane]kubernetes.Interface
	// served has an item for each request that was let in and is under way.
	served lanes.Lane
	// refused and failed bound how often the log mentions that a request was refused, and that the API server could not
	// be asked about one.
	refused, failed rate.Sometimes
}

func newGuard(config *rest.Config) (*guard, error) {
	g := &guard{
		known: cache.NewLRUExpireCache(maxAnswers), allowed: cache.NewLRUExpireCache(maxAnswers),
		lanes: lanes.New(maxReviews, maxAnswers), clients: map[lanes.Lane]kubernetes.Interface{}, served: make(lanes.Lane, maxServed),
		refused: rate.Sometimes{First: linesAtOnce, Interval: lineEvery}, failed: rate.Sometimes{First: linesAtOnce, Interval: lineEvery},
	}
	for _, lane := range []lanes.Lane{g.lanes.Strangers, g.lanes.Guests} {
		own := rest.CopyConfig(config)
		own.QPS, own.Burst, own.RateLimiter = reviewQPS, reviewBurst, nil // Nothing else waits for it.
		client, err := kubernetes.NewForConfig(own)
		if err != nil {
			return nil, fmt.Errorf("making the client that asks about clients: %w", err)
		}
		g.clients[lane] = client
	}
	return g, nil
}

// ask asks when its turn has come. The error is errBusy if that takes too long.
func (g *guard) ask(ctx context.Context, lane lanes.Lane, question func(kubernetes.Interface) error) error {
	if !lane.Enter(ctx, queueTime) {
		return errBusy
	}
	defer lane.Leave()
	return question(g.clients[lane])
}

// before guards a handler.
func (g *guard) before(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status := g.refusal(r)
		if status == 0 {
			if g.served.Enter(r.Context(), queueTime) {
				defer g.served.Leave()
				handler.ServeHTTP(w, r)
				return
			}
			status = http.StatusTooManyRequests
		}
		if status == http.StatusTooManyRequests {
			w.Header().Set("Retry-After", "1")
		}
		http.Error(w, http.StatusText(status), status)
	})
}

// refusal returns the HTTP status with which a request is refused, 0 if the request is admitted. The reason is only
// logged, so that an unknown client learns nothing.
func (g *guard) refusal(r *http.Request) int {
	ctx, cancel := context.WithTimeout(r.Context(), reviewTime)
	defer cancel()
	logger := klog.FromContext(ctx).WithValues("verb", r.Method, "path", text.Cut(r.URL.Path, 200))
	// No client is to fill the log by requests that are broken off, or by many.
	refuse := func(reason string) {
		if r.Context().Err() == nil {
			g.refused.Do(func() { logger.V(2).Info("Refused a request", "reason", text.Shorten(reason, 512)) })
		}
	}
	fail := func(err error, what string) {
		if r.Context().Err() == nil {
			g.failed.Do(func() { logger.Error(err, what) })
		}
	}
	token := tokenOf(r.Header.Get("Authorization"))
	if token == "" {
		refuse("it has no bearer token")
		return http.StatusUnauthorized
	}
	lane := g.lanes.Of(token)
	user, err := g.userOf(ctx, lane, token)
	var unknown *unknownTokenError
	switch {
	case errors.Is(err, errBusy):
		refuse(err.Error())
		return http.StatusTooManyRequests
	case errors.As(err, &unknown):
		refuse(unknown.Error())
		return http.StatusUnauthorized
	case err != nil:
		fail(err, "Authenticating a client failed")
		return http.StatusInternalServerError
	}
	logger = logger.WithValues("user", user.Username)
	var undecided *undecidedError
	switch allowed, err := g.mayUse(ctx, lane, user, strings.ToLower(r.Method), r.URL.Path); {
	case errors.Is(err, errBusy):
		refuse(err.Error())
		return http.StatusTooManyRequests
	case errors.As(err, &undecided):
		refuse(undecided.Error())
		return http.StatusForbidden
	case err != nil:
		fail(err, "Asking what a client may do failed")
		return http.StatusInternalServerError
	case !allowed:
		refuse("the user may not make the request")
		return http.StatusForbidden
	default:
		g.lanes.Welcome(token, guestTTL)
		return 0
	}
}

// tokenOf returns the token that a request has. Empty if the request has none, or a too long one.
func tokenOf(header string) string {
	scheme, token, _ := strings.Cut(header, " ")
	if token = strings.TrimSpace(token); !strings.EqualFold(scheme, "bearer") || len(token) > maxToken {
		return ""
	}
	return token
}

// unknownTokenError is for a token that the API server does not know, or can't check.
type unknownTokenError struct{ reason string }

func (e *unknownTokenError) Error() string {
	return "the API server does not know the token: " + e.reason
}

// undecidedError is for a request that no rule allows, where an authorizer could not answer. That is not kept.
type undecidedError struct{ reason string }

func (e *undecidedError) Error() string { return "no rule allows the request: " + e.reason }

// userOf returns the user of a token, from the cache or from a TokenReview. A refusal with an error text may mean only
// that the authenticator can't be reached, so such a refusal is not cached.
func (g *guard) userOf(ctx context.Context, lane lanes.Lane, token string) (*authenticationv1.UserInfo, error) {
	key := sha256.Sum256([]byte(token))
	if user, ok := g.known.Get(key); ok {
		if user := user.(*authenticationv1.UserInfo); user != nil {
			return user, nil
		}
		return nil, &unknownTokenError{reason: "the API server said so less than five minutes ago"}
	}
	var review *authenticationv1.TokenReview
	err := g.ask(ctx, lane, func(client kubernetes.Interface) (err error) {
		review, err = client.AuthenticationV1().TokenReviews().Create(ctx,
			&authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}, metav1.CreateOptions{})
		return err
	})
	switch {
	case err != nil:
		return nil, fmt.Errorf("reviewing a token: %w", err)
	case review.Status.Authenticated:
		g.known.Add(key, &review.Status.User, knownTTL)
		return &review.Status.User, nil
	case review.Status.Error != "":
		return nil, &unknownTokenError{reason: review.Status.Error}
	default:
		g.known.Add(key, (*authenticationv1.UserInfo)(nil), knownTTL)
		return nil, &unknownTokenError{reason: "it gives no reason"}
	}
}

// mayUse reports whether a user may make a request.
func (g *guard) mayUse(ctx context.Context, lane lanes.Lane, user *authenticationv1.UserInfo, verb, path string) (bool, error) {
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
	var review *authorizationv1.SubjectAccessReview
	err = g.ask(ctx, lane, func(client kubernetes.Interface) (err error) {
		review, err = client.AuthorizationV1().SubjectAccessReviews().Create(ctx,
			&authorizationv1.SubjectAccessReview{Spec: spec}, metav1.CreateOptions{})
		return err
	})
	switch {
	case err != nil:
		return false, fmt.Errorf("reviewing a request: %w", err)
	case review.Status.Allowed:
		g.allowed.Add(key, true, allowedTTL)
		return true, nil
	case review.Status.EvaluationError != "":
		return false, &undecidedError{reason: review.Status.EvaluationError}
	default:
		g.allowed.Add(key, false, refusedTTL)
		return false, nil
	}
}
