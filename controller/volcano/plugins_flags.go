// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package volcano

import (
	"flag"
	"fmt"
	"io"
	"strconv"
)

// pluginFlags are the flags that a plugin knows. A flag has Go's syntax: one or two hyphens, and the value after "=" or
// as the next entry. The value of a boolean flag must follow "=".
type pluginFlags struct {
	plugin string
	set    *flag.FlagSet
}

func newPluginFlags(plugin string) pluginFlags {
	set := flag.NewFlagSet(plugin, flag.ContinueOnError)
	set.SetOutput(io.Discard)
	set.Usage = func() {}
	return pluginFlags{plugin, set}
}

// text is a flag with a text as value. `into` holds the default.
func (f pluginFlags) text(into *string, name string) { f.set.StringVar(into, name, *into, "") }

// number adds a flag for a number. `into` holds the default; an invalid value does not change it.
func (f pluginFlags) number(into *int32, name string) {
	f.set.Func(name, "", func(value string) error {
		n, err := strconv.ParseInt(value, 0, 32)
		if err == nil {
			*into = int32(n)
		}
		return err
	})
}

// toggle adds a boolean flag. `into` holds the default; an invalid value does not change it.
func (f pluginFlags) toggle(into *bool, name string) {
	f.set.BoolFunc(name, "", func(value string) error {
		on, err := strconv.ParseBool(value)
		if err == nil {
			*into = on
		}
		return err
	})
}

// parse reads the flags up to the first invalid one. parse ignores that flag and all flags after it, and describes the
// problem.
func (f pluginFlags) parse(flags []string) (problem string) {
	if err := f.set.Parse(flags); err != nil {
		return fmt.Sprintf("Plugin %s: %v: this flag and all flags after it are ignored", f.plugin, err)
	}
	if f.set.NArg() > 0 {
		return fmt.Sprintf("Plugin %s: %q is no flag: this entry and all entries after it are ignored", f.plugin, f.set.Arg(0))
	}
	return ""
}
