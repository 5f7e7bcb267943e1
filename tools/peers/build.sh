#!/usr/bin/env bash
# Builds the peers named, or all of tools/peers/list, as <name>-<version> into the folder of LONGSHORE_PEERS.
# What is built already is skipped, so a run that was stopped goes on where it was.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
target=${LONGSHORE_PEERS:-$HOME/.cache/longshore/peers}

# The version is read from go.mod, so that nothing is asked of Go or of the network where all is built.
version_of() { # folder module
  awk -v module="$2" '$1 == module && $2 ~ /^v/ { print $2; exit } $1 == "require" && $2 == module { print $3; exit }' "$here/$1/go.mod"
}

# What the programs' own builds pass. Without it Kubernetes programs say that they are v0.0.0 and mistake each other's
# versions, and a driver has no version to tell.
version_flags() { # module version
  if [ "$1" != k8s.io/kubernetes ]; then
    echo "-X main.version=$2"
    return
  fi
  local at=k8s.io/component-base/version numbers=${2#v}
  local minor=${numbers#*.}
  echo "-X $at.gitVersion=$2 -X $at.gitMajor=${numbers%%.*} -X $at.gitMinor=${minor%%.*} -X $at.gitTreeState=clean"
}

build() { # name folder module package version
  local program=$3/$4 verb="build"
  case $4 in .) program=$3 ;; ./*) program=$4 ;; test:*) verb="test -c -vet=off" program=$3/${4#test:} ;; esac
  made=$(mktemp "$target/.$1.XXXXXX")
  trap 'rm -f "$made"' EXIT # also when it is interrupted
  if ! (cd "$here/$2" && GOFLAGS="-trimpath -buildvcs=false -mod=readonly" CGO_ENABLED=0 \
    nice -n 10 go $verb -ldflags="-s -w $(version_flags "$3" "$5")" -o "$made" "$program" >&2); then
    rm -f "$made"
    return 1
  fi
  chmod 755 "$made"
  mv "$made" "$target/$1-$5" # the name appears only when the program is whole
}

names=() folders=() modules=() packages=()
while read -r name folder module package; do
  case $name in '' | '#'*) continue ;; esac
  if [ $# -gt 0 ] && [[ " $* " != *" $name "* ]]; then continue; fi
  names+=("$name") folders+=("$folder") modules+=("$module") packages+=("$package")
done <"$here/list"
for wanted in "$@"; do
  [[ " ${names[*]-} " == *" $wanted "* ]] || { echo "peers: $wanted is not in tools/peers/list; name one of those listed there" >&2; exit 2; }
done

mkdir -p "$target"
count=${#names[@]} failed=()
for index in "${!names[@]}"; do
  name=${names[$index]} module=${modules[$index]}
  version=$(version_of "${folders[$index]}" "$module")
  [ -n "$version" ] || { echo "peers: tools/peers/${folders[$index]}/go.mod does not require $module; add it" >&2; exit 1; }
  if [ -x "$target/$name-$version" ]; then continue; fi
  command -v go >/dev/null || { echo "peers: there is no Go to build $name with; install a Go toolchain (1.26 or newer) and try again" >&2; exit 1; }
  label="peers: $((index + 1))/$count $name $version"
  echo "$label …" >&2
  start=$SECONDS
  if build "$name" "${folders[$index]}" "$module" "${packages[$index]}" "$version"; then
    echo "$label … built in $((SECONDS - start)) s" >&2
  else
    echo "$label … failed; the compiler's words are above" >&2
    failed+=("$name")
  fi
done
[ ${#failed[@]} -eq 0 ] || { echo "peers: not built: ${failed[*]}; run make peers again once the cause is gone" >&2; exit 1; }
