// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package volcanojobs

import (
	"crypto/rsa"
	"fmt"
	"io"

	"github.com/lockstep-k8s/lockstep/controller/volcano"
)

// keyBits is the size of the keys of plugin ssh. To make a pair takes some tenths of a
// second.
const keyBits = 2048

// rsaKeys makes keys from a source of random bytes.
type rsaKeys struct{ random io.Reader }

// NewKeys returns a pair of keys that was never returned before.
func (k rsaKeys) NewKeys() (private, public []byte, err error) {
	key, err := rsa.GenerateKey(k.random, keyBits)
	if err != nil {
		return nil, nil, fmt.Errorf("making an RSA key: %w", err)
	}
	private, public = volcano.EncodeKeys(key)
	return private, public, nil
}
