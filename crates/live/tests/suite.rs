//! Tests of live exports: faults, power, memory and protocol, one subject per file.

mod common;
mod cut_states;
mod damage;
mod fault_sessions;
mod faults;
mod journal;
mod media_faults;
mod members;
mod memory;
mod nbd;
mod power;
mod schedules;
mod smart;
mod stamping;
mod triggers;
