// Package model builds graph neural networks, initialises their parameters, and
// runs them forward and backward.
//
//   - Config describes a network; Config.Validate lists all its faults, and
//     Config.Needs says what the blocks it is fed must carry.
//   - Network is a Config compiled for a back end: Train computes a batch's loss
//     and gradients, Infer its outputs, Layer one layer alone for layer-wise
//     inference.
//   - Params holds all parameters in one flat buffer with named views, and the
//     gradients in another of the same layout, so that an optimiser step, an
//     all-reduce and a checkpoint each handle one blob.
//   - Input is one batch as a Network wants it.
//
// # Memory
//
// A Network owns its parameters, gradients and intermediate buffers. Values that
// Infer and Layer return are valid until the next call of the same method. What
// Input points to belongs to the caller and is only read during the call. A
// Network serves one goroutine at a time.
//
// With an exec.DeviceBackend all of that is in device memory, calls only queue
// work, and Params.Upload and Download move parameters; see Params. What an Input
// points to must then stay until the queue has passed the call.
//
// # Layers
//
// Parameters have PyTorch Geometric's names and shapes ("convs.0.lin_l.weight",
// [out, in]), so that its load_state_dict takes them:
//
//   - SAGE (Hamilton, Ying and Leskovec, NeurIPS 2017), mean aggregator:
//     W_l·mean(x_j) + b + W_r·x_i (SAGEConv); gcn aggregator:
//     W_l·(Σ x_j + x_i)/(d+1) + b (SAGEConv without root weight); sum and max
//     take the sum or the column-wise maximum in place of the mean.
//   - GCN (Kipf and Welling, ICLR 2017): symmetric or row normalisation.
//   - MLP: linear layers on a node's own features, the baseline that shows what
//     the graph adds.
//
// ReLU and dropout stand between layers; dropout on the input features is a
// setting of its own (Kipf and Welling use it, GraphSAGE does not).
//
// Aggregation and projection are both linear in the features, so they may be
// swapped. Layers aggregate first, except where that costs more: sparse features
// are projected first (the product touches non-zeros only, and the aggregation
// runs over narrow rows), and so are wide features on full graphs, where there
// are as many targets as sources.
package model
