# The image holds one file, the program: no shell, no packages, no root.
#
#   docker build --build-arg VERSION=1.2.3 -t pilotfish .
#
# A program that is built already takes the place of the first stage:
#
#   buildah bud --build-context build=DIRECTORY -t pilotfish .   # DIRECTORY/out/pilotfish
ARG GO=1.26
FROM docker.io/library/golang:${GO} AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY cmd cmd
COPY internal internal
COPY pkg pkg
ARG VERSION=devel
RUN CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X main.version=${VERSION}" -o /out/pilotfish ./cmd/pilotfish

FROM scratch
COPY --from=build /out/pilotfish /pilotfish
# A number, so that Kubernetes can tell that it is not root.
USER 65532:65532
# Jobs and the admin port. Both are on loopback unless configured otherwise: a
# sidecar shares its submitter's network namespace.
EXPOSE 8080 9180
STOPSIGNAL SIGTERM
ENTRYPOINT ["/pilotfish"]
CMD ["serve"]
