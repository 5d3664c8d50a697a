package kernels

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// sources returns what goes into the hash of a module, in build.sh's order.
func sources(t *testing.T, name string) string {
	t.Helper()
	headers, err := filepath.Glob("*.cuh")
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(headers)
	h := sha256.New()
	for _, f := range append(append([]string{name + ".cu"}, headers...), "build.sh") {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		h.Write(b)
	}
	return hex.EncodeToString(h.Sum(nil))[:32]
}

// The committed PTX is what the committed sources give: by hash, which needs no
// compiler. `make kernels-check` compiles all of it again and compares the text.
func TestPTXIsUpToDate(t *testing.T) {
	found, err := filepath.Glob("*.cu")
	if err != nil || len(found) == 0 {
		t.Fatalf("no sources: %v", err)
	}
	var names []string
	for _, f := range found {
		names = append(names, strings.TrimSuffix(f, ".cu"))
	}
	slices.Sort(names)
	if got := Names(); !slices.Equal(got, names) {
		t.Errorf("modules %v, sources %v: run build.sh", got, names)
	}
	for _, name := range names {
		want := sources(t, name)
		for _, v := range Variants() {
			img, err := Find(name, v.SM, v.Driver)
			if err != nil {
				t.Fatal(err)
			}
			line, _, _ := bytes.Cut(img.PTX, []byte("\n"))
			head := fmt.Sprintf("// zerogcn %s.cu for sm_%d, PTX ISA %d, sources %s", name, v.SM, v.PTX, want)
			if string(line) != head {
				t.Errorf("ptx/%s.sm%d.ptx is older than its sources: run build.sh\n got %s\nwant %s", name, v.SM, line, head)
			}
		}
	}
}

func TestPTXTargetsAndPortability(t *testing.T) {
	target := regexp.MustCompile(`(?m)^\.version (\d)\.(\d)\n\.target sm_(\d+)`)
	for _, name := range Names() {
		for _, v := range Variants() {
			img, err := Find(name, v.SM, v.Driver)
			if err != nil {
				t.Fatal(err)
			}
			m := target.FindSubmatch(img.PTX)
			if m == nil {
				t.Fatalf("%s sm_%d: no .version and .target", name, v.SM)
			}
			if got, want := fmt.Sprintf("%s%s sm_%s", m[1], m[2], m[3]), fmt.Sprintf("%d sm_%d", v.PTX, v.SM); got != want {
				t.Errorf("%s: PTX says %s, want %s", name, got, want)
			}
			for _, bad := range []string{"/home", "/root", "/tmp", "\t.file\t", "\t.loc\t"} {
				if bytes.Contains(img.PTX, []byte(bad)) {
					t.Errorf("%s sm_%d: holds %q: not reproducible", name, v.SM, bad)
				}
			}
		}
	}
}

func TestFind(t *testing.T) {
	for _, c := range []struct {
		cc, driver, sm int
		err            string
	}{
		{90, 13000, 90, ""},
		{100, 13000, 90, ""}, // PTX runs on later GPUs
		{90, 12000, 80, ""},  // driver too old for PTX 8.1
		{89, 12040, 80, ""},
		{86, 11030, 70, ""},
		{75, 13000, 70, ""},
		{61, 12040, 0, "compute capability 6.1 with driver CUDA 12.4 is too old"},
		{70, 8000, 0, "driver CUDA 8.0 is too old"},
	} {
		img, err := Find("basic", c.cc, c.driver)
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("cc %d driver %d: error %v, want %q", c.cc, c.driver, err, c.err)
			}
			continue
		}
		if err != nil || img.Variant.SM != c.sm {
			t.Errorf("cc %d driver %d: sm_%d, %v; want sm_%d", c.cc, c.driver, img.Variant.SM, err, c.sm)
		}
	}
	if _, err := Find("absent", 90, 13000); err == nil || !strings.Contains(err.Error(), "basic, ") {
		t.Errorf("absent module: %v", err)
	}
}
