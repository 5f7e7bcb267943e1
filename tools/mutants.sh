#!/usr/bin/env bash
# Mutation tests of the rules: a changed rule must fail a test of its own crate, or else a world of prove-world.
# Usage: mutants.sh [--shard K/N] [CRATE ...]; without crates, all that decide. Prints the share caught, crate by crate.
#        mutants.sh --sample COMMIT; tries about a dozen over all crates, chosen by the commit, and fails if many are missed.
# The tree is copied to a place that stays the same, so that one mutant costs an incremental build of one crate.
set -euo pipefail
cd "$(dirname "$0")/.."
home=${MUTANTS_DIR:-$HOME/.cache/longshore/mutants}
mkdir -p "$home/tree" "$home/out"
part=()
case ${1-} in
  --shard) part=(--sharding round-robin --shard "$2") && shift 2 ;;
  --sample) commit=$2 && shift 2 ;;
esac
all=()
for folder in crates/rules-*; do all+=("${folder#crates/}"); done
crates=("$@")
[ $# != 0 ] || crates=("${all[@]}")
# The worlds explore these; the others have their own tests only.
worlds=" rules-store rules-binding rules-provisioner rules-attachdetach rules-attacher rules-resizer rules-node "
# A sample takes every so-manieth mutant, of which nearly half do not build.
every=200

# Brings the copy up to date, touching only what differs.
copy_tree() {
  git ls-files --cached --others --exclude-standard | while read -r file; do [ ! -f "$file" ] || echo "$file"; done >"$home/files"
  while read -r file; do
    cmp --silent "$file" "$home/tree/$file" || { mkdir -p "$home/tree/$(dirname "$file")" && cp "$file" "$home/tree/$file"; }
  done <"$home/files"
  (cd "$home/tree" && find . -type f | cut -c3- | sort | comm -23 - <(sort "$home/files") | xargs --no-run-if-empty rm --)
}

# What is mutated is compiled quickly, what the tests run on runs quickly, and nobody debugs it.
export CARGO_TARGET_DIR=$home/target CARGO_PROFILE_DEV_DEBUG=0
host=$(rustc -vV | sed -n 's/^host: //p' | tr a-z- A-Z_)
export "CARGO_TARGET_${host}_RUNNER=$home/tree/tools/mutants/quick-first.sh"
settings=(--config=profile.dev.package.prove-lab.opt-level=2)
for crate in "${all[@]}"; do settings+=("--config=profile.dev.package.$crate.opt-level=1"); done

count() { if [ -f "$1" ]; then wc -l <"$1"; else echo 0; fi; }

# Exit codes 2 and 3 say that mutants were missed or ran out of time: that is what is counted here.
mutate() {
  local code=0
  cargo mutants --in-place --baseline skip --timeout "$timeout" --build-timeout 600 --no-shuffle --colors never \
    "${settings[@]/#/--cargo-arg=}" "$@" -- --tests || code=$?
  case $code in 0 | 2 | 3) ;; *) echo "mutants: cargo-mutants ended with $code; its logs are under $home/out" >&2; exit "$code" ;; esac
}

copy_tree
cd "$home/tree"

# Without this, a crate whose tests fail anyway would seem to catch every mutant.
baseline() { cargo test "${settings[@]}" --package "$1" --tests >&2; }

if [ -n "${commit-}" ]; then
  timeout=60 found=$home/out/sample/mutants.out
  shard=$((16#${commit:0:8} % every))
  echo "mutants: every ${every}th mutant from number $shard, by commit ${commit:0:12}" >&2
  baseline rules-scheduler
  rm -rf "$home/out/sample"
  mutate "${crates[@]/#/--package=}" --output "$home/out/sample" --sharding round-robin --shard "$shard/$every" --caught >&2
  caught=$(count "$found/caught.txt") missed=$(count "$found/missed.txt")
  echo "mutants: $caught caught, $missed missed; $(count "$found/timeout.txt") ran too long, $(count "$found/unviable.txt") do not build"
  [ "$missed" = 0 ] || sed 's/^/  missed: /' "$found/missed.txt"
  if [ "$missed" -gt 2 ] && [ $((missed * 4)) -gt $((caught + missed)) ]; then
    echo "mutants: more than a quarter of the sample is missed; the tests of these rules have become too weak" >&2
    exit 1
  fi
  exit 0
fi

below=0
for crate in "${crates[@]}"; do
  folder=$home/out/$crate
  rm -rf "$folder"
  baseline "$crate" || { echo "mutants: the tests of $crate fail without any mutant" >&2; exit 1; }
  timeout=60
  mutate --package "$crate" --output "$folder" "${part[@]}" >&2
  found=$folder/mutants.out
  caught=$(count "$found/caught.txt") unviable=$(count "$found/unviable.txt") endless=$(count "$found/timeout.txt")
  missed=$(count "$found/missed.txt")
  by_worlds=0
  if [ "$missed" -gt 0 ] && [[ $worlds == *" $crate "* ]]; then
    # Only those missed so far are tried again, with the worlds.
    timeout=900
    mutate --package "$crate" --output "$folder" --iterate --test-package prove-world "${part[@]}" >&2
    left=$(count "$found/missed.txt")
    by_worlds=$((missed - left)) missed=$left
  fi
  viable=$((caught + endless + by_worlds + missed))
  share=100
  [ "$viable" = 0 ] || share=$(((caught + endless + by_worlds) * 100 / viable))
  echo "$crate: $share % of $viable caught ($caught by its own tests, $by_worlds by the worlds, $endless by never ending); $missed missed, $unviable do not build"
  [ "$missed" = 0 ] || sed 's/^/  missed: /' "$found/missed.txt"
  [ "$share" -ge 95 ] || below=1
done
exit $below
