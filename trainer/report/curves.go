package report

import (
	"fmt"
	"image/color"
	"io"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"

	"zerogcn/trainer"
)

// Curves collects losses and metrics by epoch, and draws them.
type Curves struct {
	loss  plotter.XYs
	parts [3]plotter.XYs
	title string
	name  string // of the metric
	best  int
}

// Handle collects the event.
func (c *Curves) Handle(e trainer.Event) error {
	switch e := e.(type) {
	case trainer.RunStart:
		c.title, c.name = fmt.Sprintf("%s on %s, seed %d", e.Model, e.Dataset, e.Seed), e.Metric
	case trainer.Epoch:
		c.AddEpoch(e.Epoch, e.Loss)
	case trainer.Eval:
		c.AddEval(e.Epoch, e.Train, e.Valid, e.Test)
		c.best = e.BestEpoch
	}
	return nil
}

// AddEpoch adds an epoch's loss, from the metrics of a resumed run's first part.
func (c *Curves) AddEpoch(epoch int, loss float64) {
	if !math.IsNaN(loss) {
		c.loss = append(c.loss, plotter.XY{X: float64(epoch), Y: loss})
	}
}

// AddEval adds an evaluation.
func (c *Curves) AddEval(epoch int, train, valid, test float64) {
	for i, v := range []float64{train, valid, test} {
		c.parts[i] = append(c.parts[i], plotter.XY{X: float64(epoch), Y: v})
	}
}

// WritePNG draws the loss above the metrics. Without epochs it draws nothing and
// is an error.
func (c *Curves) WritePNG(w io.Writer) error {
	if len(c.loss) == 0 {
		return fmt.Errorf("no epochs to draw")
	}
	loss := plot.New()
	loss.Title.Text, loss.Y.Label.Text = c.title, "training loss"
	if err := addLine(loss, "", c.loss, color.RGBA{R: 0x4c, G: 0x4c, B: 0x4c, A: 255}); err != nil {
		return err
	}
	metrics := plot.New()
	metrics.X.Label.Text, metrics.Y.Label.Text = "epoch", c.name
	metrics.Legend.Top = false
	colors := []color.RGBA{{R: 0x9e, G: 0xca, B: 0xe1, A: 255}, {R: 0xd9, G: 0x5f, B: 0x02, A: 255}, {R: 0x1b, G: 0x9e, B: 0x77, A: 255}}
	for i, part := range []string{"train", "valid", "test"} {
		if len(c.parts[i]) == 0 {
			continue
		}
		if err := addLine(metrics, part, c.parts[i], colors[i]); err != nil {
			return err
		}
	}
	for _, p := range []*plot.Plot{loss, metrics} {
		p.BackgroundColor = color.White
		p.Add(plotter.NewGrid())
	}
	img := vgimg.NewWith(vgimg.UseWH(8*vg.Inch, 7*vg.Inch), vgimg.UseDPI(100))
	tiles := draw.Tiles{Rows: 2, Cols: 1, PadX: vg.Points(4), PadY: vg.Points(8), PadTop: vg.Points(6), PadBottom: vg.Points(6), PadLeft: vg.Points(6), PadRight: vg.Points(10)}
	canvases := plot.Align([][]*plot.Plot{{loss}, {metrics}}, tiles, draw.New(img))
	loss.Draw(canvases[0][0])
	metrics.Draw(canvases[1][0])
	_, err := vgimg.PngCanvas{Canvas: img}.WriteTo(w)
	return err
}

func addLine(p *plot.Plot, name string, xy plotter.XYs, c color.Color) error {
	l, err := plotter.NewLine(xy)
	if err != nil {
		return err
	}
	l.Color, l.Width = c, vg.Points(1.6)
	p.Add(l)
	if name != "" {
		p.Legend.Add(name, l)
	}
	return nil
}
