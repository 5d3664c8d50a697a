package nearest

import (
	"testing"

	"pgregory.net/rapid"
)

func TestName(t *testing.T) {
	names := []string{"model", "epochs", "fanouts", "eval-fanouts", "eval-every", "gpus", "lr", "weight-decay"}
	tests := map[string]string{
		"modle": "model", "Model": "model", "epoch": "epochs", "fanout": "fanouts", "gpu": "gpus", "weightdecay": "weight-decay",
		"weight": "weight-decay", "eval": "", "l": "lr", "rl": "lr", "x": "", "": "", "completely-other": "",
	}
	for typed, want := range tests {
		if got := Name(typed, names); got != want {
			t.Errorf("Name(%q) = %q, want %q", typed, got, want)
		}
	}
}

// TestDistance holds the table to the definition by recursion, and to the
// properties of a distance that suggestions rely on.
func TestDistance(t *testing.T) {
	var slow func(a, b string) int
	slow = func(a, b string) int {
		if a == "" || b == "" {
			return len(a) + len(b)
		}
		i, j := len(a)-1, len(b)-1
		cost := 1
		if a[i] == b[j] {
			cost = 0
		}
		d := min(slow(a[:i], b)+1, slow(a, b[:j])+1, slow(a[:i], b[:j])+cost)
		if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
			d = min(d, slow(a[:i-1], b[:j-1])+1)
		}
		return d
	}
	word := rapid.StringMatching(`[a-c]{0,5}`)
	rapid.Check(t, func(t *rapid.T) {
		a, b := word.Draw(t, "a"), word.Draw(t, "b")
		if got, want := distance(a, b), slow(a, b); got != want {
			t.Errorf("distance(%q, %q) = %d, want %d", a, b, got, want)
		}
		if distance(a, b) != distance(b, a) {
			t.Errorf("distance(%q, %q) is not symmetric", a, b)
		}
	})
}
