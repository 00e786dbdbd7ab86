//! What systems are described by, fully resolved: every number that the models need, and none that they must guess. From
//! [`SystemDescription`](system::SystemDescription) down to zones and pages, below everything that simulates.

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
