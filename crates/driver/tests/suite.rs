//! Tests of drivers in virtual time, on a clock that the tests advance.

mod ends;
mod loops;
mod scenario;
