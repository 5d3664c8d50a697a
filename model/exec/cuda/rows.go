package cuda

import (
	"fmt"

	"zerogcn/cuda"
	"zerogcn/model/op"
)

// GatherRows queues the copying of rows ids[0..n) of x to out, an n × x.Cols
// matrix; out.Rows is n and ids has as many int32 in device memory. A row whose
// id is outside of x is filled with NaN.
func (b *Backend) GatherRows(out, x *op.Value, ids cuda.DevicePtr) error {
	if err := onDevice(x, out); err != nil {
		return err
	}
	if out.Cols != x.Cols {
		return fmt.Errorf("exec/cuda: rows of %d columns gathered into %d", x.Cols, out.Cols)
	}
	f, err := b.function(elementwiseModule, "gather_rows")
	if err != nil {
		return err
	}
	vec, units := x.Cols%4 == 0 && aligned(4, out, x), x.Cols
	if vec {
		units /= 4
	}
	return f.Launch(b.stream, b.byRows(out.Rows, units), ptr(out), ptr(x), ids.Arg(), cuda.I64(int64(out.Rows)),
		cuda.I32(int32(x.Rows)), cuda.I32(int32(x.Cols)), flag(vec))
}

// MaxParts is the most parts that CountCorrect tells apart.
const MaxParts = 16

// Parts says what CountCorrect counts. Addresses are of device memory.
type Parts struct {
	Class  cuda.DevicePtr // int32 per row of the logits; -1 takes no part
	Part   cuda.DevicePtr // int32 per row, 0 for all in part 0; outside [0, Num) counts nowhere
	Num    int            // parts, at most MaxParts
	Counts cuda.DevicePtr // int64 [Num][2]: correct, labelled; added to
}

// CountCorrect queues the counting of rows whose largest logit is that of their
// class, as metric.Argmax finds it. Counts of several chunks add up; the caller
// clears them first.
func (b *Backend) CountCorrect(logits *op.Value, p Parts) error {
	if err := onDevice(logits); err != nil {
		return err
	}
	if p.Num < 1 || p.Num > MaxParts {
		return fmt.Errorf("exec/cuda: %d parts, want 1 to %d", p.Num, MaxParts)
	}
	f, err := b.function(reduceModule, "count_correct")
	if err != nil {
		return err
	}
	return f.Launch(b.stream, b.byWarps(logits.Rows), p.Counts.Arg(), ptr(logits), p.Class.Arg(), p.Part.Arg(),
		cuda.I32(int32(p.Num)), cuda.I64(int64(logits.Rows)), cuda.I32(int32(logits.Cols)))
}
