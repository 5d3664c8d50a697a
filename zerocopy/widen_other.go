//go:build !amd64

package zerocopy

import "zerogcn/dtype"

// widenVector widens a leading part of the row with vector instructions and
// returns its length; here there are none.
func widenVector(dtype.Type, []float32, []byte, float32) int { return 0 }
