// A library for LD_PRELOAD that sees every call of a program that writes a file or changes a name
// below one folder. It counts them, makes one fail or ends the program there, and records them for
// tests/support/power_loss.h. It works with every program that is linked with the C library: the
// real `piper`, or a test's own. tests/support/fault_run.h starts programs under it.
//
// Counted are, from 1 on: open, openat and fopen that write or make a file; write, pwrite and
// writev; ftruncate; fsync and fdatasync, of folders too; rename; unlink, rmdir and remove; mkdir;
// and close of what was open for writing. Not seen is what is mapped into memory, what is written
// through a descriptor that was duplicated, and calls inside of the C library (fwrite's, but not
// std::ofstream's).
//
// The environment says what to do; without PIPER_FAULTS_BELOW that is nothing.
//
//   PIPER_FAULTS_BELOW  an absolute folder, without links in it: only calls there count
//   PIPER_FAULTS_LOG    a file outside of it, which gets a record of each call that succeeded
//   PIPER_FAULTS_AT     N: something happens at the Nth call
//   PIPER_FAULTS_DO     fail: it is not done, and returns the error
//                       fail-on: the same, and so do all later calls but unlink, rmdir and close
//                       short: a write takes half of its bytes, at least one; others are done
//                       kill: SIGKILL before it; half of the bytes of a write are written
//   PIPER_FAULTS_ERRNO  the error, a number; not given: ENOSPC
//
// Threads of one process are counted together. A child that is forked goes on with the count on its
// own; a program that it starts begins anew, and adds to the same log.
//
// A record starts with the number of its call and a word, and ends with a line break; descriptors
// are the process's:
//
//   N open FD TRUNCATED PATH    FD is for writing to the file of this name, which is made if
//   missing N folder FD PATH            FD is a folder; this is no call that counts N write FD
//   OFFSET BYTES     and so many bytes follow the line break N truncate FD LENGTH N sync FD of a
//   file or a folder N close FD N rename FROM               and TO on a line of its own N remove
//   PATH               a file or a folder N mkdir PATH N unknown WHAT PATH         a call that a
//   replay has no model of
#pragma once

#define PIPER_FAULTS_BELOW "PIPER_FAULTS_BELOW"
#define PIPER_FAULTS_LOG "PIPER_FAULTS_LOG"
#define PIPER_FAULTS_AT "PIPER_FAULTS_AT"
#define PIPER_FAULTS_DO "PIPER_FAULTS_DO"
#define PIPER_FAULTS_ERRNO "PIPER_FAULTS_ERRNO"
