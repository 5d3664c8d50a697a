// Package atomicfile writes files and folders so that their final names hold
// the old contents or the new ones, whole, at every instant: also after a
// crash, a kill or a loss of power.
//
//   - [Create] opens a [File] under a temporary name beside its target; Commit
//     syncs it, renames it over the target and syncs the folder. Close without
//     Commit removes it. [Write] does all of it around a function.
//   - [WriteDir] does the same for a folder: fill it under a temporary name,
//     sync everything, exchange it with the old folder.
//   - [Recover] puts back a folder that a crash caught between two renames, on
//     file systems that have no exchange.
//
// # Temporary names
//
// The temporary name of x is .x.tmp-* in the same folder, so the rename never
// crosses file systems. Its writer holds a lock (flock) on it, which the kernel
// lets go when the process ends in whatever way. Every new writer of x first
// removes those temporary files and folders of x that nobody has locked: what
// a killed process left is gone with the next write.
//
// # Replacing a folder
//
// rename(2) replaces a folder only if it is empty. So WriteDir swaps the old
// and the new one in one step, renameat2(2) with RENAME_EXCHANGE, then removes
// the old one under the temporary name. ext4, xfs, btrfs and tmpfs can do that.
// Where the file system cannot (NFS, for one), two renames do it: x to .x.old,
// then the new folder to x. A crash between the two leaves no x but a complete
// .x.old; Recover renames it back. Readers of folders call Recover first.
//
// # Caveats
//
// A folder has one writer at a time, that is the caller's duty; readers may be
// many. A reader that opens several files of a folder by path may get some of
// the old and some of the new: open the folder itself once ([os.OpenRoot]) and
// go on from there. The package needs Linux.
package atomicfile
