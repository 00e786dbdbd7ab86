//! What is impossible in an array.

use super::description::ArrayDescription;
use crate::drive::Fault;

/// Checks a description; whatever passes can be simulated.
///
/// # Errors
/// The first field whose value is impossible, and what is allowed.
pub fn check(array: &ArrayDescription) -> Result<(), Fault> {
    for device in &array.devices {
        device.check()?;
    }
    Ok(())
}
