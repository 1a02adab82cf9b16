// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pki makes the certificates and keys of one throw-away cluster: a CA, the serving
// certificates of its servers, client certificates that say who a component is, and the key
// that signs service account tokens.
//
// Everything is ECDSA P-256 and valid for ten years: a local cluster outlives no rotation.
package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"time"
)

const validity = 10 * 365 * 24 * time.Hour

// Pair is a certificate and its private key, both PEM.
type Pair struct {
	Cert, Key []byte
}

// Authority signs certificates.
type Authority struct {
	Pair
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// NewAuthority makes a self-signed CA with the given common name, valid from an hour before
// now, so that clocks need not agree.
func NewAuthority(name string, now time.Time) (*Authority, error) {
	template, err := newTemplate(pkix.Name{CommonName: name}, now)
	if err != nil {
		return nil, err
	}
	template.IsCA = true
	template.BasicConstraintsValid = true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	key, keyPEM, err := newKey()
	if err != nil {
		return nil, err
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, fmt.Errorf("signing CA %s: %w", name, err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("reading back CA %s: %w", name, err)
	}
	return &Authority{Pair: Pair{Cert: encode("CERTIFICATE", der), Key: keyPEM}, cert: cert, key: key}, nil
}

// Client makes a client certificate for a user and their groups, as the Kubernetes API server
// reads them: common name and organizations.
func (a *Authority) Client(user string, groups []string, now time.Time) (Pair, error) {
	template, err := newTemplate(pkix.Name{CommonName: user, Organization: groups}, now)
	if err != nil {
		return Pair{}, err
	}
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	return a.sign(template)
}

// Server makes a serving certificate for DNS names and addresses. It is good as a client
// certificate too, because etcd connects to its own address with the one it serves.
func (a *Authority) Server(name string, dnsNames []string, addresses []net.IP, now time.Time) (Pair, error) {
	template, err := newTemplate(pkix.Name{CommonName: name}, now)
	if err != nil {
		return Pair{}, err
	}
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	template.DNSNames = dnsNames
	template.IPAddresses = addresses
	return a.sign(template)
}

// SigningKey makes the key pair that signs service account tokens: Cert holds the public key.
func SigningKey() (Pair, error) {
	key, keyPEM, err := newKey()
	if err != nil {
		return Pair{}, err
	}
	der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		return Pair{}, fmt.Errorf("encoding the public signing key: %w", err)
	}
	return Pair{Cert: encode("PUBLIC KEY", der), Key: keyPEM}, nil
}

func (a *Authority) sign(template *x509.Certificate) (Pair, error) {
	template.KeyUsage = x509.KeyUsageDigitalSignature
	key, keyPEM, err := newKey()
	if err != nil {
		return Pair{}, err
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		return Pair{}, fmt.Errorf("signing certificate %s: %w", template.Subject.CommonName, err)
	}
	return Pair{Cert: encode("CERTIFICATE", der), Key: keyPEM}, nil
}

func newTemplate(subject pkix.Name, now time.Time) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, fmt.Errorf("drawing a serial number: %w", err)
	}
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      subject,
		NotBefore:    now.Add(-time.Hour),
		NotAfter:     now.Add(validity),
	}, nil
}

func newKey() (*ecdsa.PrivateKey, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("making a key: %w", err)
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, nil, fmt.Errorf("encoding a key: %w", err)
	}
	return key, encode("EC PRIVATE KEY", der), nil
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
