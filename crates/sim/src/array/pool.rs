//! Blocks that are placed when they are first written.

use serde::{Deserialize, Serialize};

/// A pool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PoolDescription {}
