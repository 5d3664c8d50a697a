package cli

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"zerogcn/internal/usage"
)

// writeFile puts text into a file of a temporary folder and returns its path.
func writeFile(t testing.TB, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "run.yaml")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestConfig(t *testing.T) {
	path := writeFile(t, `# a comment
dataset: "123"
model: gcn
fanouts: [20, 20]
weight-decay: [5e-4, 0]
lr: 2e-3
batch: 77
deterministic: true
gpus: "0,2"
cache: 4GiB
`)
	o := defaults()
	fs := newFlags(&o)
	if err := fs.Parse([]string{"-batch", "12", "-config", path, "-model", "gcn", "-json"}); err != nil {
		t.Fatal(err)
	}
	want := defaults()
	want.Dataset, want.Model, want.Fanouts, want.Decay = "123", "gcn", Fanouts{20, 20}, []float64{5e-4, 0}
	want.LR, want.Batch, want.Det, want.GPUs, want.Cache = 2e-3, 12, true, GPUs{Devices: []int{0, 2}}, Size{Bytes: 4 << 30}
	want.JSON = true
	if d := cmp.Diff(want, o); d != "" {
		t.Errorf("options (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]Override{{"batch", "77", "12"}}, fs.Overrides()); d != "" {
		t.Errorf("Overrides (-want +got):\n%s", d)
	}
	for name, origin := range map[string]Origin{"lr": FromConfig, "batch": FromCommand, "seed": Default} {
		if got := fs.Origin(name); got != origin {
			t.Errorf("Origin(%s) = %v, want %v", name, got, origin)
		}
	}
}

func TestConfigFaults(t *testing.T) {
	tests := []struct {
		name, text string
		want       []string // after the file's name
	}{
		{"many at once", "modle: gat\nepochs: -3\nlr: 0.1\nlr: 0.2\nfanouts: {a: 1}\n", []string{
			":1: modle: no such flag; did you mean model?",
			":2: epochs: -3 is less than 1",
			":4: lr: set already in line 3; keep one of the two",
			":5: fanouts: want one value, written as on the command line: N,...|full"}},
		{"dash", "-model: gat\n", []string{":1: -model: no such flag; did you mean model?"}},
		{"no value", "seed:\nepochs: ~\n", []string{
			`:1: seed: has no value; leave the key out for the default, or write ""`,
			`:2: epochs: has no value; leave the key out for the default, or write ""`}},
		{"wrong type", "deterministic: yes\nepochs: [1, 2]\nepochs-: 1\n", []string{
			`:1: deterministic: "yes" is neither true nor false`,
			":2: epochs: want one value, written as on the command line: N",
			":3: epochs-: no such flag; did you mean epochs?"}},
		{"nested list", "fanouts: [1, [2]]\n", []string{":1: fanouts: an element of the list is not a single value"}},
		{"gpus as sequence", "gpus: [2]\n", []string{":1: gpus: want one value, written as on the command line: auto|N|LIST"}},
		{"list", "- model\n", []string{":1: want a mapping of flags' names to values, such as epochs: 20"}},
		{"scalar", "model\n", []string{":1: want a mapping of flags' names to values, such as epochs: 20"}},
		{"two documents", "lr: 1\n---\nlr: 2\n", []string{":2: a second document; a configuration is one mapping of flags' names to values"}},
		{"key", "[a, b]: 1\n", []string{":1: a key must be the name of a flag"}},
		{"itself", "config: other.yaml\n", []string{":1: config: a configuration file cannot name another"}},
		{"merge", "<<: {lr: 1}\n", []string{":1: <<: no such flag; -help lists the flags"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			path := writeFile(t, test.text)
			o := defaults()
			err := newFlags(&o).Parse([]string{"-config", path})
			if err == nil {
				t.Fatal("no fault")
			}
			got := strings.Split(strings.ReplaceAll(err.Error(), path, ""), "\n")
			if d := cmp.Diff(test.want, got); d != "" {
				t.Errorf("faults (-want +got):\n%s", d)
			}
			if !usage.Is(err) {
				t.Error("not an error of usage")
			}
		})
	}
}

// TestConfigSyntax: the parser's own messages change with its version, so only
// the place and the form are fixed here.
func TestConfigSyntax(t *testing.T) {
	for name, text := range map[string]string{
		"tab":      "lr: 1\n\tmodel: gcn\n",
		"open":     "lr: [1,\n",
		"binary":   "\x00\x01\x02",
		"alias":    "lr: *nosuch\n",
		"not utf8": "dataset: \"\xff\xfe\"\n",
	} {
		path := writeFile(t, text)
		o := defaults()
		err := newFlags(&o).Parse([]string{"-config", path})
		if err == nil || !usage.Is(err) || !strings.HasPrefix(err.Error(), path+":") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got %v, want one line of usage that begins with the file's name", name, err)
		}
	}
}

