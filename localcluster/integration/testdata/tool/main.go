// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Command tool is what the containers of the integration tests run.
package main

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"
)

func main() {
	switch os.Args[1] {
	case "exit":
		code, _ := strconv.Atoi(os.Args[2])
		fmt.Println("exiting with", code)
		os.Exit(code)
	case "serve":
		serve()
	case "dial":
		retry(func() error {
			conn, err := net.Dial("tcp", os.Args[2]+":7000")
			if err != nil {
				return err
			}
			return conn.Close()
		})
	case "api":
		retry(askAPI)
	}
}

func serve() {
	listener, err := net.Listen("tcp", ":7000")
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	for {
		conn, err := listener.Accept()
		if err != nil {
			os.Exit(1)
		}
		conn.Close()
	}
}

// askAPI asks the API server for its version, as a client in a cluster finds it.
func askAPI() error {
	address := net.JoinHostPort(os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT"))
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	response, err := client.Get("https://" + address + "/version")
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("status %s", response.Status)
	}
	return nil
}

// retry ends the program with success once f succeeds, and with failure after a while.
func retry(f func() error) {
	for deadline := time.Now().Add(40 * time.Second); time.Now().Before(deadline); time.Sleep(200 * time.Millisecond) {
		err := f()
		if err == nil {
			os.Exit(0)
		}
		fmt.Println(err)
	}
	os.Exit(1)
}
