//! Everything that the simulator promises, one matter a file.

mod access;
mod array;
mod array_cache;
mod array_check;
mod array_faults;
mod array_links;
mod array_pool;
mod assisted;
mod catalogue;
mod common;
mod faulted;
mod geometry;
mod mechanics;
mod media_cache;
mod media_defects;
mod pool;
mod power;
mod power_cuts;
mod properties;
mod queue;
mod read_buffer;
mod replay;
mod run;
mod slow;
mod ssd;
mod write_cache;
