//! Full descriptions of systems, with every value that the models need, from
//! [`SystemDescription`](system::SystemDescription) down to zones and pages. No module here simulates.

pub mod adapter;
pub mod array;
pub mod device;
pub mod drive;
pub mod level;
pub mod link;
pub mod model;
pub mod policy;
pub mod pool;
pub mod power;
pub mod ssd;
pub mod stack;
pub mod system;
pub mod volume;
