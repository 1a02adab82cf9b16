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

// These bounds limit the requests to the API server that clients of this program can cause. Answers are cached as long
// as Kubernetes' own components cache them.
const (
	knownTTL, allowedTTL, refusedTTL = 10 * time.Second, 5 * time.Minute, 30 * time.Second
	// guestTTL is how long the guard remembers that it has admitted a token: as long as a Pod's token is valid.
	guestTTL = time.Hour

	reviewTime  = 10 * time.Second
	reviewQPS   = 20
	reviewBurst = 40
	// maxReviews is how many token and access reviews may run concurrently in each lane; known and unknown clients have
	// a lane each. maxServed is how many admitted requests may be served concurrently. queueTime is how long a request
	// waits for its turn.
	maxReviews = 16
	maxServed  = 32
	queueTime  = 2 * time.Second
	// maxAnswers is how many answers are kept.
	maxAnswers = 1024
	// linesAtOnce is how many log lines about refused or failed requests may follow each other at once. Further lines
	// are at least lineEvery apart.
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
	// known holds the user of each token, by the token's hash. allowed holds whether a request is allowed, by the hash
	// of its user, verb and path.
	known, allowed *cache.LRUExpireCache
	lanes          *lanes.Lanes
	// clients has one for each lane.
	clients map[lanes.Lane]kubernetes.Interface
	// served holds an item for each admitted request that is being served.
	served lanes.Lane
	// refused and failed limit the log lines about refused requests, and about requests that could not be checked
	// because the API server did not answer.
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

// ask waits for its turn in the lane, and then sends the question to the API server. ask returns errBusy if its turn
// does not come in time.
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

// tokenOf returns the bearer token of a request; "" if the request has none, or one that is too long.
func tokenOf(header string) string {
	scheme, token, _ := strings.Cut(header, " ")
	if token = strings.TrimSpace(token); !strings.EqualFold(scheme, "bearer") || len(token) > maxToken {
		return ""
	}
	return token
}

// unknownTokenError means that the API server does not know the token, or can't check it.
type unknownTokenError struct{ reason string }

func (e *unknownTokenError) Error() string {
	return "the API server does not know the token: " + e.reason
}

// undecidedError means that no rule allows the request, and that an authorizer could not answer. Such a result is not
// cached.
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
