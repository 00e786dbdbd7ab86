//! Tests of reading, storing, transforming and analysing traces of every format; one topic per file.

mod analyze;
mod bad_input;
mod binary;
mod blkparse;
mod blktrace;
mod blktrace_out;
mod caching;
mod compressed;
mod following;
mod ftrace;
mod keyed;
mod parts;
mod reading;
mod real;
mod reuse;
mod round_trip;
mod samples;
mod store;
