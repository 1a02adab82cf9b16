// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func newAuthority(t *testing.T) (*Authority, *x509.CertPool) {
	t.Helper()
	ca, err := NewAuthority("test-ca", now)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(ca.Cert) {
		t.Fatal("the CA's certificate cannot be read")
	}
	return ca, pool
}

func parse(t *testing.T, p Pair) *x509.Certificate {
	t.Helper()
	if _, err := tls.X509KeyPair(p.Cert, p.Key); err != nil {
		t.Fatalf("certificate and key do not fit: %v", err)
	}
	block, _ := pem.Decode(p.Cert)
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

func TestClientCertificateSaysWhoTheClientIs(t *testing.T) {
	ca, pool := newAuthority(t)
	pair, err := ca.Client("system:node:real-0", []string{"system:nodes"}, now)
	if err != nil {
		t.Fatal(err)
	}
	cert := parse(t, pair)
	if cert.Subject.CommonName != "system:node:real-0" {
		t.Errorf("user %q", cert.Subject.CommonName)
	}
	if diff := cmp.Diff([]string{"system:nodes"}, cert.Subject.Organization); diff != "" {
		t.Errorf("groups (-want,+got):\n%s", diff)
	}
	client := x509.VerifyOptions{Roots: pool, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	if _, err := cert.Verify(client); err != nil {
		t.Errorf("as a client: %v", err)
	}
	server := x509.VerifyOptions{Roots: pool, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	if _, err := cert.Verify(server); err == nil {
		t.Error("a client certificate must not serve")
	}
	_, stranger := newAuthority(t)
	client.Roots = stranger
	if _, err := cert.Verify(client); err == nil {
		t.Error("another CA must not vouch for it")
	}
}

func TestServerCertificateNamesTheServer(t *testing.T) {
	ca, pool := newAuthority(t)
	pair, err := ca.Server("apiserver", []string{"localhost"}, []net.IP{net.IPv4(127, 0, 0, 1)}, now)
	if err != nil {
		t.Fatal(err)
	}
	cert := parse(t, pair)
	tests := map[string]struct {
		name string
		ok   bool
	}{
		"its name":        {"localhost", true},
		"its address":     {"127.0.0.1", true},
		"another name":    {"example.com", false},
		"another address": {"127.0.0.2", false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := cert.Verify(x509.VerifyOptions{Roots: pool, CurrentTime: now, DNSName: tc.name})
			if (err == nil) != tc.ok {
				t.Errorf("verifying %s: %v", tc.name, err)
			}
		})
	}
}

func TestSigningKeyIsAPair(t *testing.T) {
	pair, err := SigningKey()
	if err != nil {
		t.Fatal(err)
	}
	private, _ := pem.Decode(pair.Key)
	key, err := x509.ParseECPrivateKey(private.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	public, _ := pem.Decode(pair.Cert)
	parsed, err := x509.ParsePKIXPublicKey(public.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	if !key.PublicKey.Equal(parsed) {
		t.Error("public and private key do not belong together")
	}
}
