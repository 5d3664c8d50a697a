#!/usr/bin/env bash
# The runner of scripts/gpu-tests.sh, copied to .gpu/run; see there. Each test
# binary runs in its package's folder, as with go test. Without a usable GPU the
# tests fail rather than skip.
set -uo pipefail
cd "$(dirname "$0")/.."
root=$PWD
only=.
if [ "${1:-}" = -only ]; then
  only=$2
  shift 2
fi

# The payload is unpacked once and again after it has changed.
to=.gpu/unpacked
if [ ! -e "$to/done" ] || [ .gpu/payload.tar.xz -nt "$to/done" ]; then
  rm -rf "$to"
  mkdir -p "$to"
  if command -v xz >/dev/null; then
    xz -dc .gpu/payload.tar.xz
  else
    python3 -c 'import lzma, shutil, sys; shutil.copyfileobj(lzma.open(sys.argv[1]), sys.stdout.buffer)' .gpu/payload.tar.xz
  fi | tar -C "$to" -xf - || exit 1
  touch "$to/done"
fi
# Tests look for shared data beside the repository.
if [ -d "$to/shared" ] && [ ! -e ../shared ]; then
  ln -s "$root/$to/shared" ../shared
fi

export ZEROGCN_REQUIRE_GPU=${ZEROGCN_REQUIRE_GPU:-1}
failed=0 passed=0
for bin in "$to"/tests/*; do
  name=${bin##*/}
  pkg=${name//+//}
  [[ $pkg =~ $only ]] || continue
  echo "=== $pkg"
  if (cd "$root/$pkg" && "$root/$bin" "$@"); then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    echo "FAILED: $pkg"
  fi
done
echo "$passed packages passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
