#!/usr/bin/env bash
# Runs every fuzz target of the module for some seconds each:
#   scripts/fuzz.sh [SECONDS [PACKAGE...]]
# A failing input is written to the package's testdata/fuzz; commit it with the
# fix, it is a test from then on.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-5}
shift || true
packages=("$@")
if [ ${#packages[@]} -eq 0 ]; then
  # Linking every package's tests to ask for names takes minutes: ask only
  # where the sources have some.
  mapfile -t packages < <(git ls-files --cached --others --exclude-standard '*_test.go' |
    xargs -r grep -l '^func Fuzz' | xargs -rn1 dirname | sort -u | sed 's@^@./@')
fi

ran=0
for pkg in "${packages[@]}"; do
  listing=$(go test -vet=off -list '^Fuzz' "$pkg")
  for name in $(grep '^Fuzz' <<<"$listing"); do # the last line is go test's own
    run=(go test -vet=off -run '^$' -fuzz "^$name\$" -fuzztime "${seconds}s" -fuzzminimizetime 10x "$pkg")
    if ! out=$("${run[@]}" 2>&1); then
      # When the time ends while a worker is busy, the engine sometimes
      # reports that deadline as a failure of the target. A real failure
      # names the input, or the stack.
      if grep -q 'context deadline exceeded' <<<"$out" && ! grep -qE 'Failing input|panic|testdata/fuzz' <<<"$out"; then
        out=$("${run[@]}" 2>&1) || { echo "$out"; exit 1; }
      else
        echo "$out"
        exit 1
      fi
    fi
    ran=$((ran + 1))
    printf '%-28s %s: %s\n' "$name" "$pkg" "$(grep -o 'execs: [0-9]*' <<<"$out" | tail -n 1)"
  done
done
echo "fuzz: $ran targets, ${seconds} s each"
[ "$ran" -gt 0 ]
