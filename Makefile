# Lockstep. `make help` lists what can be made.

SHELL := /usr/bin/env bash -o pipefail
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

# One set of build settings for build, vet and test, and for the parts of the
# local Kubernetes, so that they share the build cache: compiling Kubernetes once
# is slow enough. The binaries are static because they are put into images as
# they are.
export CGO_ENABLED := 0
export GOFLAGS := $(strip $(shell go env GOFLAGS) -trimpath)
VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
LDFLAGS := -X k8s.io/component-base/version.gitVersion=v1.37.1-lockstep.$(VERSION)
GO_BUILD := go build -ldflags '$(LDFLAGS)'

# Where lockstep-local finds the programs that it starts, and where tests find
# lockstep-local.
BIN := $(CURDIR)/bin
export PATH := $(BIN):$(PATH)

# The local cluster runs on Linux alone. Root can run containers on a real node there; anyone can simulate nodes.
LINUX := $(filter Linux,$(shell uname -s))
REAL_NODE := $(shell [ "$(LINUX)" ] && [ "$$(id -u)" = 0 ] && echo yes)

##@ Build

.PHONY: help
help: ## List the targets.
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z0-9-]+:.*## / {printf "  %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build Lockstep's programs into bin/; on Linux that of the local Kubernetes, too.
	@mkdir -p bin
	$(GO_BUILD) -o bin/lockstep-controller ./cmd/controller
	$(GO_BUILD) -o bin/lockstep-scheduler ./cmd/scheduler
	$(GO_BUILD) -o bin/lockstep-dashboard ./cmd/dashboard
	$(GO_BUILD) -o bin/frameworkbarrier ./cmd/frameworkbarrier
	$(GO_BUILD) -o bin/kubectl-lockstep ./cmd/kubectl-lockstep
	$(GO_BUILD) -o bin/lockstep-replay ./cmd/replay
	for name in kubectl-framework kubectl_complete-lockstep kubectl_complete-framework; do ln -sf kubectl-lockstep bin/$$name; done
	$(if $(LINUX),cd localcluster && $(GO_BUILD) -o ../bin/lockstep-local ./cmd/lockstep-local)

.PHONY: components
components: build ## Build the local Kubernetes (etcd, kube-apiserver, …): minutes once, then cached.
	$(if $(LINUX),,$(error the local Kubernetes needs Linux))
	bin/lockstep-local build $(if $(REAL_NODE),--real-node)

.PHONY: images
images: build ## Pack the programs and the example into image tars in bin/images/, and push release images: make images [REGISTRY=registry.example.com/lockstep] [TAG=v1]
	LDFLAGS='$(LDFLAGS)' hack/images.sh
	$(if $(filter command,$(origin REGISTRY)),$(RELEASE) -push '$(REGISTRY)')

# The images of a release, without a container engine. Only `REGISTRY=` on the command line pushes
# them, a variable of the environment does not.
TAG ?= $(VERSION)
RELEASE = cd hack/release && go run . -source ../.. -out ../../dist/images -version '$(TAG)' -ldflags '$(LDFLAGS)' $(if $(SIGNING_KEY),-sign '$(abspath $(SIGNING_KEY))')

.PHONY: release-images
release-images: ## Write images for amd64 and arm64 to dist/images, as OCI layouts, with lists of what is in them (SPDX): make release-images [SIGNING_KEY=key.pem]
	$(RELEASE)

.PHONY: release
release: ## Write all of a release to dist/release: manifests, chart, plugin, wheel, images, SBOMs, checksums, notes: make release TAG=v1.2.3 REGISTRY=registry.example.com/lockstep URL=https://example.com/v1.2.3 [PUSH=1]
	LDFLAGS='-X k8s.io/component-base/version.gitVersion=v1.37.1-lockstep.$(TAG)' hack/release.sh '$(TAG)' '$(REGISTRY)' '$(URL)' $(PUSH)

.PHONY: try-release
try-release: ## Make a release twice, compare, and install it on a real node from a local registry, by the lines of its notes: make try-release [TAG=v0.1.0]
	hack/try-release.sh $(if $(filter command,$(origin TAG)),$(TAG))

