//! Workloads: requests to a system and their arrival times. See docs/design/requests-and-time.md.
//!
//! A [`Workload`] combines an [`AccessSpecification`] (sizes, kinds and randomness, as in Iometer), a distribution of
//! [`Addresses`], [`Arrivals`] in a closed or open loop, and the length of a run. A [`Generator`] converts the workload
//! to [`Request`]s on a [`Span`] of a system, and an [`ArrivalClock`] returns the intended arrival times of an open
//! loop.
//!
//! A [`Scenario`] combines several kinds of clients, each with its own LUN and range: processes, users of a web server,
//! booting guests, video, transactions. A [`ScenarioRun`] returns the next step of each client.
//!
//! All descriptions in the project are read with [`Document`], whose errors name file, line and key. All quantities
//! with units are parsed with [`quantity`].

#![deny(clippy::wildcard_enum_match_arm)] // A new variant does not compile until every match handles it.

mod access;
mod addresses;
mod arrivals;
pub mod document;
mod error;
mod generator;
mod hotband;
mod places;
mod popularity;
pub mod quantity;
mod random;
mod renamed;
mod request;
pub mod scenario;
mod span;
#[cfg(test)]
mod statistics;
mod workload;

pub use access::{AccessLine, AccessSpecification};
pub use addresses::{Addresses, Band};
pub use arrivals::{ArrivalClock, ArrivalProcess, Arrivals, QUEUE_DEPTH_MAX, RunLength, Think, WarmUp};
pub use document::{Document, InputError};
pub use error::WorkloadError;
pub use generator::Generator;
pub use places::Places;
pub use popularity::Popularity;
pub use quantity::{Bytes, DurationNs, QuantityError, Rate, Rpm};
pub use random::{AliasTable, GENERATOR_NAME, Permutation, Purpose, Random};
pub use renamed::{current_column, current_key, take_notes_of_renamed_keys};
pub use request::{Kind, Recorded, Request};
pub use scenario::{Scenario, ScenarioRun, Step};
pub use span::Span;
pub use workload::{LoopLength, Sequence, Workload};
