// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package adapter

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"sync"

	"golang.org/x/crypto/ssh"
)

// makingRSA limits the creation of key pairs to one at a time. A namespace may have thousands of Jobs that need one,
// and other syncs need the processor.
var makingRSA sync.Mutex

// RSAKeys creates a new RSA key pair: private as PKCS #1 in PEM, public as a line of authorized_keys. RSAKeys takes
// some tenths of a second on one core.
func RSAKeys() (private, public []byte, err error) {
	const bits = 2048
	makingRSA.Lock()
	defer makingRSA.Unlock()
	key, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		return nil, nil, fmt.Errorf("making an RSA key: %w", err)
	}
	return encodeKeys("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(key), key.Public())
}

// ECDSAKeys creates a new key pair on the curve P-521: private as SEC 1 in PEM, public as a line of authorized_keys.
func ECDSAKeys() (private, public []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P521(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("making an ECDSA key: %w", err)
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, nil, fmt.Errorf("writing the private key: %w", err)
	}
	return encodeKeys("EC PRIVATE KEY", der, key.Public())
}

func encodeKeys(kind string, der []byte, public any) (private, line []byte, err error) {
	key, err := ssh.NewPublicKey(public)
	if err != nil {
		return nil, nil, fmt.Errorf("writing the public key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), ssh.MarshalAuthorizedKey(key), nil
}
