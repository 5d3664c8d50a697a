package npy

// fortranRows reads rows [lo, hi) of an array in Fortran order, in which the
// elements of a column (all indices but the first fixed) lie together.
func fortranRows[T Element](a *Array, lo, hi int64, dst []T) error {
	rows, width, size := a.Rows(), a.Width(), int64(a.Type.Size)
	flat := &Array{Header: a.Header, name: a.name, r: a.r, stream: a.stream}
	flat.Fortran, flat.Shape = false, []int64{a.Count()}
	n := hi - lo
	if n < rows && rows*size > readBytes/16 {
		// A few rows of long columns: a read per column.
		col := make([]T, min(n, readBytes))
		for c := range width {
			to := a.rowMajorColumn(c)
			for r := int64(0); r < n; r += int64(len(col)) {
				part := col[:min(int64(len(col)), n-r)]
				if err := convertRange(flat, c*rows+lo+r, part, 1); err != nil {
					return err
				}
				for i, v := range part {
					dst[(r+int64(i))*width+to] = v
				}
			}
		}
		return nil
	}
	// Whole columns, several a read.
	group := max(1, readBytes/(rows*size))
	buf := make([]T, min(group*rows, width*rows))
	for c := int64(0); c < width; c += group {
		g := min(group, width-c)
		part := buf[:g*rows]
		if err := convertRange(flat, c*rows, part, 1); err != nil {
			return err
		}
		for k := range g {
			to := a.rowMajorColumn(c + k)
			col := part[k*rows+lo : k*rows+hi]
			for i, v := range col {
				dst[int64(i)*width+to] = v
			}
		}
	}
	return nil
}

// rowMajorColumn turns the number of a column in Fortran order of the trailing
// dimensions into its number in C order.
func (a *Array) rowMajorColumn(c int64) int64 {
	if len(a.Shape) <= 2 {
		return c
	}
	to, stride := int64(0), a.Width()
	for _, d := range a.Shape[1:] {
		stride /= d
		to += c % d * stride
		c /= d
	}
	return to
}
