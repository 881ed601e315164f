# The image holds the binary and CA certificates, nothing else: no shell, no git, no package manager.
FROM rust:1.95-alpine AS build
RUN apk add --no-cache musl-dev ca-certificates
WORKDIR /src
COPY Cargo.toml Cargo.lock ./
COPY src src
COPY tests tests
RUN cargo build --release --locked --bin kluctl

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /src/target/release/kluctl /usr/local/bin/kluctl
COPY LICENSE /LICENSE
USER 65534:65534
ENTRYPOINT ["/usr/local/bin/kluctl"]
CMD ["controller", "run"]
