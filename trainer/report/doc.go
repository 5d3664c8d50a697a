// Package report has the listeners that show a run to people and tools:
//
//   - Console prints a table line per evaluated epoch, with a progress bar while
//     an epoch runs if the output is a terminal.
//   - Metrics writes metrics.jsonl, one JSON object per event.
//   - Log writes log.txt: every note and milestone with its time.
//   - Curves draws curves.png at the end of a run.
//
// Writers given to them are the caller's to close, after the run. A listener
// serves one run at a time.
package report
