// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package volcano

import (
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/binary"
	"encoding/pem"
	"math/big"
)

// KeyMaker makes pairs of keys for plugin ssh. It is handed in, because what decides draws
// no random numbers.
type KeyMaker interface {
	// NewKeys returns a pair that was never returned before, as EncodeKeys writes it.
	NewKeys() (private, public []byte, err error)
}

// EncodeKeys writes a pair of keys as ssh reads it: the private one as PKCS #1 in PEM, the
// public one as a line of authorized_keys.
func EncodeKeys(key *rsa.PrivateKey) (private, public []byte) {
	private = pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})

	// RFC 4253, section 6.6: the name of the format, the exponent and the modulus, each with
	// its length before it.
	const format = "ssh-rsa"
	var blob []byte
	for _, part := range [][]byte{[]byte(format), mpint(big.NewInt(int64(key.E))), mpint(key.N)} {
		blob = binary.BigEndian.AppendUint32(blob, uint32(len(part)))
		blob = append(blob, part...)
	}
	return private, []byte(format + " " + base64.StdEncoding.EncodeToString(blob) + "\n")
}

// mpint are the bytes of a number above 0, with a zero in front where the first bit would
// make it negative.
func mpint(n *big.Int) []byte {
	bytes := n.Bytes()
	if len(bytes) > 0 && bytes[0]&0x80 != 0 {
		return append([]byte{0}, bytes...)
	}
	return bytes
}
