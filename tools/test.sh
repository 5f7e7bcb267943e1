#!/usr/bin/env bash
# Every test of the workspace. The test programs named here mostly wait for other programs: they run in one stream, what
# computes in another beside it.
set -euo pipefail
cd "$(dirname "$0")/.."
waiting=(scripts embedded kernel)
test() { cargo test --workspace --locked --quiet "$@"; }

said=$(mktemp)
stream=
trap '[ -z "$stream" ] || kill -- -"$stream" 2>/dev/null || true; rm -f "$said"' EXIT
cargo test --workspace --locked --no-run
echo "in the background: ${waiting[*]}" >&2
set -m # a process group of its own, which ends as a whole, and in which SIGINT is not ignored
test "${waiting[@]/#/--test=}" </dev/null >"$said" 2>&1 &
stream=$!
set +m
# A program that was taken there is not run again here.
here='case ${0##*/} in '$(printf '%s-*|' "${waiting[@]}")'-) ;; *) exec "$0" "$@" ;; esac'
code=0
test --config "target.'cfg(all())'.runner = ['bash', '-c', '''$here''']" || code=$?
wait "$stream" || code=$?
stream=
cat "$said"
exit "$code"
