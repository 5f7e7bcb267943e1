#!/usr/bin/env bash
# own-mounts.sh private|shared COMMAND…: runs a test's command in a mount namespace of its own, whose mounts propagate as said.
# A new namespace has a copy of every mount. One of a loop device would keep the device busy for whoever unmounts it elsewhere,
# such as a test that runs beside this one, so these copies go at once.
set -euo pipefail
exec unshare --mount --propagation private bash -c '
  mapfile -t mounts </proc/self/mountinfo
  for mount in "${mounts[@]}"; do
    read -r _ _ _ _ target _ <<<"$mount"
    case $mount in *" - "*" /dev/loop"*) [ "$target" = / ] || umount --lazy "$(printf %b "$target")" || true ;; esac
  done
  mount --make-r"$0" /
  exec "$@"' "$@"
