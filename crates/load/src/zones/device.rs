//! Queries, resets and finishes zones of a zoned device.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use super::zone_table::{Zone, ZoneKind};

/// `linux/blkzoned.h`: `_IOWR(0x12, 130, 16)`, `_IOW(0x12, 131, 16)`, `_IOW(0x12, 136, 16)`.
const BLKREPORTZONE: libc::c_ulong = 0xc010_1282;
const BLKRESETZONE: libc::c_ulong = 0x4010_1283;
const BLKFINISHZONE: libc::c_ulong = 0x4010_1288;
/// `BLK_ZONE_REP_CAPACITY`: the report contains capacities (Linux 5.9).
const HAS_CAPACITY: u32 = 1;
/// `enum blk_zone_type`.
const CONVENTIONAL: u8 = 1;
/// `enum blk_zone_cond`.
const IMPLICITLY_OPEN: u8 = 2;
const CLOSED: u8 = 4;
const READ_ONLY: u8 = 0xd;
const FULL: u8 = 0xe;
const OFFLINE: u8 = 0xf;
/// Unit of the kernel's numbers, in bytes, for any block size.
const SECTOR_BYTES: u64 = 512;
/// Number of zones per report, which takes 16 KiB.
const ZONES_AT_ONCE: usize = 256;

/// `struct blk_zone`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct RawZone {
    start: u64,
    length: u64,
    pointer: u64,
    kind: u8,
    condition: u8,
    rest: [u8; 6],
    capacity: u64,
    reserved: [u64; 3],
}

/// `struct blk_zone_report`, with room for [`ZONES_AT_ONCE`] zones.
#[repr(C)]
struct Report {
    sector: u64,
    count: u32,
    flags: u32,
    zones: [RawZone; ZONES_AT_ONCE],
}

/// Returns the zones of a device.
pub(super) fn report(device: &File) -> io::Result<Vec<Zone>> {
    let mut zones = Vec::new();
    let mut from = 0;
    loop {
        let (reported, next) = report_from(device, from, ZONES_AT_ONCE)?;
        if reported.is_empty() {
            return Ok(zones);
        }
        zones.extend(reported);
        from = next;
    }
}

/// Returns the zone that begins at an offset.
pub(super) fn report_one(device: &File, start_bytes: u64) -> io::Result<Zone> {
    let (zones, _) = report_from(device, start_bytes / SECTOR_BYTES, 1)?;
    zones.into_iter().next().ok_or_else(|| io::Error::other("the device reports no zone there"))
}

fn report_from(device: &File, sector: u64, count: usize) -> io::Result<(Vec<Zone>, u64)> {
    let none = RawZone::default();
    let mut report = Box::new(Report { sector, count: count as u32, flags: 0, zones: [none; ZONES_AT_ONCE] });
    // SAFETY: the kernel writes at most `count` zones after the header.
    if unsafe { libc::ioctl(device.as_raw_fd(), BLKREPORTZONE as _, &raw mut *report) } == -1 {
        return Err(io::Error::last_os_error());
    }
    let reported = &report.zones[..(report.count as usize).min(count)];
    let next = reported.last().map_or(sector, |zone| zone.start + zone.length);
    let has_capacity = report.flags & HAS_CAPACITY != 0;
    Ok((reported.iter().map(|zone| read(zone, has_capacity)).collect(), next))
}

fn read(raw: &RawZone, has_capacity: bool) -> Zone {
    let capacity = if has_capacity { raw.capacity } else { raw.length };
    let start_bytes = raw.start * SECTOR_BYTES;
    let capacity_end_bytes = start_bytes + capacity * SECTOR_BYTES;
    let kind = match (raw.kind, raw.condition) {
        (_, READ_ONLY | OFFLINE) => ZoneKind::Lost,
        (CONVENTIONAL, _) => ZoneKind::Conventional,
        _ => ZoneKind::Sequential,
    };
    let pointer_bytes = match (kind, raw.condition) {
        (ZoneKind::Conventional, _) | (_, FULL) => capacity_end_bytes,
        (ZoneKind::Lost, _) => start_bytes,
        // The device's write pointer is undefined for a zone that is not open.
        (ZoneKind::Sequential, _) => (raw.pointer * SECTOR_BYTES).clamp(start_bytes, capacity_end_bytes),
    };
    let is_open = kind == ZoneKind::Sequential && (IMPLICITLY_OPEN..=CLOSED).contains(&raw.condition);
    Zone { kind, start_bytes, pointer_bytes, capacity_end_bytes, is_open, is_busy: false, job: 0 }
}

/// Resets a zone.
pub(super) fn reset(device: &File, start_bytes: u64, length_bytes: u64) -> io::Result<()> {
    act(device, BLKRESETZONE, start_bytes, length_bytes)
}

/// Finishes a zone, which makes it full.
pub(super) fn finish(device: &File, start_bytes: u64, length_bytes: u64) -> io::Result<()> {
    act(device, BLKFINISHZONE, start_bytes, length_bytes)
}

fn act(device: &File, request: libc::c_ulong, start_bytes: u64, length_bytes: u64) -> io::Result<()> {
    let range = [start_bytes / SECTOR_BYTES, length_bytes / SECTOR_BYTES];
    // SAFETY: the kernel reads a `struct blk_zone_range`, which consists of two numbers.
    match unsafe { libc::ioctl(device.as_raw_fd(), request as _, range.as_ptr()) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}
