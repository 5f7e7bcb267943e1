#!/usr/bin/env bash
# Cargo's runner while mutants are tried: the slow tests of a binary only if the quick ones pass, and none after a failure.
# Most mutants die in the first half second; one that makes a quick test run for ever is caught as well.
export RUSTC_BOOTSTRAP=1 # of the test program alone: --fail-fast is not a stable option yet
slow=(lives storm tables)
skips=()
for word in "${slow[@]}"; do skips+=(--skip "$word"); done
options=(--quiet -Z unstable-options --fail-fast)
timeout 15 "$@" "${options[@]}" "${skips[@]}" && exec "$@" "${options[@]}" "${slow[@]}"
