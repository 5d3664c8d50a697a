#!/usr/bin/env bash
# Fails, naming them, if there are Go files that gofmt would change.
set -euo pipefail
cd "$(dirname "$0")/.."
bad=$(git ls-files -z --cached --others --exclude-standard '*.go' | xargs -0r gofmt -l)
if [ -n "$bad" ]; then
  echo "not formatted; run gofmt -w on:" >&2
  echo "$bad" >&2
  exit 1
fi
