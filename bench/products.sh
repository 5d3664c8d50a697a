#!/usr/bin/env bash
# Trains GraphSAGE on a synthetic graph of the shape of ogbn-products in every way
# for features to reach the GPU, side by side on the same files, and prints a table
# (and, in the output folder, summary.json of each run and table.json).
#
#   bench/products.sh [OUT]            default: bench-products
#   SCALE=0.1 EPOCHS=5 MODES="device zerocopy" bench/products.sh
#
# A mode is a value of -features, or one of: bf16 (zero-copy, bf16 rows), hostgraph
# (zero-copy, the graph in host memory), fp32 (zero-copy, float32 products), cached
# (a fifth of the rows, hot rows first). Without a GPU the one mode is cpu.
# Needs bin/ (make build) and python3, which prints the table.
set -euo pipefail
cd "$(dirname "$0")/.."
out=${1:-bench-products}
scale=${SCALE:-1} epochs=${EPOCHS:-4} bin=${BIN:-bin}
if command -v nvidia-smi >/dev/null && nvidia-smi -L >/dev/null 2>&1; then
  modes=${MODES:-device zerocopy cached bf16 hostgraph staged hybrid auto}
  gpus=1
else
  modes=${MODES:-cpu}
  gpus=0
fi
mkdir -p "$out"
data=$out/data
[ -d "$data" ] || "$bin/dataset" generate -dataset "synthetic:products?scale=$scale" -out "$data"
for mode in $modes; do
  set=$data
  case $mode in
    cpu) flags=() ;;
    cached) flags=(-features cached -cache 20%) ;;
    bf16)
      set=$data-bf16
      [ -d "$set" ] || "$bin/dataset" convert -dataset "$data" -dtype bf16 -out "$set"
      flags=(-features zerocopy)
      ;;
    hostgraph) flags=(-features zerocopy -host-graph) ;;
    fp32) flags=(-features zerocopy -precision fp32) ;;
    *) flags=(-features "$mode") ;;
  esac
  rm -rf "$out/$mode"
  "$bin/train" -dataset "$set" -gpus "$gpus" -hidden 256 -epochs "$epochs" -eval-every "$epochs" "${flags[@]}" -run "$out/$mode" -quiet
done
python3 - "$out" $modes <<'PY'
import json, os, sys
out, modes = sys.argv[1], sys.argv[2:]
rows = {m: json.load(open(os.path.join(out, m, "summary.json"))) for m in modes}
json.dump(rows, open(os.path.join(out, "table.json"), "w"), indent=1)
print(f"{'mode':<10} {'s/epoch':>8} {'sample':>7} {'gather':>7} {'compute':>7} {'GB/s':>7} {'hits':>5} {'cores':>6} {'J':>6} {'test':>7}")
for m, s in rows.items():
    n, st = s["epochs"], s["stage_seconds"]
    print(f"{m:<10} {s['seconds_per_epoch']:8.3f} {st['sample']/n:7.3f} {st['gather']/n:7.3f} {st['compute']/n:7.3f} {s['gather_gbps']:7.1f}"
          f" {s.get('cache_hit_rate', 0):5.2f} {s['cpu_seconds']/s['seconds_total']:6.2f} {s['gpu_joules']:6.0f} {s['test_metric']:7.4f}")
PY
