#!/usr/bin/env bash
# Fails if docs/dependencies.md does not name, with its version, a module that
# the commands link, or has a row for a module or version that go.mod lacks.
set -euo pipefail
cd "$(dirname "$0")/.."
list=$(CGO_ENABLED=0 go list -deps -f '{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}}{{end}}{{end}}' ./cmd/... | sort -u)
missing=0
while read -r path version; do
  [ -n "$path" ] || continue
  if ! grep -qF "| $path | $version |" docs/dependencies.md; then
    echo "docs/dependencies.md: no row for $path $version" >&2
    missing=1
  fi
done <<<"$list"
while read -r path version; do
  if ! grep -qE "^(require )?[[:space:]]*${path//./\\.} ${version//[.+]/.}( |\$)" go.mod; then
    echo "docs/dependencies.md: $path $version is not in go.mod" >&2
    missing=1
  fi
done < <(sed -nE 's@^\| ([^ |]+/[^ |]+) \| (v[^ |]+) \|.*@\1 \2@p' docs/dependencies.md)
exit "$missing"
