#!/usr/bin/env bash
# Builds kubectl from its Go module into the folder given. Used by the Makefile where kubectl is missing.
set -euo pipefail
target=${1:?usage: install-kubectl.sh FOLDER}
command -v go >/dev/null || {
  echo "kubectl is missing and there is no Go to build it with; install kubectl, or a Go toolchain, and try again" >&2
  exit 1
}
echo "building kubectl (a few minutes, once)" >&2
mkdir -p "$target"
cd "$(dirname "$0")/kubectl"
CGO_ENABLED=0 go build -trimpath -ldflags="-s -w" -o "$target/kubectl" .
