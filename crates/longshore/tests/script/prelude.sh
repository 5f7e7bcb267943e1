# Words golden scripts may use. $W is the script's own directory.

# Start Longshore in the background; return when it is ready.
up() {
  # Empty before the child opens them: what is looked for below must be neither missing nor an earlier start's.
  : >"$W/out" >>"$W/log"
  longshore up --listen 127.0.0.1:0 --node-name here "$@" >>"$W/out" 2>>"$W/log" &
  local pid=$!
  disown
  echo $pid >"$W/pid"
  for _ in $(seq 1200); do
    grep -q "Longshore is up" "$W/out" && return 0
    kill -0 $pid 2>/dev/null || { tail -3 "$W/log"; return 1; }
    sleep 0.05
  done
  echo "longshore did not come up"
  return 1
}

# Kill it with no warning.
crash() {
  kill -9 "$(cat "$W/pid")"
  while kill -0 "$(cat "$W/pid")" 2>/dev/null; do sleep 0.02; done
}

# Stop it as a user would.
down() {
  kill -INT "$(cat "$W/pid")"
  while kill -0 "$(cat "$W/pid")" 2>/dev/null; do sleep 0.02; done
}

# Wait until the process whose number is in a file has ended.
ended() {
  while kill -0 "$(cat "$W/$1")" 2>/dev/null; do sleep 0.02; done
}

# Run a command until its output contains a text; print the line that does.
until_says() {
  local text=$1
  shift
  for _ in $(seq 1200); do
    "$@" 2>&1 | grep -F -m1 -- "$text" && return 0
    sleep 0.05
  done
  echo "never said: $text; last:"
  "$@" 2>&1 | tail -5
  return 1
}

# Wait until nothing is left: no object, mount, loop device, image, record or directory.
until_nothing() {
  for _ in $(seq 1200); do
    [ -z "$(leftovers)" ] && { echo "nothing left"; return 0; }
    sleep 0.05
  done
  leftovers
}

# What is still there.
leftovers() {
  kubectl get pod,pvc,pv,volumeattachment --all-namespaces --no-headers 2>/dev/null
  grep -F "$W/d" /proc/self/mountinfo
  losetup --all --noheadings --output NAME,BACK-FILE 2>/dev/null | grep -F "$W/d"
  # The driver's own log and lock file are no volume's.
  find "$W/d/driver" -not -type d -not -name 'journal-[01]' -not -name locks 2>/dev/null
  find "$W/d/processes" "$W/d/node/pods" "$W/d/node/plugins/kubernetes.io/csi/local.csi.longshore" -mindepth 1 2>/dev/null
}

# End everything the script started, whatever state it is in.
clean_up() {
  for file in "$W/pid" "$W"/*.pid; do [ -f "$file" ] && kill -9 "$(cat "$file")"; done
  pkill -9 -f "process-shim.*$W/d"
  sleep 0.1
  grep -F "$W/" /proc/self/mountinfo | awk '{print $5}' | sort -r | while read -r target; do umount "$target"; done
  losetup --all --noheadings --output NAME,BACK-FILE 2>/dev/null | grep -F "$W/" | while read -r loop _; do losetup -d "$loop"; done
  rm -rf --one-file-system "$W"
}
