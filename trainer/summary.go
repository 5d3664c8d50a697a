package trainer

import (
	"bufio"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Summary is what a run comes to: the content of summary.json. The metrics are
// those of the best epoch, in evaluation mode.
type Summary struct {
	Dataset string `json:"dataset"`
	Model   string `json:"model"`
	Seed    uint64 `json:"seed"`
	Device  string `json:"device"`

	Epochs    int     `json:"epochs"`
	Steps     int64   `json:"steps"`
	BestEpoch int     `json:"best_epoch"`
	Train     float64 `json:"train_metric"`
	Valid     float64 `json:"valid_metric"`
	Test      float64 `json:"test_metric"`
	Metric    string  `json:"metric"`

	SecondsTotal    float64      `json:"seconds_total"`
	SecondsPerEpoch float64      `json:"seconds_per_epoch"` // median, evaluation excluded
	Stages          StageSeconds `json:"stage_seconds"`
	BytesGathered   int64        `json:"bytes_gathered"`
	GatherGBps      float64      `json:"gather_gbps"`
	PeakHostBytes   int64        `json:"peak_host_bytes"` // peak RssAnon + RssShmem
	PeakDeviceBytes int64        `json:"peak_device_bytes"`
	CPUSeconds      float64      `json:"cpu_seconds"`
	GPUJoules       float64      `json:"gpu_joules"`
	// CacheHitRate is the share of the gathered rows that a cache of a part of the
	// features served; absent without one.
	CacheHitRate float64 `json:"cache_hit_rate,omitempty"`

	// Of repeated runs: the metrics above are means.
	Repeats  int     `json:"repeats,omitempty"`
	ValidStd float64 `json:"valid_metric_std,omitempty"`
	TestStd  float64 `json:"test_metric_std,omitempty"`
}

// Combine returns the summary of repeated runs: mean metrics with their sample
// standard deviations, summed costs, the median epoch.
func Combine(runs []Summary) Summary {
	s := runs[0]
	s.Repeats = len(runs)
	var train, valid, test, perEpoch []float64
	for _, r := range runs {
		train, valid, test = append(train, r.Train), append(valid, r.Valid), append(test, r.Test)
		perEpoch = append(perEpoch, r.SecondsPerEpoch)
	}
	for _, r := range runs[1:] {
		s.Epochs += r.Epochs
		s.Steps += r.Steps
		s.SecondsTotal += r.SecondsTotal
		s.Stages.add(r.Stages)
		s.BytesGathered += r.BytesGathered
		s.CPUSeconds += r.CPUSeconds
		s.GPUJoules += r.GPUJoules
		s.PeakHostBytes = max(s.PeakHostBytes, r.PeakHostBytes)
		s.PeakDeviceBytes = max(s.PeakDeviceBytes, r.PeakDeviceBytes)
	}
	s.Train, _ = meanStd(train)
	s.Valid, s.ValidStd = meanStd(valid)
	s.Test, s.TestStd = meanStd(test)
	s.SecondsPerEpoch = median(perEpoch)
	s.GatherGBps = rate(s.BytesGathered, s.Stages.Gather)
	return s
}

// meanStd returns the mean and the sample standard deviation (n-1), 0 for one.
func meanStd(x []float64) (mean, std float64) {
	for _, v := range x {
		mean += v / float64(len(x))
	}
	if len(x) < 2 {
		return mean, 0
	}
	for _, v := range x {
		std += (v - mean) * (v - mean)
	}
	return mean, math.Sqrt(std / float64(len(x)-1))
}

func median(x []float64) float64 {
	if len(x) == 0 {
		return 0
	}
	y := slices.Sorted(slices.Values(x))
	if n := len(y); n%2 == 0 {
		return (y[n/2-1] + y[n/2]) / 2
	}
	return y[len(y)/2]
}

// rate returns GB/s.
func rate(bytes int64, seconds float64) float64 {
	if seconds <= 0 {
		return 0
	}
	return float64(bytes) / seconds / 1e9
}

// cpuTime returns the processor time of this process so far.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// residentBytes returns the memory of this process that no file backs, RssAnon +
// RssShmem; 0 where the system does not tell.
func residentBytes() int64 {
	f, err := os.Open("/proc/self/status")
	if err != nil {
		return 0
	}
	defer f.Close()
	var total int64
	for sc := bufio.NewScanner(f); sc.Scan(); {
		key, rest, _ := strings.Cut(sc.Text(), ":")
		if key != "RssAnon" && key != "RssShmem" {
			continue
		}
		var kb int64
		if _, err := fmt.Sscanf(rest, "%d kB", &kb); err == nil {
			total += kb << 10
		}
	}
	return total
}
