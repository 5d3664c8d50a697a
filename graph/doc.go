// Package graph holds graphs, cuts mini-batches out of them and knows nothing
// of features, labels or models.
//
// Its types:
//
//   - [CSR] is a whole directed graph by incoming edges: row v lists the
//     sources that node v aggregates from.
//   - [Builder] makes a CSR from edges in any order, given as slices or as an
//     [EdgeSource] that is read twice.
//   - [Block] is one bipartite layer of a mini-batch, with local ids.
//   - [Sampler] draws neighbours for a set of seeds and fills a [Batch]: the
//     input frontier and one Block per hop. [FullBlock] is the whole graph as
//     one Block.
//   - [ShuffleEpoch] permutes training nodes.
//
// # Order and randomness
//
// Every result is a function of the graph, the options and the seed: never of
// the number of workers, of the machine or of what was sampled before. Draws
// are Philox words (package internal/philox) keyed by the run's seed and
// addressed by (node, step, word, hop), and every decision compares integers,
// so a GPU repeats a batch bit for bit.
//
// The nodes of a batch are numbered without a hash table: see [Batch] for the
// order, which makes the gather of features walk memory in page order.
//
// # Ownership
//
// A CSR is read-only once shared and may be used by any number of goroutines; its
// slices may alias a mapped file, which must outlive it. A Sampler and a Batch
// belong to one goroutine at a time. Sample reuses a Batch's memory, so its
// slices are valid until the next Sample into it.
//
// Arrays that this package makes are asked to lie on huge pages (Linux), which
// matters to sampling; the arrays of a mapped file do not.
//
// # Unverified graphs
//
// A CSR whose arrays come from a file that nobody checked may be wrong anywhere.
// Constructors check what is O(1); the sampler and the other algorithms check
// every offset and id where they use it and return an error that wraps
// [ErrCorrupt]. [CSR.Validate] checks everything at once.
package graph
