// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"path/filepath"
	"testing"
	"time"
)

// The authorities of a cluster.
const (
	// ClientCA says who users are.
	ClientCA = "ca"
	// FrontProxyCA says which proxies may say who users are.
	FrontProxyCA = "front-proxy-ca"
)

// Certificate makes a client certificate, which an authority of the cluster has signed.
func (c *Cluster) Certificate(t testing.TB, authority string, subject pkix.Name) tls.Certificate {
	t.Helper()
	pair := filepath.Join(c.Dir, "pki", authority)
	ca, err := tls.LoadX509KeyPair(pair+".crt", pair+".key")
	if err != nil {
		t.Fatal(err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: subject,
		NotBefore: ca.Leaf.NotBefore, NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, ca.Leaf, &key.PublicKey, ca.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{signed}, PrivateKey: key}
}
