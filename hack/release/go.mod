module github.com/lockstep-k8s/lockstep/hack/release

go 1.26.0

replace github.com/lockstep-k8s/lockstep => ../..

replace github.com/lockstep-k8s/lockstep/localcluster => ../../localcluster

require (
	github.com/google/go-cmp v0.7.0
	github.com/google/go-containerregistry v0.22.1
	github.com/lockstep-k8s/lockstep/localcluster v0.0.0
	sigs.k8s.io/yaml v1.6.0
)

require go.yaml.in/yaml/v2 v2.4.4 // indirect

require (
	github.com/anchore/go-struct-converter v0.1.0 // indirect
	github.com/docker/cli v29.7.2+incompatible // indirect
	github.com/docker/docker-credential-helpers v0.9.3 // indirect
	github.com/klauspost/compress v1.19.2 // indirect
	github.com/opencontainers/go-digest v1.0.0 // indirect
	github.com/opencontainers/image-spec v1.1.1 // indirect
	github.com/sirupsen/logrus v1.9.4 // indirect
	github.com/spdx/tools-golang v0.5.7
	golang.org/x/sync v0.22.0 // indirect
	golang.org/x/sys v0.47.0 // indirect
	gotest.tools/v3 v3.5.2 // indirect
)
