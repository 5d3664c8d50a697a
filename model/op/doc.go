// Package op defines the operations that model graphs are made of, as Gorgonia
// ops that its symbolic differentiation understands.
//
// An Op is a Kind and its attributes, nothing more: it holds no kernel and no
// memory. Package exec compiles a graph of Ops into a program whose back end
// brings the kernels. Here each kind has its types, its shape rule, its
// derivative and one reference kernel, a plain loop that documents what the
// kind computes; Gorgonia's own TapeMachine runs those, and every back end is
// tested against them.
//
// Matrices are row-major float32. Besides matrices, vectors and scalars, a graph
// has opaque operands, which Gorgonia carries as scalars of a type of their own:
// blocks (*graph.Block), labels (*Labels), dropout keys (*Key) and sparse
// features (*sparse.Matrix). Type checking thus rejects a matrix where a block
// belongs.
//
// Shapes inside a graph are placeholders: Gorgonia wants fixed ones, a
// mini-batch has new row counts each time. Only column counts are meant; Rows in
// an Attr is a placeholder too. At run time Infer derives the real shape from
// the operands. Use placeholders of at least 2: Gorgonia takes all-one shapes
// for scalars.
package op
