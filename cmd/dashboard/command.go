// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/options"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/klog/v2"

	"github.com/lockstep-k8s/lockstep/internal/buildinfo"
	"github.com/lockstep-k8s/lockstep/internal/dashboard"
	"github.com/lockstep-k8s/lockstep/internal/logging"
)

const programName = "lockstep-dashboard"

// shutdownTime is how long requests may take to end after the program was stopped.
const shutdownTime = 5 * time.Second

// flags are the command line.
type flags struct {
	kubeconfig     string
	serving        *options.SecureServingOptions
	authentication *options.DelegatingAuthenticationOptions
	authorization  *options.DelegatingAuthorizationOptions
	logging        *logsapi.LoggingConfiguration
}

// newFlags returns the defaults.
func newFlags() *flags {
	f := &flags{
		serving:        options.NewSecureServingOptions(),
		authentication: options.NewDelegatingAuthenticationOptions(),
		authorization:  options.NewDelegatingAuthorizationOptions(),
		logging:        logsapi.NewLoggingConfiguration(),
	}
	f.serving.BindPort = 8443
	// Without files, a certificate is made at start, and kept in memory.
	f.serving.ServerCert.CertDirectory, f.serving.ServerCert.PairName = "", programName
	return f
}

func newCommand() *cobra.Command {
	f := newFlags()
	cmd := &cobra.Command{
		Use:   programName,
		Short: "Serve a web page of jobs with each visitor's own rights",
		Long: `lockstep-dashboard serves the web page of kubectl lockstep dashboard in a cluster. The API
server authenticates each visitor (by a token, a client certificate, or the headers of an authenticating proxy), and
lockstep-dashboard checks each request that it sends for a visitor against the visitor's rights (SubjectAccessReview).`,
		Args:    cobra.NoArgs,
		Version: buildinfo.Version(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := logging.Set(f.logging, nil); err != nil {
				return err
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			return f.run(klog.NewContext(ctx, klog.Background()))
		},
		SilenceUsage: true,
	}
	cmd.SetContext(context.Background())
	set := cmd.Flags()
	set.StringVar(&f.kubeconfig, "kubeconfig", "", "kubeconfig of the API server; in a Pod, by default the service account")
	f.serving.AddFlags(set)
	f.authentication.AddFlags(set)
	f.authorization.AddFlags(set)
	logsapi.AddFlags(f.logging, set)
	return cmd
}

// run serves until the context ends.
func (f *flags) run(ctx context.Context) error {
	if f.serving.BindPort == 0 {
		return errors.New("--secure-port is 0, and has to be from 1 to 65535")
	}
	var wrong []error
	for _, errs := range [][]error{f.serving.Validate(), f.authentication.Validate(), f.authorization.Validate()} {
		wrong = append(wrong, errs...)
	}
	if err := errors.Join(wrong...); err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", f.kubeconfig)
	if err != nil {
		return err
	}
	config.UserAgent = programName
	if f.authentication.RemoteKubeConfigFile == "" {
		f.authentication.RemoteKubeConfigFile = f.kubeconfig
	}
	if f.authorization.RemoteKubeConfigFile == "" {
		f.authorization.RemoteKubeConfigFile = f.kubeconfig
	}
	serving, who, err := f.secured()
	if err != nil {
		return err
	}
	var may server.AuthorizationInfo
	if err := f.authorization.ApplyTo(&may); err != nil {
		return fmt.Errorf("preparing to ask what visitors may do: %w", err)
	}
	handler := newHandler(config, who, may.Authorizer)
	stopped, _, err := serving.Serve(handler, shutdownTime, ctx.Done())
	if err != nil {
		return err
	}
	klog.FromContext(ctx).Info("Serving the web page", "address", serving.Listener.Addr().String())
	<-stopped
	return nil
}

// secured returns where the page is served, and how visitors are authenticated there.
func (f *flags) secured() (serving *server.SecureServingInfo, who authenticator.Request, err error) {
	if err := f.serving.MaybeDefaultWithSelfSignedCerts("localhost", nil, nil); err != nil {
		return nil, nil, fmt.Errorf("making a certificate: %w", err)
	}
	if err := f.serving.ApplyTo(&serving); err != nil {
		return nil, nil, fmt.Errorf("--secure-port %d: %w", f.serving.BindPort, err)
	}
	var asked server.AuthenticationInfo
	if err := f.authentication.ApplyTo(&asked, serving, nil); err != nil {
		return nil, nil, fmt.Errorf("preparing the authentication of visitors: %w", err)
	}
	serving.ClientCA = awaited(serving.ClientCA, f.authentication, asked.RequestHeaderConfig != nil)
	return serving, asked.Authenticator, nil
}

// newHandler serves the page, the login and probes. newHandler reads the cluster with the rights of config.
func newHandler(config *rest.Config, who authenticator.Request, may authorizer.UnconditionalAuthorizer) http.Handler {
	visitors := newVisitors(config, may)
	pages := dashboard.New(dashboard.Options{Visitor: visitors.of, LogOut: logoutPath})
	return newDoor(who, pages)
}
