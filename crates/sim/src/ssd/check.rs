//! [`check`]: the requirements on a description before it is compiled.

use headstack_workload::Addresses;

use super::layout::FlashLayout;
use super::map_cache::MAP_PAGE_BYTES;
use crate::description::ssd::{FlashState, Medium, SsdDescription};
use crate::error::{InvalidDescription, require};

/// Checks a description.
///
/// # Errors
/// The first impossible field.
pub fn check(description: &SsdDescription) -> Result<(), InvalidDescription> {
    check_flash(description)?;
    check_units(description)?;
    check_medium(description)?;
    check_speeds(description)?;
    description.power.map_or(Ok(()), |power| power.check())?;
    check_space(description)?;
    check_state(description)
}

/// Maximum number of blocks of skewed overwrites in a mapping unit, each of which is looked up.
const BLOCKS_PER_UNIT_MAX: u64 = 256;

fn check_state(description: &SsdDescription) -> Result<(), InvalidDescription> {
    let FlashState::Skewed(writes) = &description.state else { return Ok(()) };
    let is_skewed =
        matches!(writes.addresses, Addresses::Zipf { .. } | Addresses::Pareto { .. } | Addresses::HotBands(_));
    require(is_skewed, "state.skewed.addresses", || "only zipf, pareto and hot_bands are skewed".to_owned())?;
    writes
        .addresses
        .validate()
        .map_err(|(key, message)| InvalidDescription { key: format!("state.skewed.{key}"), message })?;
    let Some(blocks) = writes.blocks else { return Ok(()) };
    let unit = u64::from(description.capacity.mapping_unit_bytes);
    require(
        blocks.step_bytes > 0 && unit / blocks.step_bytes <= BLOCKS_PER_UNIT_MAX,
        "state.skewed.blocks.step_bytes",
        || format!("{} bytes; at most {BLOCKS_PER_UNIT_MAX} blocks in a mapping unit are allowed", blocks.step_bytes),
    )?;
    let end = blocks.count.checked_mul(blocks.step_bytes).and_then(|bytes| bytes.checked_add(blocks.first_bytes));
    let is_inside = end.is_some_and(|end| end <= description.capacity.logical_bytes);
    require(blocks.count > 0 && is_inside, "state.skewed.blocks.count", || {
        format!("{} blocks; 1 to what the drive holds are allowed", blocks.count)
    })
}

fn check_range(key: &str, value: u32, max: u32) -> Result<(), InvalidDescription> {
    require((1..=max).contains(&value), key, || format!("{value}; 1 to {max} are allowed"))
}

fn check_flash(description: &SsdDescription) -> Result<(), InvalidDescription> {
    let flash = &description.flash;
    check_range("flash.channels", flash.channels, 256)?;
    check_range("flash.dies_per_channel", flash.dies_per_channel, 256)?;
    check_range("flash.planes_per_die", flash.planes_per_die, 16)?;
    check_range("flash.blocks_per_plane", flash.blocks_per_plane, 1 << 20)?;
    check_range("flash.pages_per_block", flash.pages_per_block, 1 << 16)?;
    check_range("flash.page_bytes", flash.page_bytes, 1 << 20)?;
    check_range("flash.pages_per_program", flash.pages_per_program, 8)?;
    check_range("interface.queue_depth", description.interface.queue_depth, 1 << 20)
}

fn check_units(description: &SsdDescription) -> Result<(), InvalidDescription> {
    let capacity = &description.capacity;
    let (block, unit, page) = (capacity.logical_block_bytes, capacity.mapping_unit_bytes, description.flash.page_bytes);
    require(matches!(block, 512 | 4096), "capacity.logical_block_bytes", || {
        format!("{block} bytes; 512 and 4096 are allowed")
    })?;
    require(unit.is_power_of_two() && unit >= block, "capacity.mapping_unit_bytes", || {
        format!("{unit} bytes; powers of two from a logical block ({block} bytes) on are allowed")
    })?;
    let row = u64::from(page) * u64::from(description.flash.planes_per_die);
    require(
        page.is_multiple_of(unit) || (unit.is_multiple_of(page) && row.is_multiple_of(u64::from(unit))),
        "flash.page_bytes",
        || {
            format!(
                "{page} bytes; a multiple of the mapping unit ({unit} bytes), or a part of it that a row has several of, is allowed"
            )
        },
    )?;
    let bytes = capacity.logical_bytes;
    require(bytes > 0 && bytes.is_multiple_of(u64::from(unit)), "capacity.logical_bytes", || {
        format!("{bytes} bytes; a multiple of the mapping unit ({unit} bytes) above 0 is allowed")
    })?;
    // Map entries have 32 bits: a place in the flash, a place in the write buffer, nowhere, or not decided yet.
    let entries =
        (description.raw_bytes() / u64::from(unit)).saturating_add(description.buffer.bytes / u64::from(unit));
    require(entries < u64::from(u32::MAX) - 1, "capacity.mapping_unit_bytes", || {
        format!("{unit} bytes make {entries} units of flash and buffer; at most 4,294,967,293 are allowed")
    })
}

