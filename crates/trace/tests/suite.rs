//! Traces of every format, read, stored, transformed and analysed, one matter a file.

mod analyze;
mod bad_input;
mod binary;
mod blkparse;
mod blktrace;
mod blktrace_out;
mod compressed;
mod following;
mod parts;
mod ftrace;
mod keyed;
mod reading;
mod real;
mod reuse;
mod round_trip;
mod samples;
mod store;
