// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/lockstep-k8s/lockstep/internal/dashboard"
	"github.com/lockstep-k8s/lockstep/internal/dashboard/rights"
	"github.com/lockstep-k8s/lockstep/internal/reading"
)

// The bounds of visitors.
const (
	// maxVisitors is how many visitors are remembered. forget is how long a visitor is remembered after his last visit.
	maxVisitors = 1000
	forget      = 10 * time.Minute
	// visitorQPS is how many requests a second the page sends to the API server for one visitor, and visitorBurst is
	// how many it may send at once.
	visitorQPS, visitorBurst = 20, 100
)

// visitors make for each user a Reader that reads what he may.
type visitors struct {
	config *rest.Config
	may    authorizer.UnconditionalAuthorizer
	// known holds the Reader of each user. limits holds the limit on requests of each user name, which all tokens of
	// the user share.
	known, limits *cache.LRUExpireCache
}

func newVisitors(config *rest.Config, may authorizer.UnconditionalAuthorizer) *visitors {
	return &visitors{config: config, may: may, known: cache.NewLRUExpireCache(maxVisitors), limits: cache.NewLRUExpireCache(maxVisitors)}
}

// limitOf bounds the requests of a name.
func (v *visitors) limitOf(name string) flowcontrol.RateLimiter {
	limit, known := v.limits.Get(name)
	if !known {
		limit = flowcontrol.NewTokenBucketRateLimiter(visitorQPS, visitorBurst)
	}
	v.limits.Add(name, limit, forget)
	return limit.(flowcontrol.RateLimiter)
}

// of returns the sender of a request. The door has let him in.
func (v *visitors) of(r *http.Request) (*dashboard.Visitor, error) {
	info, known := request.UserFrom(r.Context())
	if !known {
		return nil, errors.New("the visitor is not authenticated")
	}
	key := keyOf(info)
	if visitor, known := v.known.Get(key); known {
		v.known.Add(key, visitor, forget)
		v.limitOf(info.GetName()) // It is remembered for as long, for other tokens of his.
		return visitor.(*dashboard.Visitor), nil
	}
	config := rest.CopyConfig(v.config)
	config.RateLimiter = v.limitOf(info.GetName())
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return &rights.Transport{User: info, Asks: v.may, Next: next}
	})
	reader, err := reading.New(config)
	if err != nil {
		return nil, err
	}
	visitor := &dashboard.Visitor{Name: info.GetName(), Namespace: "default", Reader: reader}
	v.known.Add(key, visitor, forget)
	return visitor, nil
}

// keyOf returns what of a user decides on his rights.
func keyOf(info user.Info) string {
	key, err := json.Marshal([]any{info.GetName(), info.GetUID(), info.GetGroups(), info.GetExtra()})
	if err != nil {
		return info.GetName() // Strings and lists of strings are always JSON.
	}
	return string(key)
}
