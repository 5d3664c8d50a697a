// Package loader turns a dataset into a stream of mini-batches: it samples
// neighbourhoods, gathers the features of their nodes, and hands out batches in
// order, all overlapped with whatever the caller does with them.
//
//	seeds ─▶ sample ─▶ gather ─▶ your loop
//
// Its types:
//
//   - Loader samples and gathers on goroutines of its own, a few batches ahead.
//     Loader.Epoch is an iterator: for b, err := range l.Epoch(ctx, 0).
//   - Batch is one mini-batch: seeds, input frontier, blocks, feature rows,
//     labels.
//   - Features is a dataset's feature table made ready for gathering: mapped,
//     in memory, or sparse.
//
// # Order and randomness
//
// The batches of an epoch are a function of the seed, the epoch, the dataset's
// order of nodes and the options that name sizes. Neither the number of workers,
// nor how far the pipeline runs ahead, nor earlier epochs have any influence, so
// a run may be resumed at any batch. With World ranks of batch B, the ranks'
// batches together are those of one rank with batch World×B.
//
// # Memory
//
// A Batch and all it points to belong to the loader and are valid until the loop
// asks for the next one; copy what must live longer. There are Depth+1 batches,
// whose memory is reused, so a loader's size does not grow from epoch to epoch.
// An iterator that is left early stops its goroutines before the loop goes on.
// One Epoch may run at a time.
package loader
