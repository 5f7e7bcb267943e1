#!/usr/bin/env bash
# Prints what Kubernetes publishes about the messages that our schema tables have. Each line is a field: its message, number
# and type from generated.proto and, from the Go struct, its name in JSON and how it is left out (`?` a pointer, `!` never,
# `:` when empty). A test of rules-store compares the tables with it. Needs Go, which finds the modules of the release in
# tools/peers/kubernetes.
set -euo pipefail
export LC_ALL=C
cd "$(dirname "$0")/.."

module() {
    (cd tools/peers/kubernetes && go mod download "$1" && go list -m -f '{{.Dir}}' "$1")
}
api=$(module k8s.io/api)
machinery=$(module k8s.io/apimachinery)

for folder in "$api"/{core,storage,coordination,rbac,authentication,authorization}/v1 "$machinery/pkg/apis/meta/v1"; do
    cat crates/wire/src/messages/*.rs $(grep -rl 'messages! {' crates/rules-store/src/kinds) "$folder/types.go" \
        "$folder/generated.proto"
done | awk '
    # Our tables: the messages to print.
    /^    in "/ { split($0, part, "\""); table = part[2] }
    /^    [A-Z_]+ = "/ { split($0, part, "\""); wanted[table "." part[2]] = 1 }

    # The Go structs come before the messages of the same package.
    /^package v1$/ { split("", mark); split("", json_name) }
    /^type [A-Za-z]+ struct \{/ { struct = $2 }
    struct && /`.*protobuf:"/ {
        tags = substr($0, index($0, "`"))
        match(tags, /protobuf:"[^"]*"/)
        split(substr(tags, RSTART, RLENGTH), protobuf, ",")
        match(tags, /json:"[^"]*"/)
        json = substr(tags, RSTART, RLENGTH)
        type = $2 ~ /^`/ ? $1 : $2
        split(json, word, /[",]/)
        json_name[struct, protobuf[2]] = word[2]
        mark[struct, protobuf[2]] = type ~ /^\*/ ? "?" : json ~ /omitempty|omitzero/ ? ":" : "!"
    }
    /^}/ { struct = ""; message = "" }

    # The messages.
    /^package k8s/ { package = substr($2, 1, length($2) - 1) }
    /^message [A-Za-z]+ \{/ { name = $2; message = package "." $2 }
    message in wanted && /^  (optional|repeated|map<).* = [0-9]+;$/ {
        number = substr($NF, 1, length($NF) - 1)
        type = $0
        sub(/^  (optional )?/, "", type)
        sub(/ [A-Za-z0-9_]+ = [0-9]+;$/, "", type)
        sub(/\.?k8s\.io\.[a-z0-9.]*\./, "", type)
        # An inlined message has no name in JSON.
        field = json_name[name, number] == "" ? $(NF - 2) : json_name[name, number]
        print message, number, field, mark[name, number], type
    }
' | sort -u -k1,1 -k2,2n
