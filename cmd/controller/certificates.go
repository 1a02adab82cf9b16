// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/client-go/util/cert"
	"k8s.io/klog/v2"
)

// rereadAfter is the age at which a certificate from a file is read again.
const rereadAfter = time.Minute

// certificates provides the certificate of a server. It comes from files, which are read again when they change, or it
// is self-signed, created once and kept in memory.
type certificates struct {
	certFile, keyFile string

	mu      sync.Mutex
	current *tls.Certificate
	read    time.Time
}

func newCertificates(certFile, keyFile string) (*certificates, error) {
	c := &certificates{certFile: certFile, keyFile: keyFile}
	switch {
	case (certFile == "") != (keyFile == ""):
		return nil, errors.New("--tls-cert-file and --tls-private-key-file need each other")
	case certFile == "":
		certificate, key, err := cert.GenerateSelfSignedCertKey(programName, nil, nil)
		if err != nil {
			return nil, fmt.Errorf("making a certificate: %w", err)
		}
		pair, err := tls.X509KeyPair(certificate, key)
		if err != nil {
			return nil, fmt.Errorf("making a certificate: %w", err)
		}
		c.current = &pair
		return c, nil
	default:
		return c, c.readFiles()
	}
}

func (c *certificates) readFiles() error {
	pair, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err != nil {
		return fmt.Errorf("--tls-cert-file, --tls-private-key-file: %w", err)
	}
	c.current, c.read = &pair, time.Now()
	return nil
}

// get returns the current certificate. If the files can't be read, it returns the certificate that was read last.
func (c *certificates) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.certFile != "" && time.Since(c.read) > rereadAfter {
		if err := c.readFiles(); err != nil {
			klog.Background().Error(err, "Reading the certificate again failed, the last one is used on")
			c.read = time.Now()
		}
	}
	return c.current, nil
}