/// Checks the parts that only flash has. A unit that is overwritten in place is a row of its own.
fn check_medium(description: &SsdDescription) -> Result<(), InvalidDescription> {
    match description.medium {
        Medium::Flash => Ok(()),
        Medium::XPoint => {
            require(description.slc_cache.is_none(), "slc_cache", || "3D XPoint has no SLC cache".to_owned())?;
            let (row, unit) = (description.row_bytes(), description.capacity.mapping_unit_bytes);
            require(row == unit, "flash.page_bytes", || {
                format!("a die of 3D XPoint accesses {row} bytes; the mapping unit, {unit} bytes, is allowed")
            })?;
            let pages = description.flash.pages_per_program;
            require(pages == 1, "flash.pages_per_program", || format!("{pages}; 1 is allowed for 3D XPoint"))
        }
    }
}

fn check_speeds(description: &SsdDescription) -> Result<(), InvalidDescription> {
    let timing = &description.timing;
    for (key, ns_per_byte) in [
        ("timing.channel_ns_per_byte", timing.channel_ns_per_byte),
        ("interface.read_ns_per_byte", description.interface.read_ns_per_byte),
        ("interface.write_ns_per_byte", description.interface.write_ns_per_byte),
        ("controller.read_ns_per_byte", description.controller.read_ns_per_byte),
        ("controller.write_ns_per_byte", description.controller.write_ns_per_byte),
    ] {
        require((0.0..=1e6).contains(&ns_per_byte), key, || format!("{ns_per_byte} ns; 0 to 1,000,000 are allowed"))?;
    }
    let slc = &description.slc_cache;
    const HOUR_NS: u64 = 3_600_000_000_000;
    for (key, ns) in [
        ("timing.read_ns", timing.read_ns),
        ("timing.program_ns", timing.program_ns),
        ("timing.erase_ns", timing.erase_ns),
        ("timing.suspend_ns", timing.suspend_ns.unwrap_or(0)),
        ("timing.suspend_spread_ns", timing.suspend_spread_ns),
        ("timing.resume_ns", timing.resume_ns),
        ("buffer.flush_ns", description.buffer.flush_ns),
        ("buffer.map_update_ns", description.buffer.map_update_ns),
        ("controller.command_ns", description.controller.command_ns),
        ("controller.command_interval_ns", description.controller.command_interval_ns),
        ("controller.write_command_ns", description.controller.write_command_ns),
        ("controller.write_interval_ns", description.controller.write_interval_ns),
        ("slc_cache.read_ns", slc.map_or(0, |slc| slc.read_ns)),
        ("slc_cache.program_ns", slc.map_or(0, |slc| slc.program_ns)),
        ("slc_cache.idle_ns", slc.and_then(|slc| slc.idle_ns).unwrap_or(0)),
    ] {
        require(ns <= HOUR_NS, key, || format!("{ns} ns; at most an hour is allowed"))?;
    }
    check_range("timing.suspensions_max", timing.suspensions_max, u32::MAX)?;
    check_range("buffer.flushes_per_map_update", description.buffer.flushes_per_map_update, u32::MAX)?;
    let bits = slc.map_or(2, |slc| slc.bits_per_cell);
    require((2..=5).contains(&bits), "slc_cache.bits_per_cell", || format!("{bits}; 2 to 5 are allowed"))?;
    if let Some(map) = description.controller.map_cache_bytes {
        let (least, most) = (MAP_PAGE_BYTES, 1 << 40);
        require((least..=most).contains(&map), "controller.map_cache_bytes", || {
            format!("{map} bytes; {least} to {most} are allowed")
        })?;
    }
    check_range("timing.reads_ahead_max", timing.reads_ahead_max, u32::MAX)
}

fn check_space(description: &SsdDescription) -> Result<(), InvalidDescription> {
    let reserve = description.collection.free_blocks_min;
    check_range("collection.free_blocks_min", reserve, 1 << 20)?;
    require(reserve >= 2, "collection.free_blocks_min", || "1; 2 or more are allowed".to_owned())?;
    let blocks = description.flash.blocks_per_plane;
    // Two more are open: one for the host's data and one for moved data.
    require(blocks > reserve + 2, "flash.blocks_per_plane", || {
        format!("{blocks} blocks; {reserve} are kept free and 2 open, so {} or more are allowed", reserve + 3)
    })?;
    let row = u64::from(description.row_bytes());
    let buffer = description.buffer.bytes;
    // Otherwise every row could wait for the last one of its program.
    let rows = 2 + u64::from(description.dies()) * u64::from(description.flash.pages_per_program - 1);
    require(buffer >= rows * row, "buffer.bytes", || {
        format!("{buffer} bytes; {rows} rows of a page of each plane, {} bytes, or more are allowed", rows * row)
    })?;
    let layout = FlashLayout::new(description);
    let logical = description.capacity.logical_bytes;
    if !description.medium.is_flash() {
        let raw = description.raw_bytes();
        return require(logical <= raw, "capacity.logical_bytes", || {
            format!("{logical} bytes; at most the memory, {raw} bytes, is allowed")
        });
    }
    let set_aside = layout.slc_static_blocks;
    require(set_aside < blocks - reserve - 2, "slc_cache.static_bytes", || {
        format!("it takes {set_aside} blocks of each plane; fewer than {} are allowed", blocks - reserve - 2)
    })?;
    let usable = u64::from(layout.usable_units()) * u64::from(layout.dies) * u64::from(layout.unit_bytes);
    require(logical < usable, "capacity.logical_bytes", || {
        format!("{logical} bytes leave no over-provisioning; {usable} bytes are in blocks neither free nor open")
    })?;
    require(logical.saturating_add(buffer) < usable, "buffer.bytes", || {
        format!("{buffer} bytes; less than the over-provisioning, {} bytes, is allowed", usable - logical)
    })
}
