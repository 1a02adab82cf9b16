// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeflowjobs

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"fmt"
	"io"

	"github.com/lockstep-k8s/lockstep/controller/kubeflow"
)

// ecdsaKeys makes keys of ssh from a source of random bytes.
type ecdsaKeys struct{ random io.Reader }

// NewKeys returns a pair of keys that was never returned before.
func (k ecdsaKeys) NewKeys() (private, public []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P521(), k.random)
	if err != nil {
		return nil, nil, fmt.Errorf("making an ECDSA key: %w", err)
	}
	return kubeflow.EncodeKeys(key)
}
