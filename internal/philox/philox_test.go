package philox

import "testing"

// Known answers: Random123's kat_vectors, lines "philox4x32 10".
func TestKnownAnswers(t *testing.T) {
	for _, c := range []struct {
		ctr  [4]uint32
		key  [2]uint32
		want [4]uint32
	}{
		{[4]uint32{0, 0, 0, 0}, [2]uint32{0, 0},
			[4]uint32{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
		{[4]uint32{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, [2]uint32{0xffffffff, 0xffffffff},
			[4]uint32{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
		{[4]uint32{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, [2]uint32{0xa4093822, 0x299f31d0},
			[4]uint32{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
	} {
		if got := Block(c.ctr, c.key); got != c.want {
			t.Errorf("Block(%x, %x) = %x, want %x", c.ctr, c.key, got, c.want)
		}
	}
}

func TestStreamLayout(t *testing.T) {
	s := NewStream(0x1122334455667788, Sample, 2, 9)
	want := Block([4]uint32{42, 9, 1, 3<<24 | 2}, [2]uint32{0x55667788, 0x11223344})
	if got := s.Words(42, 1); got != want {
		t.Errorf("Words = %x, want %x", got, want)
	}
	if got := s.Word(42, 6); got != want[2] {
		t.Errorf("Word(6) = %x, want lane 2 of block 1, %x", got, want[2])
	}
}

func TestBelow(t *testing.T) {
	if Below(0, 7) != 0 || Below(1<<32-1, 7) != 6 || Below(1<<31, 2) != 1 || Below(123, 1) != 0 {
		t.Error("Below leaves its range or loses an end")
	}
}

func TestThreshold(t *testing.T) {
	for p, want := range map[float64]uint32{0: 0, -1: 0, 0.5: 1 << 31, 1: 1<<32 - 1, 2: 1<<32 - 1} {
		if got := Threshold(p); got != want {
			t.Errorf("Threshold(%g) = %d, want %d", p, got, want)
		}
	}
}

func BenchmarkBlock(b *testing.B) {
	s := NewStream(1, Sample, 0, 0)
	var sum uint32
	b.SetBytes(16)
	for i := range b.N {
		sum += s.Words(uint32(i), 0)[0]
	}
	_ = sum
}
