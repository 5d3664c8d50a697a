package main

import (
	"encoding/json"
	"fmt"
	"io"
)

// result is one line of the table and one JSON object.
type result struct {
	Table         int64   `json:"table_bytes"`
	Rows          int     `json:"rows"`
	Width         int     `json:"width"`
	RowBytes      int     `json:"row_bytes"`
	DType         string  `json:"dtype"`
	Order         string  `json:"order"`
	Mode          string  `json:"mode"`
	Chosen        string  `json:"chosen,omitempty"` // by auto
	IDs           int     `json:"ids"`              // unique, in the first batch
	Merged        int     `json:"merged"`           // batches in one pass
	GBps          float64 `json:"gbps"`             // of useful bytes: ids × row bytes
	DMA           float64 `json:"dma_gbps"`         // page-locked copies in the same run, 0 without a GPU
	PercentDMA    float64 `json:"percent_dma"`
	RowsPerSecond float64 `json:"rows_per_second"`
	Seconds       float64 `json:"seconds"` // median of one pass
	Cores         float64 `json:"cores_busy"`
	Blocks        int     `json:"blocks"` // of 1,024 threads, 0 on the host
}

// report prints results as they come and keeps them for the plot.
type report struct {
	table, jsonTo io.Writer
	json          bool
	results       []result
}

func (p *report) head(b *bench) {
	device := "no GPU"
	if b.dev != nil {
		device = fmt.Sprintf("%s, page-locked DMA %.1f GB/s", b.dev.Properties().Name, b.dma)
	}
	fmt.Fprintf(p.table, "%s; medians of %d gathers over %d batches of unique ids\n", device, b.repeat, b.batches)
	fmt.Fprintf(p.table, "%9s %6s %6s %-8s %-9s %8s %-18s %6s %6s %8s %6s %6s\n",
		"table GiB", "width", "row B", "dtype", "order", "ids", "mode", "GB/s", "% DMA", "Mrows/s", "cores", "blocks")
}

func (p *report) add(r result) {
	p.results = append(p.results, r)
	mode := r.Mode
	if r.Chosen != "" {
		mode += " = " + r.Chosen
	}
	if r.Merged > 1 {
		mode += fmt.Sprintf(" ×%d", r.Merged)
	}
	dma := "-"
	if r.DMA > 0 {
		dma = fmt.Sprintf("%.0f", r.PercentDMA)
	}
	fmt.Fprintf(p.table, "%9.3g %6d %6d %-8s %-9s %8d %-18s %6.1f %6s %8.1f %6.1f %6d\n",
		float64(r.Table)/(1<<30), r.Width, r.RowBytes, r.DType, r.Order, r.IDs, mode, r.GBps, dma, r.RowsPerSecond/1e6, r.Cores, r.Blocks)
	if p.json {
		line, err := json.Marshal(r)
		if err == nil { // numbers and strings only
			fmt.Fprintf(p.jsonTo, "%s\n", line)
		}
	}
}
