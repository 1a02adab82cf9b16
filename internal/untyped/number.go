// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package untyped reads values of objects without Go types in Lockstep.
package untyped

import "math"

// Number returns a value as a number from 0 to the largest int32; smaller and larger numbers become these bounds. A
// value that is no number counts as 0.
func Number(value any) int32 {
	switch n := value.(type) {
	case int64:
		return int32(min(max(n, 0), math.MaxInt32))
	case float64:
		return int32(min(max(n, 0), math.MaxInt32))
	default:
		return 0
	}
}
