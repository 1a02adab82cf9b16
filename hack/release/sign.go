// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
)

// readKey reads the private key of a file: ECDSA on the curve P-256, in PEM (PKCS #8) without a password.
func readKey(file string) (*ecdsa.PrivateKey, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading the key to sign with: %w", err)
	}
	const want = "want a private key, ECDSA on P-256, in PEM (PKCS #8) without a password"
	block, _ := pem.Decode(text)
	if block == nil || block.Type != "PRIVATE KEY" {
		return nil, fmt.Errorf("the key to sign with, %s: %s", file, want)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("the key to sign with, %s: %w: %s", file, err, want)
	}
	key, ok := parsed.(*ecdsa.PrivateKey)
	if !ok || key.Curve != elliptic.P256() {
		return nil, fmt.Errorf("the key to sign with, %s, is another kind of key: %s", file, want)
	}
	return key, nil
}

// signAll writes beside each file of a folder its signature, {file}.sig: in ASN.1 over the SHA-256 of the file, as
// base64. That is what `cosign verify-blob` reads. It depends on the file and the key alone.
func signAll(folder string, key *ecdsa.PrivateKey) error {
	files, err := filepath.Glob(filepath.Join(folder, "*.spdx.json"))
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return fmt.Errorf("there is nothing to sign in %s", folder)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(content)
		signature, err := key.Sign(nil, sum[:], crypto.SHA256) // without a random source it is deterministic
		if err != nil {
			return fmt.Errorf("signing %s: %w", file, err)
		}
		if err := writeFile(file+".sig", []byte(base64.StdEncoding.EncodeToString(signature)+"\n")); err != nil {
			return err
		}
	}
	return nil
}