.PHONY: release-krew
release-krew: ## Write the plugin of kubectl for Linux and macOS, and its manifest for krew, to dist/krew: make release-krew TAG=v1.2.3 URL=https://example.com/v1.2.3
	$(if $(URL),,$(error URL is missing: below which address will the archives be?))
	cd hack/release && go run . -source ../.. -out ../../dist/krew -version '$(TAG)' -ldflags '$(LDFLAGS)' -krew '$(URL)'

.PHONY: manifests
manifests: ## Write dist/lockstep.yaml, CRDs, roles and deployments in one file, and one for each overlay.
	hack/manifests.sh

.PHONY: generate
generate: ## Write all generated files: CRDs, deep copies, clients.
	hack/generate.sh

.PHONY: clean
clean: ## Remove what was built here. The cache of Kubernetes binaries stays.
	rm -rf bin dist

##@ Check

.PHONY: verify
verify: ## Regenerate, vet, staticcheck, gofmt; fail if the tree is not clean.
	hack/verify.sh

.PHONY: lint
lint: ## Run golangci-lint, which finds more and takes longer to build than verify.
	go tool -modfile=hack/tools/lint/go.mod golangci-lint run ./...
	cd localcluster && go tool -modfile=$(CURDIR)/hack/tools/lint/go.mod golangci-lint run --config $(CURDIR)/.golangci.yml ./...

.PHONY: words
words: ## Show how often comments and documents use words that make sentences hard to read, beside the goals.
	@go run ./hack/words

.PHONY: vulncheck
vulncheck: ## Look up known vulnerabilities of all that is compiled in. It needs the network: make vulncheck [VULNDB=https://mirror]
	VULNDB='$(VULNDB)' hack/vulncheck.sh

.PHONY: test
test: components images test-unit e2e ## Run all tests: unit, random lives, integration, end to end.

# What a release needs besides, each a target of its own.
PARTS ?= audit lives shell-lives storms oracle e2e-versions e2e-kueue e2e-upgrade reliability soak-cluster try-release follow-readme

.PHONY: test-all
test-all: ## Run what takes hours, before a release; docs/reliability.md says when each part was last green: make test-all [PARTS='audit lives']
	hack/test-all.sh $(PARTS)

.PHONY: test-unit
test-unit: export GOGC := 400
test-unit: ## Run the tests that need no cluster. (make verify vets the code.)
	for module in localcluster hack/manifests hack/monitoring hack/release; do (cd $$module && go test -vet=off ./...) || exit; done
	go test -vet=off -timeout 30m ./...

.PHONY: e2e
e2e: components images ## Run the tests on real API servers: simulated nodes, and a real one as root on Linux.
	hack/e2e.sh $(if $(REAL_NODE),--real-node)

.PHONY: pictures
pictures: build components ## Take the pictures of the web page and the terminal that the documents show.
	BROWSER=$$(hack/browser.sh) && export BROWSER && go test -tags e2e -count=1 -timeout 30m -run Pictures ./e2e/users -pictures $(CURDIR)/docs/images

.PHONY: record-metrics
record-metrics: build components ## Record the metrics of both programs during jobs, and draw the dashboard on them, for docs and the tests of hack/monitoring.
	go test -tags e2e -count=1 -run TestWhatWasRecordedIsServed ./e2e/users -record
	cd hack/monitoring && go test -count=1 -run TestThePictureIsOfTheRecording . -update

.PHONY: e2e-versions
e2e-versions: build ## Run Lockstep on older API servers, too, which are built first: make e2e-versions [VERSIONS='1.36 1.35']
	hack/e2e-versions.sh $(VERSIONS)

.PHONY: e2e-upgrade
e2e-upgrade: build components ## Replace Lockstep by an earlier build of itself, and back, while jobs run. It needs the history of the repository.
	hack/previous.sh
	go test -tags e2e -count=1 -timeout 15m ./e2e/upgrade

.PHONY: e2e-kueue
e2e-kueue: build components ## Run Frameworks and training jobs in queues of Kueue itself, which is built first: minutes once: make e2e-kueue [VERSION=v0.19.2]
	for version in $(or $(VERSION),v0.15.1 v0.19.2); do \
		module=$$(cd / && go mod download -json sigs.k8s.io/kueue@$$version | sed -n 's/.*"Dir": "\(.*\)",/\1/p') && \
		go build -C "$$module" -o $(CURDIR)/bin/kueue ./cmd/kueue && \
		KUEUE="$$module" PATH=$(CURDIR)/bin:$$PATH go test -tags e2e -count=1 -timeout 15m -parallel 16 ./e2e/kueue/real || exit; \
	done

