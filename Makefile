# `make demo` and `make test` need stock Rust, Go, Python, git, openssl and a C compiler; everything else is built and cached.
CARGO ?= cargo
IMAGE ?= ghcr.io/kluctl/flux-kluctl-controller:dev

.DEFAULT_GOAL := help

.PHONY: help
help: ## Show what there is
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 12

.PHONY: demo
demo: ## Run the main job end to end on a throw-away control plane (KEEP=1 leaves it running)
	@hack/demo

.PHONY: test
test: ## Formatting, clippy, unit, golden, differential and e2e tests
	@hack/test

.PHONY: check
check: test ## Everything that `test` does, plus documentation and dependency policy
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --no-deps --document-private-items --quiet
	$(CARGO) deny check

.PHONY: build
build: ## Release binary at target/release/kluctl, with helm beside it if there is Go to build it
	$(CARGO) build --release --locked --bin kluctl
	@if command -v go >/dev/null; then install -m 755 "$$(hack/control-plane/build helm)/helm" target/release/helm; fi

.PHONY: run
run: ## Run the controller against the current kubeconfig
	$(CARGO) run --locked --bin kluctl -- controller run

.PHONY: crds
crds: ## Regenerate crds/ and docs/spec
	UPDATE_CRDS=1 $(CARGO) test --locked --quiet --lib is_current

.PHONY: cli-docs
cli-docs: ## Regenerate docs/cli from the command line
	UPDATE_CLI_DOCS=1 $(CARGO) test --locked --quiet --lib the_reference_is_current

.PHONY: bench
bench: ## Speed and memory, side by side with the reference tools where there are any
	@hack/bench

.PHONY: fuzz-smoke
fuzz-smoke: ## Fuzz YAML, templates, kustomize, vars and diffs for a minute each (needs a C++ compiler)
	@hack/fuzz-smoke

.PHONY: image
image: ## Container image (needs a container engine)
	docker build --tag $(IMAGE) .
