#!/usr/bin/env bash
# Mutation tests of the rules: a changed rule must fail a test of its own crate, or else a world of prove-world.
# Usage: mutants.sh [--shard K/N] [CRATE ...]; without crates, all that decide. Prints the share caught, crate by crate.
set -euo pipefail
cd "$(dirname "$0")/.."
out=${MUTANTS_OUT:-$HOME/.cache/longshore/mutants/out}
shard=()
if [ "${1-}" = --shard ]; then
  shard=(--shard "$2")
  shift 2
fi
crates=("$@")
if [ $# = 0 ]; then
  for folder in crates/rules-*; do crates+=("${folder#crates/}"); done
fi
# The worlds explore these; the others have their own tests only.
worlds=" rules-store rules-binding rules-provisioner rules-attachdetach rules-attacher rules-resizer rules-node "

count() { if [ -f "$1" ]; then wc -l <"$1"; else echo 0; fi; }

# Exit codes 2 and 3 say that mutants were missed or ran out of time: that is what is counted here.
mutate() {
  local code=0
  CARGO_TARGET_DIR=$HOME/.cache/longshore/mutants/target cargo mutants --jobs 1 --minimum-test-timeout 60 --colors never \
    "$@" || code=$?
  case $code in 0 | 2 | 3) ;; *) echo "mutants: cargo-mutants ended with $code; its logs are under $out" >&2; exit "$code" ;; esac
}

mkdir -p "$out"
below=0
for crate in "${crates[@]}"; do
  folder=$out/$crate
  rm -rf "$folder"
  mutate --package "$crate" --output "$folder" "${shard[@]}" >&2
  found=$folder/mutants.out
  caught=$(count "$found/caught.txt") unviable=$(count "$found/unviable.txt") timeout=$(count "$found/timeout.txt")
  missed=$(count "$found/missed.txt")
  by_worlds=0
  if [ "$missed" -gt 0 ] && [[ $worlds == *" $crate "* ]]; then
    # Only those missed so far are tried again, with the worlds.
    mutate --package "$crate" --output "$folder" --iterate --test-package prove-world "${shard[@]}" >&2
    left=$(count "$found/missed.txt")
    by_worlds=$((missed - left)) missed=$left
  fi
  viable=$((caught + timeout + by_worlds + missed))
  share=100
  [ "$viable" = 0 ] || share=$(((caught + timeout + by_worlds) * 100 / viable))
  echo "$crate: $share % of $viable caught ($caught by its own tests, $by_worlds by the worlds, $timeout by never ending); $missed missed, $unviable do not build"
  [ "$missed" = 0 ] || sed 's/^/  missed: /' "$found/missed.txt"
  [ "$share" -ge 95 ] || below=1
done
exit $below
