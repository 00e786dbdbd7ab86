//! Live exports: their faults, power, memory and protocol, one matter a file.

mod common;
mod damage;
mod fault_sessions;
mod faults;
mod journal;
mod media_faults;
mod memory;
mod nbd;
mod power;
mod schedules;
mod smart;
mod stamping;
mod triggers;
