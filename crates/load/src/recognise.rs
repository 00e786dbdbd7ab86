//! Finds stamps of an earlier run on a target of which nothing else is known.

use std::sync::Arc;

use headstack_workload::{Kind, Request};

use crate::LoadError;
use crate::buffers::{Buffers, Memory};
use crate::engine::carry_out;
use crate::integrity::{self, Layout};
use crate::target::Target;
use crate::target_map::TargetMap;

/// Length of a read of a full pass, in bytes, unless units are longer.
pub(crate) const READ_BYTES: u32 = 1 << 20;
/// Number of reads at the start of a target that are searched for stamps, and then of reads at offsets spread over it.
const LOOKED_AT_FIRST: u64 = 64;
const LOOKED_AT: u64 = 1024;

/// Returns a read of `length_bytes` at `offset_bytes`.
pub(crate) fn read((offset_bytes, length_bytes): (u64, u32)) -> Request {
    Request { kind: Kind::Read, offset_bytes, length_bytes, force_unit_access: false, ordered: false }
}

/// Reads with a system call outside of the measurement. Returns the number of bytes read, or `None` if the read failed.
pub(crate) fn read_now(map: &TargetMap, offset_bytes: u64, buffer: &mut [u8]) -> Option<u32> {
    let length_bytes = u32::try_from(buffer.len()).ok()?;
    let memory = Memory::One(buffer.as_mut_ptr());
    // SAFETY: the memory is borrowed exclusively until the call returns.
    let result = unsafe { carry_out(map, &read((offset_bytes, length_bytes)), &memory) };
    u32::try_from(result).ok()
}

/// Returns the layout and the number of an earlier run, taken from the first stamps found.
///
/// # Errors
/// Returns an error if there is not enough memory.
pub(crate) fn recognise(target: &Arc<Target>) -> Result<Option<(Layout, u64)>, LoadError> {
    let targets = std::slice::from_ref(target);
    let map = TargetMap::of(targets, Target::common_block_bytes(targets));
    let capacity_bytes = map.capacity_bytes();
    let failed = |source| LoadError::Io { target: target.name().to_owned(), action: "allocate", source };
    let mut buffers = Buffers::new(1, READ_BYTES, true).map_err(failed)?;
    let reads = capacity_bytes.div_ceil(u64::from(READ_BYTES));
    let first = LOOKED_AT_FIRST.min(reads);
    let places = LOOKED_AT.min(reads - first);
    let place = |at: u64| (u128::from(reads - first) * u128::from(at) / u128::from(places.max(1))) as u64;
    for at in (0..first).chain((0..places).map(|at| first + place(at))) {
        let offset_bytes = at * u64::from(READ_BYTES);
        let length_bytes = u64::from(READ_BYTES).min(capacity_bytes - offset_bytes) as u32;
        // An unreadable block has no stamps, so it is skipped.
        let Some(length_bytes) = read_now(&map, offset_bytes, buffers.slice(0, length_bytes)) else { continue };
        let found = integrity::recognise(capacity_bytes, offset_bytes, buffers.slice(0, length_bytes));
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}
