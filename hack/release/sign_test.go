// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// keyFile writes a private key as openssl does.
func keyFile(t *testing.T, key any) string {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "key.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestASignatureFitsItsListAlone signs a list of parts twice: the signature is the same, it fits the list, and no other
// content.
func TestASignatureFitsItsListAlone(t *testing.T) {
	made, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	key, err := readKey(keyFile(t, made))
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	list := []byte(`{"spdxVersion": "SPDX-2.3"}`)
	if err := os.WriteFile(filepath.Join(folder, "a.spdx.json"), list, 0o644); err != nil {
		t.Fatal(err)
	}
	var signatures []string
	for range 2 {
		if err := signAll(folder, key); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(folder, "a.spdx.json.sig"))
		if err != nil {
			t.Fatal(err)
		}
		signatures = append(signatures, string(text))
	}
	if signatures[0] != signatures[1] {
		t.Errorf("the same list has the signatures %q", signatures)
	}
	signature, err := base64.StdEncoding.DecodeString(strings.TrimSpace(signatures[0]))
	if err != nil {
		t.Fatal(err)
	}
	if sum := sha256.Sum256(list); !ecdsa.VerifyASN1(&made.PublicKey, sum[:], signature) {
		t.Error("the signature does not fit the list")
	}
	if sum := sha256.Sum256(append(list, ' ')); ecdsa.VerifyASN1(&made.PublicKey, sum[:], signature) {
		t.Error("the signature fits a list that was changed")
	}
}

func TestAKeyThatCanNotSignIsRefused(t *testing.T) {
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	large, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, []byte("no key"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, file := range map[string]string{"Ed25519": keyFile(t, ed), "P-384": keyFile(t, large), "a text": text} {
		if _, err := readKey(file); err == nil || !strings.Contains(err.Error(), "ECDSA on P-256") || !strings.Contains(err.Error(), file) {
			t.Errorf("%s: got %v, want an error with the file and what is wanted", name, err)
		}
	}
	if err := run([]string{"-source", "../..", "-out", filepath.Join(t.TempDir(), "out"), "-version", "v1", "-sign", text}, t.Output()); err == nil || !strings.Contains(err.Error(), text) {
		t.Errorf("a release with a key that can't sign: got %v, want an error before anything is built", err)
	}
}
