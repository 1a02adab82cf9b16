// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Command toolbox is a whole container image in one static binary, for tests
// that need what common base images have: a shell, some tools, a web server.
// Which of them it is depends on the name by which it is called.
package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"mvdan.cc/sh/v3/interp"
	"mvdan.cc/sh/v3/syntax"
)

// tools are the names by which toolbox can be called.
func tools() map[string]func(args []string) error {
	return map[string]func([]string) error{
		"sh":       sh,
		"bash":     sh,
		"printenv": printenv,
		"env":      printenv,
		"sleep":    sleep,
		"hostname": hostname,
		"getent":   getent,
		"nslookup": func(args []string) error { return getent(append([]string{"ahosts"}, args...)) },
		"cat":      cat,
		"ls":       ls,
		"true":     func([]string) error { return nil },
		"false":    func([]string) error { return interp.ExitStatus(1) },
		"nginx":    serve,
		"toolbox":  serve,
	}
}

func main() {
	name := filepath.Base(os.Args[0])
	tool, ok := tools()[name]
	if !ok {
		fmt.Fprintf(os.Stderr, "toolbox: no tool %q\n", name)
		os.Exit(127)
	}
	err := tool(os.Args[1:])
	var status interp.ExitStatus
	if errors.As(err, &status) {
		os.Exit(int(status))
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}

// sh runs `sh -c SCRIPT` or `sh FILE`.
func sh(args []string) error {
	var script, name string
	switch {
	case len(args) >= 2 && args[0] == "-c":
		script, name = args[1], "-c"
	case len(args) >= 1:
		content, err := os.ReadFile(args[0])
		if err != nil {
			return err
		}
		script, name = string(content), args[0]
	default:
		return errors.New("want -c SCRIPT or a file")
	}
	file, err := syntax.NewParser().Parse(strings.NewReader(script), name)
	if err != nil {
		return err
	}
	runner, err := interp.New(interp.StdIO(os.Stdin, os.Stdout, os.Stderr))
	if err != nil {
		return err
	}
	return runner.Run(context.Background(), file)
}

func printenv(args []string) error {
	if len(args) == 0 {
		for _, variable := range os.Environ() {
			fmt.Println(variable)
		}
		return nil
	}
	value, ok := os.LookupEnv(args[0])
	if !ok {
		return interp.ExitStatus(1)
	}
	fmt.Println(value)
	return nil
}

func sleep(args []string) error {
	if len(args) != 1 {
		return errors.New("want a number of seconds")
	}
	if args[0] == "infinity" {
		// Nothing else may run in this process, which Go would call a deadlock.
		time.Sleep(math.MaxInt64)
	}
	seconds, err := strconv.ParseFloat(args[0], 64)
	if err != nil {
		return fmt.Errorf("want a number of seconds, not %q", args[0])
	}
	time.Sleep(time.Duration(seconds * float64(time.Second)))
	return nil
}

// hostname prints the host's name; with -f its domain too, as the resolver
// knows it.
func hostname(args []string) error {
	name, err := os.Hostname()
	if err != nil {
		return err
	}
	if len(args) > 0 && args[0] == "-f" {
		full, err := net.DefaultResolver.LookupCNAME(context.Background(), name)
		if err == nil {
			name = strings.TrimSuffix(full, ".")
		}
	}
	fmt.Println(name)
	return nil
}

// getent prints the addresses of a host, or the hosts file; 2 says not found.
func getent(args []string) error {
	if len(args) == 0 || (args[0] != "ahosts" && args[0] != "hosts") {
		return errors.New("want ahosts or hosts")
	}
	if len(args) == 1 {
		return cat([]string{"/etc/hosts"})
	}
	addresses, err := net.DefaultResolver.LookupHost(context.Background(), args[1])
	if err != nil {
		return interp.ExitStatus(2)
	}
	for _, address := range addresses {
		fmt.Println(address, args[1])
	}
	return nil
}

func cat(args []string) error {
	for _, name := range args {
		content, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if _, err := os.Stdout.Write(content); err != nil {
			return err
		}
	}
	return nil
}

func ls(args []string) error {
	dir := "."
	if len(args) > 0 {
		dir = args[len(args)-1]
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		fmt.Println(entry.Name())
	}
	return nil
}

// serve answers every request on port 80 with a line, until it is killed.
func serve([]string) error {
	return http.ListenAndServe(":80", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		name, _ := os.Hostname()
		fmt.Fprintf(w, "%s serves\n", name)
	}))
}
