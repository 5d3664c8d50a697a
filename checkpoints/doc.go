// Package checkpoints keeps the state of a training run on disk, so that it can
// be evaluated, resumed to the same bits, or loaded into PyTorch Geometric.
//
//   - [Checkpoint] is the state at one step: named tensors and counters. The
//     package knows nothing of models; what the names mean is the trainer's.
//   - [Save] writes one as a folder, [Load] reads it, or the weights alone from
//     a safetensors file.
//   - [Store] is the checkpoints folder of a run: last, best, and the most
//     recent few.
//
// # The folder
//
//	checkpoint.json      step, epoch, seed, counters, configuration, versions,
//	                     and the size and SHA-256 of the other files and of itself
//	model.safetensors    parameters, with PyTorch Geometric's names and shapes
//	state.safetensors    optimiser, schedule, moving averages (if any)
//	split.safetensors    the split that was used (if any)
//
// Int64 counters, uint64 seeds and float64 values come back exactly, NaN and
// infinities too. A tensor comes back bit for bit.
//
// # What a crash leaves
//
// Folders are written under a temporary name, synced and exchanged with the old
// one: see package atomicfile. At every instant the name holds the old
// checkpoint or the new one, whole; what a killed writer left is removed by the
// next. A folder that was changed in any byte since is refused, with one line
// that says which file. So is one that a newer version wrote.
//
// # Ownership
//
// Save reads the tensors' slices while it runs and keeps none. Load's result
// belongs to the caller. Files with equal bytes may be shared between the
// folders of a Store by hard links: do not write into them.
package checkpoints
