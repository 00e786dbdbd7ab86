//! Descriptions of systems, fully resolved: every number that the models need, without defaults. From
//! [`SystemDescription`](system::SystemDescription) down to zones and pages, independent of the simulation.

pub mod adapter;
pub mod array;
pub mod device;
pub mod drive;
pub mod level;
pub mod link;
pub mod model;
pub mod pool;
pub mod power;
pub mod ssd;
pub mod system;
pub mod volume;
