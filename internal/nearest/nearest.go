// Package nearest guesses which of a list of names a misspelt one meant.
package nearest

import "strings"

// Name returns the name that was most likely meant by a misspelt one, or ""
// if none is close: the least optimal string alignment distance (insertions,
// deletions, substitutions and swaps of neighbours) up to a third of the
// longer name's length, the first on ties; failing that, the only name that
// begins with what was typed.
func Name(typed string, names []string) string {
	best, least := "", len(typed)+1
	low := strings.ToLower(typed)
	for _, name := range names {
		limit := max(1, max(len(typed), len(name))/3)
		if d := distance(low, strings.ToLower(name)); d <= limit && d < least && d < max(len(typed), len(name)) {
			best, least = name, d
		}
	}
	if best != "" || len(typed) < 2 {
		return best
	}
	for _, name := range names {
		if strings.HasPrefix(strings.ToLower(name), low) {
			if best != "" {
				return "" // several: naming one would be a guess
			}
			best = name
		}
	}
	return best
}

// distance is the optimal string alignment distance of two strings, by bytes:
// names are ASCII, and for others an estimate is enough. Three rows of the
// usual table suffice.
func distance(a, b string) int {
	before, prev, cur := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		cur[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			cur[j] = min(prev[j]+1, cur[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				cur[j] = min(cur[j], before[j-2]+1)
			}
		}
		before, prev, cur = prev, cur, before
	}
	return prev[len(b)]
}
