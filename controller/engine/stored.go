// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"sync"
)

// storedStatus is a status in JSON, as the API server has sent it; a large one is compressed. All owners are cached
// with their status, even those that ended long ago, and a status is rarely read.
type storedStatus struct {
	data []byte
	// size is that of the JSON if the data are compressed, else 0.
	size int
}

// packedFrom is the size in bytes from which on a cached status is compressed. That saves much, because each task has
// the same keys.
const packedFrom = 4 << 10

// packers are writers to be used again: each has a megabyte of tables.
var packers = sync.Pool{New: func() any {
	writer, err := gzip.NewWriterLevel(nil, gzip.BestSpeed)
	if err != nil {
		panic(err) // The level is a valid one.
	}
	return writer
}}

// packed returns the status in the stored form: compressed if large.
func (s storedStatus) packed() storedStatus {
	if s.size > 0 || len(s.data) < packedFrom {
		return s
	}
	var buffer bytes.Buffer
	writer := packers.Get().(*gzip.Writer)
	defer packers.Put(writer)
	writer.Reset(&buffer)
	if _, err := writer.Write(s.data); err != nil {
		return s
	}
	if err := writer.Close(); err != nil {
		return s
	}
	return storedStatus{data: bytes.Clone(buffer.Bytes()), size: len(s.data)} // A buffer has room to spare.
}

// json returns the status in JSON, empty if there is no status.
func (s storedStatus) json() (json.RawMessage, error) {
	if s.size == 0 {
		return s.data, nil
	}
	reader, err := gzip.NewReader(bytes.NewReader(s.data))
	if err != nil {
		return nil, fmt.Errorf("decompressing the cached status: %w", err)
	}
	data := make([]byte, s.size)
	if _, err := io.ReadFull(reader, data); err != nil {
		return nil, fmt.Errorf("decompressing the cached status: %w", err)
	}
	return data, nil
}

// decodeStored reads a stored status. Nil if there is none.
func decodeStored[O Owner, S any](stored storedStatus, core Core[O, S]) (*S, error) {
	data, err := stored.json()
	if err != nil || len(data) == 0 {
		return nil, err
	}
	return core.DecodeStatus(data)
}
