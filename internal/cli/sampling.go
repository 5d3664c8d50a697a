package cli

import (
	"flag"
	"fmt"
	"math"
	"strconv"
)

// Full is the word for a batch or a neighbourhood that leaves nothing out.
const Full = "full"

// Fanouts is the number of neighbours to sample in each hop, from the seeds
// outwards. The zero value (no hops) stands for whole neighbourhoods, written
// "full".
type Fanouts []int

// Full reports whether whole neighbourhoods are taken.
func (f Fanouts) Full() bool { return len(f) == 0 }

func (f Fanouts) String() string {
	if f.Full() {
		return Full
	}
	return joinList(f, strconv.Itoa)
}

// ParseFanouts reads "full" or counts such as "15,10,5", each from 1 to 2^31-1.
func ParseFanouts(s string) (Fanouts, error) {
	if s == Full {
		return nil, nil
	}
	list, err := parseList(s, func(e string) (int, error) { return parseInt(e, 1, math.MaxInt32) })
	if err != nil {
		return nil, fmt.Errorf("%w; want a count per hop from the seeds outwards, such as 15,10,5, or full", err)
	}
	return list, nil
}

// FanoutList binds fan-outs.
func FanoutList(p *Fanouts) flag.Value {
	return &bound[Fanouts]{p: p, placeholder: "N,...|full", list: true, parse: ParseFanouts, format: Fanouts.String}
}

// Batch is the number of items in a mini-batch. The zero value stands for all
// of them, written "full".
type Batch int

// Full reports whether the batch is the whole set.
func (b Batch) Full() bool { return b == 0 }

func (b Batch) String() string {
	if b.Full() {
		return Full
	}
	return strconv.Itoa(int(b))
}

// ParseBatch reads "full" or a number from 1 to 2^31-1.
func ParseBatch(s string) (Batch, error) {
	if s == Full {
		return 0, nil
	}
	n, err := parseInt(s, 1, math.MaxInt32)
	if err != nil {
		return 0, fmt.Errorf("%w; want a number of items, or full", err)
	}
	return Batch(n), nil
}

// BatchSize binds a batch size.
func BatchSize(p *Batch) flag.Value {
	return &bound[Batch]{p: p, placeholder: "N|full", parse: ParseBatch, format: Batch.String}
}
