package cuda

import "fmt"

// Purpose says what memory is for, so that a report can say where it went.
type Purpose uint8

// The purposes. Append; the zero value is for what fits nowhere else.
const (
	Other          Purpose = iota
	Features               // feature tables
	FeatureCache           // hot rows of feature tables
	Topology               // graphs on the device
	Indices                // ids, blocks of a batch
	Activations            // values between layers, and gathered rows
	Gradients              // their gradients
	Parameters             // parameters and their gradients
	OptimizerState         // moments, averages
	Staging                // slabs between host and device
	Workspace              // scratch of libraries and kernels

	numPurposes
)

var purposeNames = [numPurposes]string{
	"other", "features", "feature cache", "topology", "indices", "activations",
	"gradients", "parameters", "optimizer state", "staging", "workspace",
}

// String returns the name for reports.
func (p Purpose) String() string {
	if p < numPurposes {
		return purposeNames[p]
	}
	return fmt.Sprintf("purpose(%d)", uint8(p))
}

// index maps unknown purposes to Other, so that counting never fails.
func (p Purpose) index() Purpose {
	if p < numPurposes {
		return p
	}
	return Other
}
