// Package trainer trains a network on a dataset and evaluates it.
//
//   - Data is a dataset made ready: transformed, checked, with its split chosen
//     and its features opened. OpenData makes one.
//   - Config says how to train; Config.Validate lists all its faults.
//   - Trainer runs the epochs, keeps the best state by validation metric, writes
//     checkpoints, and continues from one bit for bit.
//   - Evaluator computes exact metrics by layer-wise inference.
//   - Event and Listener: what a run tells. Progress bars, tables, metrics.jsonl
//     and logs are listeners (package report); this package prints nothing.
//
// # Memory
//
// A Data owns the dataset and its feature table until Close, and outlives the
// trainers and evaluators that use it. A Trainer owns its network, optimiser and
// loader; Close releases them. Neither serves two goroutines at once.
package trainer
