# The image holds one file, the program: no shell, no packages, no root.
#
#   docker build --build-arg VERSION=1.2.3 --build-arg COMMIT=$(git rev-parse --short=12 HEAD) -t pilotfish .
#   docker build --target ruleserver -t ruleserver .       # the reference server, to try pilotfish with
#   docker buildx build --platform linux/amd64,linux/arm64 -t pilotfish .
#
# A program that is built already takes the place of the first stage:
#
#   buildah bud --build-context build=DIRECTORY -t pilotfish .   # DIRECTORY/out/pilotfish
# The compiler runs on the machine that builds, whatever it builds for.
FROM --platform=$BUILDPLATFORM docker.io/library/golang:1.26.8@sha256:0f063af2d465d8dcae54cce04278ada488b96f77b42449c8d071e47d016cc65a AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY cmd cmd
COPY internal internal
COPY pkg pkg
ARG VERSION=devel COMMIT=
ARG TARGETOS TARGETARCH
RUN CGO_ENABLED=0 GOOS=${TARGETOS:-} GOARCH=${TARGETARCH:-} go build -trimpath -ldflags "-s -w -X main.version=${VERSION} -X example.org/pilotfish/internal/cli.commit=${COMMIT}" -o /out/ ./cmd/pilotfish ./cmd/ruleserver

FROM scratch AS ruleserver
COPY --from=build /out/ruleserver /ruleserver
USER 65532:65532
EXPOSE 9001
STOPSIGNAL SIGTERM
ENTRYPOINT ["/ruleserver"]

FROM scratch AS pilotfish
ARG VERSION=devel
LABEL org.opencontainers.image.title="pilotfish" \
      org.opencontainers.image.description="A sidecar proxy for sticky workloads: each job goes to the upstream that will finish it soonest." \
      org.opencontainers.image.licenses="MIT" \
      org.opencontainers.image.version="${VERSION}"
COPY --from=build /out/pilotfish /pilotfish
# A number, so that Kubernetes can verify that it is not root.
USER 65532:65532
# Jobs and the admin port. Both are on loopback unless configured otherwise: a
# sidecar shares its submitter's network namespace.
EXPOSE 8080 9180
STOPSIGNAL SIGTERM
ENTRYPOINT ["/pilotfish"]
CMD ["serve"]
