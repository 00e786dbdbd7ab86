//! The later pass over a target: everything written is read and judged.

use std::sync::Arc;

use headstack_workload::{Kind, Request};

use crate::LoadError;
use crate::buffers::Buffers;
use crate::engine::carry_out;
use crate::ground::Ground;
use crate::integrity::{self, Layout};
use crate::target::Target;

/// Bytes of one read of a pass.
const READ_BYTES: u32 = 1 << 20;
/// Reads from the begin of a target, and then places spread over it, at which stamps are looked for.
const LOOKED_AT_FIRST: u64 = 64;
const LOOKED_AT: u64 = 1024;

/// How an earlier run divided a target, and its number, as the first stamps that are found say.
///
/// # Errors
/// When there is no memory.
pub(crate) fn recognise(target: &Arc<Target>) -> Result<Option<(Layout, u64)>, LoadError> {
    let block_bytes = Target::common_block_bytes(std::slice::from_ref(target));
    let ground = Ground::of(std::slice::from_ref(target), block_bytes);
    let capacity_bytes = ground.capacity_bytes();
    let allocated = Buffers::new(1, READ_BYTES, true);
    let mut buffers =
        allocated.map_err(|source| LoadError::Io { target: target.name().to_owned(), action: "allocate", source })?;
    let reads = capacity_bytes.div_ceil(u64::from(READ_BYTES));
    let first = LOOKED_AT_FIRST.min(reads);
    let spread = (0..LOOKED_AT.min(reads - first)).map(|at| {
        first + (u128::from(reads - first) * u128::from(at) / u128::from(LOOKED_AT.min(reads - first))) as u64
    });
    for read in (0..first).chain(spread) {
        let offset_bytes = read * u64::from(READ_BYTES);
        let length_bytes = u64::from(READ_BYTES).min(capacity_bytes - offset_bytes) as u32;
        let request =
            Request { kind: Kind::Read, offset_bytes, length_bytes, force_unit_access: false, ordered: false };
        // SAFETY: the only request in the only buffer.
        let result = unsafe { carry_out(&ground, &request, &buffers.memory(0, length_bytes)) };
        // What cannot be read has no stamps to tell.
        let Ok(length_bytes) = u32::try_from(result) else { continue };
        let found = integrity::recognise(capacity_bytes, offset_bytes, buffers.slice(0, length_bytes));
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}
