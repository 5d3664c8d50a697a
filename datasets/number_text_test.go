package datasets

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestCutFloat compares with strconv on numbers as tables have them, and on
// those next to half way between two float32 values.
func TestCutFloat(t *testing.T) {
	check := func(t interface{ Fatalf(string, ...any) }, s string) {
		v, n := cutFloat([]byte(s))
		if n == 0 {
			return
		}
		want, err := strconv.ParseFloat(s[:n], 32)
		if err != nil || math.Float32bits(v) != math.Float32bits(float32(want)) {
			t.Fatalf("%q: %v of %d bytes, want %v, %v", s, v, n, float32(want), err)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		check(t, rapid.StringMatching(`-?[0-9]{0,12}(\.[0-9]{0,14})?([eE][-+]?[0-9]{1,3})?[,x ]?`).Draw(t, "text"))
	})
	rapid.Check(t, func(t *rapid.T) {
		x := rapid.Float32Range(-1e9, 1e9).Draw(t, "x")
		mid := (float64(x) + float64(math.Nextafter32(x, 2e9))) / 2
		for _, y := range []float64{float64(x), mid, math.Nextafter(mid, 0), math.Nextafter(mid, 2e9)} {
			check(t, strconv.FormatFloat(y, 'g', rapid.IntRange(1, 18).Draw(t, "digits"), 64))
			check(t, strconv.FormatFloat(y, 'f', rapid.IntRange(0, 15).Draw(t, "places"), 64))
		}
	})
	// What tables have goes the short way.
	for _, s := range []string{"0", "1", "-12.560468", "0.4100000000000003", "1e-05", "3.1788833", "-0.0015868979", "007", "5.", ".5"} {
		if _, n := cutFloat([]byte(s)); n != len(s) {
			t.Errorf("%q: %d bytes read", s, n)
		}
		check(t, s)
	}
	for _, s := range []string{"", "-", ".", "e5", "1e", "nan", "inf", "+1", "0x10", strings.Repeat("1", 40), "1e400", "1_0"} {
		if _, n := cutFloat([]byte(s)); n == len(s) && n > 0 {
			t.Errorf("%q: read", s)
		}
	}
	for i := range 1000 { // halves of float32 steps, which round to even
		check(t, fmt.Sprintf("%d.5", 1<<23+i))
		check(t, fmt.Sprint(1<<24+i))
	}
}

func BenchmarkFloat32Text(b *testing.B) {
	for _, s := range []string{"0", "-0.41275", "-12.560468"} {
		b.Run(s, func(b *testing.B) {
			text := []byte(s)
			b.SetBytes(int64(len(text) + 1))
			for b.Loop() {
				if _, err := parseFloat32(text); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
