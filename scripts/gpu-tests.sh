#!/usr/bin/env bash
# Builds what a machine with a GPU needs into .gpu/, which is not under version
# control: test binaries of the packages that drive one, the commands, a runner
# and, if it lies beside the repository, the golden data. Copy the repository
# with .gpu/ to that machine (no Go and no CUDA toolkit are needed there) and
# run, in its root:
#   bash .gpu/run [-only REGEXP] [FLAGS OF GO TEST BINARIES]
# for example
#   bash .gpu/run -only '^zerocopy' -test.bench . -test.run '^$'
set -euo pipefail
cd "$(dirname "$0")/.."
out=.gpu
# Other files there are somebody's: a profile brought back, a binary to compare.
rm -rf "$out/stage" "$out/unpacked" "$out/payload.tar.xz" "$out/run"
mkdir -p "$out/stage/tests" "$out/stage/bin"
export CGO_ENABLED=0 GOOS=linux GOARCH=${GOARCH:-amd64}

for pattern in ./cuda/... ./zerocopy/... ./graph/gpusample/... ./loader/... ./model/... ./trainer/...; do
  dir=${pattern%/...}
  [ -d "$dir" ] || continue
  for pkg in $(go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.Dir}}{{end}}' "$pattern"); do
    rel=${pkg#"$PWD"/}
    # The runner finds the package's folder from the binary's name.
    go test -c -vet=off -trimpath -ldflags='-s -w' -o "$out/stage/tests/${rel//\//+}" "./$rel"
  done
done
if [ -d cmd ]; then
  go build -trimpath -ldflags='-s -w' -o "$out/stage/bin/" ./cmd/...
fi
if [ -d ../shared/golden ]; then
  mkdir -p "$out/stage/shared"
  cp -r ../shared/golden "$out/stage/shared/"
  chmod -R u+w "$out/stage/shared"
fi

# One compressed file with a window wider than a binary, since the binaries have
# most of their code in common.
tar -C "$out/stage" --sort=name -cf - . | xz --lzma2=preset=1,dict=128MiB >"$out/payload.tar.xz"
rm -rf "$out/stage"
cp scripts/gpu-run.sh "$out/run"
ls -lh "$out/payload.tar.xz"
