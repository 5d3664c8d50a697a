//go:build !invariants

package cuda

func (b *Binding) check() {}
