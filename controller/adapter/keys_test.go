// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package adapter

import (
	"bytes"
	"encoding/pem"
	"testing"

	"golang.org/x/crypto/ssh"
)

// TestKeysAreAPair in the formats that Pods expect.
func TestKeysAreAPair(t *testing.T) {
	for _, tc := range []struct {
		keys          func() (private, public []byte, err error)
		block, format string
	}{
		{RSAKeys, "RSA PRIVATE KEY", ssh.KeyAlgoRSA},
		{ECDSAKeys, "EC PRIVATE KEY", ssh.KeyAlgoECDSA521},
	} {
		t.Run(tc.format, func(t *testing.T) {
			private, public, err := tc.keys()
			if err != nil {
				t.Fatal(err)
			}
			if block, rest := pem.Decode(private); block == nil || block.Type != tc.block || len(rest) > 0 {
				t.Errorf("the private key is %s", private)
			}
			signer, err := ssh.ParsePrivateKey(private)
			if err != nil {
				t.Fatalf("the private key does not parse: %v", err)
			}
			if got := ssh.MarshalAuthorizedKey(signer.PublicKey()); !bytes.Equal(got, public) || signer.PublicKey().Type() != tc.format {
				t.Errorf("the public key is %s, want %s", public, got)
			}
		})
	}
}
