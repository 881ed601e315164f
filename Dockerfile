# The image holds the binary, Helm and CA certificates, nothing else: no shell, no git, no package manager.
FROM rust:1.95-alpine AS build
RUN apk add --no-cache musl-dev ca-certificates
WORKDIR /src
COPY Cargo.toml Cargo.lock ./
COPY src src
COPY tests tests
RUN cargo build --release --locked --bin kluctl

FROM golang:1.26-alpine AS helm
WORKDIR /src
COPY hack/control-plane/tools/helm .
RUN CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X helm.sh/helm/v4/internal/version.version=$(go list -m -f '{{.Version}}' helm.sh/helm/v4)" \
    -o /helm helm.sh/helm/v4/cmd/helm

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /src/target/release/kluctl /usr/local/bin/kluctl
COPY --from=helm /helm /usr/local/bin/helm
COPY LICENSE /LICENSE
USER 65534:65534
ENTRYPOINT ["/usr/local/bin/kluctl"]
CMD ["controller", "run"]
