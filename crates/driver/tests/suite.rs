//! Drivers in virtual time, by a clock that a test turns by hand.

mod ends;
mod loops;
mod scenario;
