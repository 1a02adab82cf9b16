// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package statedir

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestAFolderInOtherHandsIsRefused, as one that somebody has made in /tmp before.
func TestAFolderInOtherHandsIsRefused(t *testing.T) {
	me, group := os.Geteuid(), os.Getegid()
	for name, tc := range map[string]struct {
		mode        os.FileMode
		user, group int
		want        string
	}{
		"one's own":                        {0o755, me, group, ""},
		"writable by one's own group":      {0o775, me, group, ""},
		"somebody else's":                  {0o755, me + 1, group, "belongs to user"},
		"writable by a group of others":    {0o775, me, group + 1, "may be written by others"},
		"writable by everybody":            {0o757, me, group, "may be written by others"},
		"writable by everybody, like /tmp": {0o777 | os.ModeSticky, me, group, "may be written by others"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.Chmod(dir, tc.mode); err != nil {
				t.Fatal(err)
			}
			info, err := os.Stat(dir)
			if err != nil {
				t.Fatal(err)
			}
			err = judge(info, tc.user, tc.group)
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}

// TestAFolderThatIsMadeIsOnesOwn, and one that others may write is not taken for it, through a link neither.
func TestAFolderThatIsMadeIsOnesOwn(t *testing.T) {
	parent := t.TempDir()
	dir, link := filepath.Join(parent, "a", "b"), filepath.Join(parent, "link")
	if err := Make(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	if err := Make(link); err != nil {
		t.Errorf("one's own link to one's own folder: %v", err)
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{dir, link} {
		if err := Make(path); err == nil || !strings.Contains(err.Error(), "--dir "+path+" may be written by others") {
			t.Errorf("%s: error %v", path, err)
		}
	}
}
