#!/bin/sh
# Compiles every *.cu in this folder to PTX with Debian's clang-19 alone:
#   build.sh          writes ptx/NAME.smXX.ptx, the files that are embedded
#   build.sh -check   fails if those are not what the sources give
# The output depends on the sources and the compiler's version only: no paths,
# no dates. The first line of each file carries the hash of its sources, which
# a Go test compares where there is no clang.
set -eu
cd "$(dirname "$0")"
export LC_ALL=C
CLANG=${CLANG:-clang-19}
if ! command -v "$CLANG" >/dev/null; then
  echo "build.sh: $CLANG not found: install Debian's clang-19, or set CLANG" >&2
  exit 1
fi
out=ptx
if [ "${1:-}" = -check ]; then
  out=$(mktemp -d)
  trap 'rm -rf "$out"' EXIT
fi
mkdir -p "$out"

# variant GPU PTX-ISA: sm_70 with PTX 6.0 loads on every driver since CUDA 9;
# sm_80 adds cp.async and cache hints (driver 11.4), sm_90 vector reductions
# (driver 12.1). kernels.go lists the same three.
variant() {
  for src in *.cu; do
    name=${src%.cu}
    hash=$(cat "$src" ./*.cuh build.sh | sha256sum | cut -c1-32)
    to=$out/$name.sm$1.ptx
    {
      echo "// zerogcn $src for sm_$1, PTX ISA $2, sources $hash"
      "$CLANG" -x cuda --cuda-device-only --cuda-gpu-arch=sm_"$1" -nocudainc -nocudalib \
        -Xclang -target-feature -Xclang +ptx"$2" -DZG_SM="$1" -DZG_PTX="$2" \
        -std=c++17 -O3 -ffp-contract=off -fno-exceptions -fno-rtti -Wall -Werror \
        -S "$src" -o - | sed -e 's@[ \t]*//.*@@' -e 's@[ \t]*$@@' | cat -s
    } >"$to.tmp"
    grep -q '^\.target' "$to.tmp" || { rm -f "$to.tmp"; exit 1; } # a pipe hides clang's status
    mv "$to.tmp" "$to"
  done
}
variant 70 60
variant 80 74
variant 90 81

# Outputs whose source is gone.
for f in ptx/*.ptx; do
  base=${f##*/}
  [ -e "${base%%.*}.cu" ] || { [ "$out" = ptx ] && rm -f "$f"; }
done
if [ "$out" != ptx ]; then
  diff -rq ptx "$out" || { echo "cuda/kernels/ptx is not up to date: run cuda/kernels/build.sh and commit the result" >&2; exit 1; }
fi
