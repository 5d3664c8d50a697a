package optim_test

import (
	"encoding/json"
	"math"
	"os"
	"testing"

	"zerogcn/internal/sharedtest"
	"zerogcn/model/optim"
)

func TestSchedulesGolden(t *testing.T) {
	b, err := os.ReadFile(sharedtest.Path(t, "golden/schedules/manifest.json"))
	if err != nil {
		t.Fatal(err)
	}
	var m struct {
		Values map[string]struct {
			Base  float64   `json:"base_lr"`
			TMax  int       `json:"T_max"`
			Min   float64   `json:"eta_min"`
			Size  int       `json:"step_size"`
			Gamma float64   `json:"gamma"`
			LR    []float64 `json:"lr"`
		}
	}
	if err := json.Unmarshal(b, &m); err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]optim.Schedule{
		"step":   {Kind: "step", Size: m.Values["step"].Size, Gamma: m.Values["step"].Gamma},
		"cosine": {Kind: "cosine", Min: m.Values["cosine"].Min},
	} {
		v := m.Values[name]
		if len(v.LR) == 0 {
			t.Fatalf("%s: no golden rates", name)
		}
		for e, want := range v.LR {
			if v.TMax > 0 && e > v.TMax {
				break // PyTorch's wave rises again, a run of T_max epochs has ended
			}
			if got := s.Rate(v.Base, e, v.TMax); math.Abs(got-want) > 1e-12*want {
				t.Errorf("%s: epoch %d: rate %v, want %v", name, e, got, want)
			}
		}
	}
}

func TestParseSchedule(t *testing.T) {
	for _, text := range []string{"none", "step:30,0.5", "cosine", "cosine:1e-05"} {
		s, err := optim.ParseSchedule(text)
		if err != nil || s.String() != text {
			t.Errorf("%s: read as %v, %v", text, s, err)
		}
	}
	for _, text := range []string{"", "linear", "step", "step:0,0.5", "step:5", "step:5,-1", "step:5,x", "cosine:x", "cosine:-1", "none:1", "cosine:NaN"} {
		if s, err := optim.ParseSchedule(text); err == nil {
			t.Errorf("%q: read as %v", text, s)
		}
	}
}