.PHONY: lives
lives: ## Lead 100,000 random lives of each kind of job through crashes and worse: make lives [FIRST_SEED=0]
	GOGC=400 go test -v -count=1 -run TestRandomLives -timeout 0 ./controller/lifecycle ./controller/volcano ./controller/kubeflow -lives 100000 $(if $(FIRST_SEED),-first-seed $(FIRST_SEED))

.PHONY: reliability
reliability: components build ## Break requests, kill etcd and the API server, take leaders away and set clocks off; write the tables of docs/reliability.md (20 minutes)
	hack/reliability.sh

.PHONY: soak-cluster
soak-cluster: components build ## Have Frameworks come and go at full rate, and hold that memory, goroutines and objects stay: make soak-cluster [DURATION=2h]
	hack/soak-cluster.sh $(or $(DURATION),2h)

.PHONY: shell-lives
shell-lives: ## Lead 100,000 random lives through the whole controller, on an API server in memory: make shell-lives [FIRST_SEED=0]
	GOGC=400 go test -count=1 -run TestShellLives -timeout 0 ./controller -shell-lives 100000 $(if $(FIRST_SEED),-shell-first-seed $(FIRST_SEED))

.PHONY: storms
.PHONY: walk
walk: ## Print the files of the scheduler that a gang passes, from event to binding.
	go test ./scheduler-plugin/coscheduling -run TestTheWalk -v | sed -n 's/^.*walk_test.go:[0-9]*: //p'

storms: ## Let 10,000 random storms go over the scheduler: make storms [STORMS=10000] [FIRST_SEED=0]
	hack/storms.sh $(or $(STORMS),10000) $(or $(FIRST_SEED),0)

.PHONY: oracle
oracle: ## Compare random gangs with the same Pods without a group: make oracle [DRAWS=2000] [FIRST_SEED=0]
	go test -count=1 -run 'TestOracle$$' -timeout 0 ./scheduler-plugin/coscheduling -oracle-draws $(or $(DRAWS),2000) -oracle-first-seed $(or $(FIRST_SEED),0)

.PHONY: audit
audit: ## Show that the tests notice faults that users had, or would have, before a release: make audit [AUDIT=regexp]
	go run ./hack/audit -run '$(AUDIT)'

.PHONY: follow-readme
follow-readme: ## Follow the README to the letter in a clean clone, with an empty home and empty caches (an hour and a half).
	hack/follow-readme.sh

.PHONY: fuzz
fuzz: ## Run each fuzz test for a while: make fuzz [FUZZTIME=30s]
	hack/fuzz.sh $(FUZZTIME)

.PHONY: bench
bench: components ## Measure, as ratios against an alternative in the same run: make bench [CASES=regexp] [ROUNDS=5] [TRACES=folder]
	hack/bench.sh $(if $(CASES),-cases '$(CASES)') $(if $(ROUNDS),-rounds $(ROUNDS)) $(if $(TRACES),-traces '$(TRACES)')

.PHONY: compat
compat: components images ## Replay a folder of FrameworkController manifests: make compat EXAMPLES=DIR
	hack/compat.sh '$(EXAMPLES)'

##@ Run

# A cluster is used only if the command line names it, not for a variable of the environment.
.PHONY: demo
demo: ## Run the main job on a local Kubernetes, with progress on screen; or in another: make demo KIND=1, or KUBECONFIG=FILE IMAGE=NAME
	LDFLAGS='$(LDFLAGS)' hack/demo.sh $(if $(filter command,$(origin KUBECONFIG)),--kubeconfig '$(KUBECONFIG)' --image-name '$(IMAGE)',$(if $(KIND),--kind,$(if $(REAL_NODE),--real-node) $(if $(KEEP),--keep)))

.PHONY: cluster-up
cluster-up: components ## Start a local Kubernetes with Lockstep and ten simulated nodes.
	bin/lockstep-local up --simulated-nodes 10

.PHONY: cluster-down
cluster-down: ## Stop it and remove its state.
	bin/lockstep-local down
