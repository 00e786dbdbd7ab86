//! Descriptions of systems, fully resolved: every number that the models need, so that they guess none. From
//! [`SystemDescription`](system::SystemDescription) down to zones and pages; no module here simulates.

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
