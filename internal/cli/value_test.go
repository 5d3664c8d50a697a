package cli

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func drawFanouts(t *rapid.T) Fanouts {
	if rapid.Bool().Draw(t, "full") {
		return nil
	}
	return rapid.SliceOfN(rapid.IntRange(1, math.MaxInt32), 1, 6).Draw(t, "fanouts")
}

func drawSize(t *rapid.T) Size {
	switch rapid.IntRange(0, 2).Draw(t, "size") {
	case 0:
		return Size{Auto: true}
	case 1:
		return Size{Percent: rapid.Float64Range(0, 100).Draw(t, "percent")}
	}
	unit := rapid.SampledFrom(units).Draw(t, "unit").bytes
	return Size{Bytes: rapid.Int64Range(0, math.MaxInt64/unit).Draw(t, "bytes") * unit}
}

func drawGPUs(t *rapid.T) GPUs {
	switch rapid.IntRange(0, 2).Draw(t, "gpus") {
	case 0:
		return GPUs{Auto: true}
	case 1:
		return GPUs{Count: rapid.IntRange(0, math.MaxInt32).Draw(t, "count")}
	}
	return GPUs{Devices: rapid.SliceOfNDistinct(rapid.IntRange(0, 100), 1, 8, rapid.ID).Draw(t, "devices")}
}

func TestParseSize(t *testing.T) {
	tests := []struct {
		text string
		want Size
		out  string
	}{
		{"auto", Size{Auto: true}, "auto"},
		{"20%", Size{Percent: 20}, "20%"},
		{" 12.5 % ", Size{Percent: 12.5}, "12.5%"},
		{"0", Size{}, "0"},
		{"0%", Size{}, "0"},
		{"4GiB", Size{Bytes: 4 << 30}, "4GiB"},
		{"4gib", Size{Bytes: 4 << 30}, "4GiB"},
		{"1.5 GiB", Size{Bytes: 3 << 29}, "1536MiB"},
		{"500MB", Size{Bytes: 500e6}, "500MB"},
		{"4096B", Size{Bytes: 4096}, "4KiB"},
		{"17", Size{Bytes: 17}, "17B"},
		{"9223372036854775807", Size{Bytes: math.MaxInt64}, "9223372036854775807B"},
	}
	for _, test := range tests {
		got, err := ParseSize(test.text)
		if err != nil || got != test.want || got.String() != test.out {
			t.Errorf("ParseSize(%q) = %+v (%q), %v; want %+v (%q)", test.text, got, got, err, test.want, test.out)
		}
	}
	for _, bad := range []string{"", "B", "%", "x%", "-1", "-1GiB", "-1%", "101%", "NaN%", "NaN", "Inf", "1e30", "9223372036854775808", "8388608TiB", "1QB", "GiB", "4 G"} {
		if got, err := ParseSize(bad); err == nil {
			t.Errorf("ParseSize(%q) = %+v, want an error", bad, got)
		}
	}
}

func TestSizeOf(t *testing.T) {
	for _, test := range []struct {
		s    Size
		want int64
	}{{Size{Auto: true}, 7}, {Size{Percent: 20}, 200}, {Size{Percent: 100}, 1000}, {Size{Bytes: 5}, 5}, {Size{}, 0}} {
		if got := test.s.Of(1000, 7); got != test.want {
			t.Errorf("%v.Of(1000, 7) = %d, want %d", test.s, got, test.want)
		}
	}
}

func TestParseGPUs(t *testing.T) {
	tests := map[string]GPUs{
		"auto": {Auto: true}, "0": {}, "4": {Count: 4}, "2,": {Devices: []int{2}}, "0,": {Devices: []int{0}},
		"3,1": {Devices: []int{3, 1}}, "3, 1,": {Devices: []int{3, 1}},
	}
	for text, want := range tests {
		got, err := ParseGPUs(text)
		if err != nil || !cmp.Equal(got, want) {
			t.Errorf("ParseGPUs(%q) = %+v, %v; want %+v", text, got, err, want)
		}
		if cpu := text == "0"; got.CPU() != cpu {
			t.Errorf("%q: CPU() = %v, want %v", text, got.CPU(), cpu)
		}
	}
	for _, bad := range []string{"", ",", "-1", "1,,2", "1,1", "a", "1,-2", "2147483648", "1.5", "1,2,,"} {
		if got, err := ParseGPUs(bad); err == nil {
			t.Errorf("ParseGPUs(%q) = %+v, want an error", bad, got)
		}
	}
}

func TestParseFanouts(t *testing.T) {
	tests := map[string]Fanouts{"full": nil, "15,10,5": {15, 10, 5}, "3": {3}, " 1 , 2 ": {1, 2}}
	for text, want := range tests {
		if got, err := ParseFanouts(text); err != nil || !cmp.Equal(got, want) {
			t.Errorf("ParseFanouts(%q) = %v, %v; want %v", text, got, err, want)
		}
	}
	for _, bad := range []string{"", ",", "0", "-1", "3,", "3,full", "Full", "2147483648", "1e3"} {
		if got, err := ParseFanouts(bad); err == nil {
			t.Errorf("ParseFanouts(%q) = %v, want an error", bad, got)
		}
	}
}

// fuzzParser checks what holds for every parser of a value: no panic, errors
// of one line, and text that reads back to the same value.
func fuzzParser[T any](t *testing.T, s string, parse func(string) (T, error), format func(T) string) {
	v, err := parse(s)
	if err != nil {
		if msg := err.Error(); msg == "" || strings.Contains(msg, "\n") && !strings.Contains(s, "\n") {
			t.Errorf("%q: message %q", s, msg)
		}
		return
	}
	again, err := parse(format(v))
	if err != nil || !cmp.Equal(v, again) {
		t.Errorf("%q gives %+v, its text %q gives %+v, %v", s, v, format(v), again, err)
	}
}

func FuzzParseFanouts(f *testing.F) {
	for _, s := range []string{"full", "15,10,5", "3,", "-1", "99999999999"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) { fuzzParser(t, s, ParseFanouts, Fanouts.String) })
}

func FuzzParseSize(f *testing.F) {
	for _, s := range []string{"auto", "20%", "4GiB", "1.5TB", "0", "1e3KB", "-0%", "0x1p3"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) { fuzzParser(t, s, ParseSize, Size.String) })
}

func FuzzParseGPUs(f *testing.F) {
	for _, s := range []string{"auto", "0", "4", "2,", "0,1,2", "1,1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) { fuzzParser(t, s, ParseGPUs, GPUs.String) })
}

// FuzzParse: no command line panics, and every fault is one line.
func FuzzParse(f *testing.F) {
	f.Add("-epochs\x00-3\x00-modle\x00gat")
	f.Add("--model=gat\x00-lr\x00-h")
	f.Add("-=\x00--\x00-\x00---x")
	f.Fuzz(func(t *testing.T, joined string) {
		args := strings.Split(joined, "\x00")
		for _, a := range args {
			if strings.Contains(a, "config") { // would open files
				return
			}
		}
		o := defaults()
		fs := newFlags(&o)
		fs.Output = &strings.Builder{}
		err := fs.Parse(args)
		if list, ok := err.(Faults); ok && strings.Count(err.Error(), "\n") != len(list)-1 {
			t.Errorf("%q: %d faults in\n%v", args, len(list), err)
		}
	})
}
