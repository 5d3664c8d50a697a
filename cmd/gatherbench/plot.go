package main

import (
	"fmt"
	"os"
	"path/filepath"
	"sort"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
)

// plotByWidth draws a line per mode (and order, dtype and table size, where
// there are several) of GB/s over row bytes.
func plotByWidth(path string, results []result) error {
	p := plot.New()
	p.Title.Text = "Gather of scattered rows"
	p.X.Label.Text = "bytes in a row"
	p.Y.Label.Text = "GB/s of useful bytes"
	p.Y.Min = 0
	p.Legend.Top = false
	p.Legend.Left = false
	p.Add(plotter.NewGrid())
	for i, l := range lines(results) {
		line, points, err := plotter.NewLinePoints(l.points)
		if err != nil {
			return fmt.Errorf("plot: %w", err)
		}
		line.Color, line.Dashes = plotutil.Color(i), plotutil.Dashes(i/7)
		points.Color, points.Shape = plotutil.Color(i), plotutil.Shape(i)
		p.Add(line, points)
		p.Legend.Add(l.name, line, points)
	}
	if dma := results[0].DMA; dma > 0 {
		p.Y.Max = max(p.Y.Max, 1.05*dma)
		f := plotter.NewFunction(func(float64) float64 { return dma })
		f.Dashes = []vg.Length{vg.Points(2), vg.Points(3)}
		p.Add(f)
		p.Legend.Add("page-locked DMA", f)
	}
	// Written beside its name and renamed: never half a picture.
	tmp := filepath.Join(filepath.Dir(path), ".tmp-"+filepath.Base(path))
	if err := p.Save(18*vg.Centimeter, 11*vg.Centimeter, tmp); err != nil {
		os.Remove(tmp)
		return fmt.Errorf("plot %s: %w", path, err)
	}
	return os.Rename(tmp, path)
}

// curve is one line of the plot.
type curve struct {
	name   string
	points plotter.XYs
}

// lines groups results by all that is not the width, in order of appearance.
func lines(results []result) []curve {
	several := func(f func(result) string) bool {
		for _, r := range results {
			if f(r) != f(results[0]) {
				return true
			}
		}
		return false
	}
	order := func(r result) string { return r.Order }
	dt := func(r result) string { return r.DType }
	size := func(r result) string { return fmt.Sprintf("%.3g GiB", float64(r.Table)/(1<<30)) }
	var out []curve
	at := map[string]int{}
	for _, r := range results {
		name := r.Mode
		for _, f := range []func(result) string{order, dt, size} {
			if several(f) {
				name += ", " + f(r)
			}
		}
		i, known := at[name]
		if !known {
			i = len(out)
			at[name] = i
			out = append(out, curve{name: name})
		}
		out[i].points = append(out[i].points, plotter.XY{X: float64(r.RowBytes), Y: r.GBps})
	}
	for _, c := range out {
		sort.Slice(c.points, func(i, j int) bool { return c.points[i].X < c.points[j].X })
	}
	return out
}
