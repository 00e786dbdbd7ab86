//! Which request comes next in a closed loop, an open loop or a scenario: one logic for virtual and for real time.
//!
//! A driver knows no system and no clock. It counts nanoseconds since its start, says when something is due next, gives what
//! is due, and is told what is complete. Recordings have a driver of their own, the player of `headstack-replay`.

mod end;
mod issue;
mod scenario;

pub use end::End;
pub use issue::{ClientIssue, Owner};
pub use scenario::{Clients, ClientsReport};
