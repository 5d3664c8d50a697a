//go:build invariants

package invariants

// Enabled is true under the build tag invariants.
const Enabled = true
