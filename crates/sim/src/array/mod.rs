//! Arrays of drives.

pub mod pool;