func TestConfigEmpty(t *testing.T) {
	for _, text := range []string{"", "# nothing\n", "---\n", "{}\n", "~\n"} {
		o := defaults()
		if err := newFlags(&o).Parse([]string{"-config", writeFile(t, text)}); err != nil {
			t.Errorf("%q: %v", text, err)
		}
		if d := cmp.Diff(defaults(), o); d != "" {
			t.Errorf("%q: options changed:\n%s", text, d)
		}
	}
}

func TestConfigTooLarge(t *testing.T) {
	path := writeFile(t, strings.Repeat("# padding\n", maxConfig/10+1))
	o := defaults()
	err := newFlags(&o).Parse([]string{"-config", path})
	if err == nil || !strings.Contains(err.Error(), "not a configuration file") {
		t.Errorf("got %v", err)
	}
}

func TestConfigFrom(t *testing.T) {
	path := writeFile(t, "epochs: 7\n")
	o := defaults()
	fs := newFlags(&o)
	var resume string
	fs.Var(String(&resume), "resume", "continue a run")
	fs.Invocation("resume")
	fs.ConfigFrom(func(given func(string) (string, bool)) (string, error) {
		if dir, ok := given("resume"); ok {
			return filepath.Join(dir, "run.yaml"), nil
		}
		return "", errors.New("nothing to resume")
	})
	if err := fs.Parse([]string{"-resume", filepath.Dir(path), "-epochs", "9", "-lr", "0.01"}); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]Override{{"epochs", "7", "9"}}, fs.Overrides()); d != "" {
		t.Errorf("Overrides (-want +got), flags equal to the default must not be listed:\n%s", d)
	}
	if err := fs.Parse(nil); err == nil || err.Error() != "nothing to resume" {
		t.Errorf("got %v, want the error of ConfigFrom", err)
	}
}

func TestWriteConfig(t *testing.T) {
	o := defaults()
	o.Dataset = "null"
	var out bytes.Buffer
	if err := newFlags(&o).WriteConfig(&out); err != nil {
		t.Fatal(err)
	}
	golden(t, "config.yaml", out.Bytes())
}

// TestConfigRoundTrip: what WriteConfig writes, Parse reads back to the same
// values, whatever they are.
func TestConfigRoundTrip(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		want := drawOptions(t)
		var out bytes.Buffer
		if err := newFlags(&want).WriteConfig(&out); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, "run.yaml")
		if err := os.WriteFile(path, out.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		got := defaults()
		if err := newFlags(&got).Parse([]string{"-config", path}); err != nil {
			t.Fatalf("%v in\n%s", err, out.Bytes())
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("options (-want +got) through\n%s\n%s", out.Bytes(), d)
		}
		var again bytes.Buffer
		if err := newFlags(&got).WriteConfig(&again); err != nil || !bytes.Equal(out.Bytes(), again.Bytes()) {
			t.Errorf("written again (%v):\n%s\nfirst:\n%s", err, again.Bytes(), out.Bytes())
		}
	})
}

func drawOptions(t *rapid.T) options {
	o := defaults()
	o.Dataset = rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "null", "~", "1e3", "true", "- a", "a: b", "#x", " x ", "a\nb", "'", `"`, "0x10", "2001-01-01", "\u0085", "\ufeffx"})).Draw(t, "dataset")
	o.Model = rapid.SampledFrom([]string{"sage", "gcn", "gat"}).Draw(t, "model")
	o.Epochs = rapid.IntMin(1).Draw(t, "epochs")
	o.LR = rapid.Float64Range(1e-300, 1e300).Draw(t, "lr")
	o.Decay = rapid.SliceOfN(rapid.Float64Range(0, 1), 1, 4).Draw(t, "decay")
	o.Fanouts = drawFanouts(t)
	o.Batch = Batch(rapid.IntRange(0, 1<<31-1).Draw(t, "batch"))
	o.Cache = drawSize(t)
	o.GPUs = drawGPUs(t)
	o.Seed = rapid.Uint64().Draw(t, "seed")
	o.Every = time.Duration(rapid.Int64Min(int64(time.Second)).Draw(t, "every"))
	o.Det = rapid.Bool().Draw(t, "deterministic")
	return o
}

// FuzzConfig: no text makes Parse panic or leave a value that its own flag
// would refuse.
func FuzzConfig(f *testing.F) {
	f.Add([]byte("model: gcn\nfanouts: [20, 20]\nlr: 2e-3\n"))
	f.Add([]byte("a: &x 1\nepochs: *x\n"))
	f.Add([]byte("lr: 1\nlr: 2\n"))
	f.Add([]byte("? [a]\n: b\n"))
	f.Add([]byte("--- !!map\nseed: !!int \"7\"\n...\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		o := defaults()
		fs := newFlags(&o)
		var faults Faults
		fs.setFromYAML("f.yaml", text, &faults)
		for _, err := range faults {
			if !usage.Is(err) || !strings.HasPrefix(err.Error(), "f.yaml:") {
				t.Errorf("%q: fault %v", text, err)
			}
		}
		for _, v := range fs.Values() {
			if err := fs.byName[v.Name].Value.Set(v.Text); err != nil {
				t.Errorf("%q: -%s holds %q: %v", text, v.Name, v.Text, err)
			}
		}
	})
}
