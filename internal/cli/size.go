package cli

import (
	"errors"
	"flag"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Size is an amount of memory: a number of bytes, a share of some whole, or
// left to the program. The zero value is no bytes.
type Size struct {
	Auto    bool    // the program decides; the other fields are 0
	Percent float64 // share of the whole in per cent, above 0 up to 100; 0 if Bytes counts
	Bytes   int64
}

// Of returns the size in bytes, given the whole that shares refer to and what
// auto stands for.
func (s Size) Of(whole, auto int64) int64 {
	switch {
	case s.Auto:
		return auto
	case s.Percent > 0:
		return int64(float64(whole) * (s.Percent / 100))
	}
	return s.Bytes
}

// units from large to small, the binary ones first: String writes the first
// that divides the size.
var units = []struct {
	name  string
	bytes int64
}{
	{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10},
	{"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}, {"KB", 1e3}, {"B", 1},
}

func (s Size) String() string {
	switch {
	case s.Auto:
		return "auto"
	case s.Percent > 0:
		return formatFloat(s.Percent) + "%"
	case s.Bytes == 0:
		return "0"
	}
	for _, u := range units {
		if s.Bytes%u.bytes == 0 {
			return strconv.FormatInt(s.Bytes/u.bytes, 10) + u.name
		}
	}
	return strconv.FormatInt(s.Bytes, 10)
}

var errSize = errors.New("want a share such as 20%, a size such as 4GiB or 500MB, or auto")

// ParseSize reads "auto", a share such as "20%", or bytes: a number that is
// not negative with the unit B, KB, MB, GB, TB (powers of 1,000), KiB, MiB,
// GiB, TiB (powers of 1,024) or none (bytes), in any case.
func ParseSize(s string) (Size, error) {
	low := strings.ToLower(strings.TrimSpace(s))
	if low == "auto" {
		return Size{Auto: true}, nil
	}
	if share, ok := strings.CutSuffix(low, "%"); ok {
		v, err := strconv.ParseFloat(strings.TrimSpace(share), 64)
		if err != nil || math.IsNaN(v) {
			return Size{}, fmt.Errorf("%q: %w", s, errSize)
		}
		if v < 0 || v > 100 {
			return Size{}, fmt.Errorf("%s is not between 0%% and 100%%", s)
		}
		return Size{Percent: v}, nil
	}
	number, unit := low, int64(1)
	for _, u := range units {
		if n, ok := strings.CutSuffix(low, strings.ToLower(u.name)); ok {
			number, unit = strings.TrimSpace(n), u.bytes
			break
		}
	}
	bytes, err := parseBytes(number, unit)
	if err != nil {
		return Size{}, fmt.Errorf("%q: %w", s, err)
	}
	return Size{Bytes: bytes}, nil
}

// parseBytes multiplies exactly where the number is whole.
func parseBytes(number string, unit int64) (int64, error) {
	if n, err := strconv.ParseInt(number, 10, 64); err == nil {
		switch {
		case n < 0:
			return 0, errors.New("a size cannot be negative")
		case n > math.MaxInt64/unit:
			return 0, errors.New("more than 2^63-1 bytes")
		}
		return n * unit, nil
	}
	v, err := strconv.ParseFloat(number, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) || math.IsNaN(v) {
		return 0, errSize
	}
	if v < 0 {
		return 0, errors.New("a size cannot be negative")
	}
	v = math.Round(v * float64(unit))
	if v >= math.MaxInt64 {
		return 0, errors.New("more than 2^63-1 bytes")
	}
	return int64(v), nil
}

// MemorySize binds a size.
func MemorySize(p *Size) flag.Value {
	return &bound[Size]{p: p, placeholder: "SIZE", parse: ParseSize, format: Size.String}
}
