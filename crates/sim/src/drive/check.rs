//! [`check`]: the requirements on a description before it is compiled.

use super::geometry::zone_blocks;
use crate::description::drive::{BlockOrder, DriveDescription, Geometry, SeekCurve, Sparing, Zone};
use crate::error::{InvalidDescription, fault, require};

/// Checks a description.
///
/// # Errors
/// The first impossible field.
pub fn check(description: &DriveDescription) -> Result<(), InvalidDescription> {
    check_geometry(&description.geometry)?;
    check_mechanics(description)?;
    check_electronics(description)?;
    check_slow(description)?;
    check_flash_cache(description)?;
    check_media_cache(description)?;
    check_actuators(description)?;
    description.power.map_or(Ok(()), |power| power.check())
}

fn check_geometry(geometry: &Geometry) -> Result<(), InvalidDescription> {
    let (logical, physical) = (geometry.logical_block_bytes, geometry.physical_sector_bytes);
    require(
        matches!((logical, physical), (512, 512) | (512, 4096) | (4096, 4096)),
        "capacity.physical_sector",
        || {
            format!(
                "{logical}-byte blocks on {physical}-byte sectors; allowed: 512 on 512 (512n), 512 on 4096 (512e), 4096 on 4096 (4Kn)"
            )
        },
    )?;
    require((1..=1024).contains(&geometry.heads), "geometry.heads", || {
        format!("{} heads; 1 to 1024 are allowed", geometry.heads)
    })?;
    require((1..=8_000_000).contains(&geometry.cylinders), "geometry.cylinders", || {
        format!("{} cylinders; 1 to 8,000,000 are allowed", geometry.cylinders)
    })?;
    require((1..=255).contains(&geometry.zones.len()), "geometry.zones", || {
        format!("{} zones; 1 to 255 are allowed", geometry.zones.len())
    })?;
    if let BlockOrder::SurfaceSerpentine { band_cylinders: 0 } = geometry.order {
        return fault("geometry.order", "a band of 0 cylinders; 1 or more are allowed");
    }
    if let Sparing::RangeEnd { cylinders: 0 } = geometry.sparing {
        return fault("geometry.sparing", "a range of 0 cylinders; 1 or more are allowed");
    }
    let mut next = 0;
    for (index, zone) in geometry.zones.iter().enumerate() {
        check_zone(geometry, index, zone, next)?;
        next = zone.last_cylinder + 1;
    }
    let held: u64 = (0..geometry.zones.len()).map(|zone| zone_blocks(geometry, zone)).sum();
    let held = held * u64::from(physical / logical);
    require(geometry.logical_blocks >= 1 && geometry.logical_blocks <= held, "capacity.logical_blocks", || {
        format!("{} blocks; the zones hold {held}, so 1 to {held} are allowed", geometry.logical_blocks)
    })
}

fn check_zone(geometry: &Geometry, index: usize, zone: &Zone, next: u32) -> Result<(), InvalidDescription> {
    let key = |field: &str| format!("geometry.zones[{index}].{field}");
    require(zone.first_cylinder >= next, &key("first_cylinder"), || {
        format!("cylinder {} belongs to the previous zone; {next} or more is allowed", zone.first_cylinder)
    })?;
    require(
        zone.last_cylinder >= zone.first_cylinder && zone.last_cylinder < geometry.cylinders,
        &key("last_cylinder"),
        || {
            format!(
                "cylinder {}; {} to {} are allowed",
                zone.last_cylinder,
                zone.first_cylinder,
                geometry.cylinders - 1
            )
        },
    )?;
    require((1..=1_000_000).contains(&zone.sectors_per_track), &key("sectors_per_track"), || {
        format!("{} sectors; 1 to 1,000,000 are allowed", zone.sectors_per_track)
    })?;
    for (field, turns) in [
        ("offset_turns", zone.offset_turns),
        ("track_skew_turns", zone.track_skew_turns),
        ("cylinder_skew_turns", zone.cylinder_skew_turns),
    ] {
        require(turns.is_finite() && turns.abs() < 1e6, &key(field), || {
            format!("{turns} turns; a finite number is allowed")
        })?;
    }
    let cylinders = u64::from(zone.last_cylinder - zone.first_cylinder) + 1;
    let tracks = cylinders * u64::from(geometry.heads);
    let track = u64::from(zone.sectors_per_track);
    let spares = u64::from(zone.spares);
    let region = match geometry.sparing {
        Sparing::None => u64::MAX,
        Sparing::TracksAtZoneEnd => tracks,
        Sparing::TrackEnd => track,
        Sparing::CylinderEnd
        | Sparing::CylinderEndSlipsApart
        | Sparing::CylinderFront
        | Sparing::CylinderFrontSlipsApart => track * u64::from(geometry.heads),
        Sparing::RangeEnd { cylinders } => track * u64::from(geometry.heads) * u64::from(cylinders),
        Sparing::DiskEnd | Sparing::ZoneEnd | Sparing::ZoneEndSlipsApart => tracks * track,
    };
    require(spares < region, &key("spares"), || format!("{spares} spares in a region of {region}"))?;
    let places = if geometry.sparing == Sparing::TracksAtZoneEnd { tracks } else { tracks * track };
    let ascending = zone.slips.windows(2).all(|pair| pair[0] < pair[1]);
    require(ascending && zone.slips.last().is_none_or(|&slip| slip < places), &key("slips"), || {
        format!("slips must ascend and stay below {places}")
    })?;
    require(slips_have_spares(geometry.sparing, zone, region, places), &key("slips"), || {
        format!("more slips than spares in a region; up to {spares} are allowed")
    })?;
    let ascending = zone.remaps.windows(2).all(|pair| pair[0].0 < pair[1].0);
    let inside = zone.remaps.iter().all(|&(defect, spare)| defect < places && spare < places);
    require(ascending && inside, &key("remaps"), || format!("remaps must ascend and stay below {places}"))?;
    require(zone_blocks(geometry, index) > 0, &key("reserved_sectors"), || "nothing is left for data".to_owned())
}

/// Whether each region has enough spares for its slips, where slips use them (`region` of the zone's `places`): data
/// pushed further would be on the spares of the next region, or outside the zone.
fn slips_have_spares(sparing: Sparing, zone: &Zone, region: u64, places: u64) -> bool {
    match sparing {
        Sparing::None => zone.slips.is_empty(),
        Sparing::CylinderEndSlipsApart | Sparing::CylinderFrontSlipsApart => true,
        Sparing::ZoneEndSlipsApart | Sparing::DiskEnd => true,
        Sparing::TracksAtZoneEnd
        | Sparing::CylinderEnd
        | Sparing::TrackEnd
        | Sparing::CylinderFront
        | Sparing::RangeEnd { .. }
        | Sparing::ZoneEnd => zone.slips.chunk_by(|a, b| a / region == b / region).all(|slips| {
            // A range cut short by the zone's end has no spares.
            let is_whole = (slips[0] / region + 1) * region <= places;
            is_whole && slips.len() <= zone.spares as usize
        }),
    }
}

fn check_mechanics(description: &DriveDescription) -> Result<(), InvalidDescription> {
    let mechanics = &description.mechanics;
    // Below 224 rpm the fixed-point product of an angle and the time of a turn overflows.
    require((300.0..=100_000.0).contains(&mechanics.rpm), "spindle.speed", || {
        format!("{} rpm; 300 to 100,000 are allowed", mechanics.rpm)
    })?;
    const TEN_SECONDS_NS: u64 = 10_000_000_000;
    let sane = |ns: u64| ns < TEN_SECONDS_NS;
    let curve = match &mechanics.seek {
        SeekCurve::Constant(ns) => sane(*ns),
        SeekCurve::Points(points) => {
            !points.is_empty()
                && points[0].0 > 0
                && points.windows(2).all(|pair| pair[0].0 < pair[1].0)
                && points.iter().all(|&(_, ns)| sane(ns))
        }
        SeekCurve::TwoPiece { short_ns, short_ns_per_sqrt, long_ns, long_ns_per_cylinder, first_ns, .. } => {
            [short_ns, short_ns_per_sqrt, long_ns, long_ns_per_cylinder]
                .iter()
                .all(|value| value.is_finite() && **value >= 0.0 && **value < 1e10)
                && first_ns.iter().all(|&ns| sane(ns))
        }
        SeekCurve::ThreeParameter { minimum_ns, average_ns, maximum_ns } => {
            minimum_ns <= average_ns && average_ns <= maximum_ns && sane(*maximum_ns)
        }
    };
    require(curve, "seek", || {
        "distances must ascend from 1, times lie between 0 and 10 s, and minimum <= average <= maximum".to_owned()
    })?;
    require(sane(mechanics.head_switch_ns), "seek.head_switch", || "0 to 10 s are allowed".to_owned())?;
    for (key, ns) in [("seek.read_settle", mechanics.read_settle_ns), ("seek.write_settle", mechanics.write_settle_ns)]
    {
        require(ns.unsigned_abs() < 1_000_000_000, key, || format!("{ns} ns; -1 s to 1 s are allowed"))?;
    }
    Ok(())
}

fn check_electronics(description: &DriveDescription) -> Result<(), InvalidDescription> {
    let (queue, buffer) = (&description.queue, &description.buffer);
    let interface = &description.interface;
    require((1..=65_536).contains(&queue.depth), "queue.depth", || {
        format!("{}; 1 (no queueing) to 65,536 are allowed", queue.depth)
    })?;
    require((0.0..=1.0).contains(&queue.reordering_strength), "queue.reordering_strength", || {
        format!("{}; 0 (FCFS) to 1 (the ideal policy) are allowed", queue.reordering_strength)
    })?;
    require((0.0..=256.0).contains(&queue.committed), "queue.committed", || {
        format!("{}; 0 to 256 commands are allowed", queue.committed)
    })?;
    require(queue.rotation_margin_ns < 1_000_000_000, "queue.rotation_margin", || "0 to 1 s are allowed".to_owned())?;
    require((0.0..=1.0).contains(&queue.age_weight), "queue.age_weight", || {
        format!("{}; 0 to 1 are allowed", queue.age_weight)
    })?;
    require(buffer.segments <= 65_536, "buffer.segments", || format!("{}; 0 to 65,536 are allowed", buffer.segments))?;
    require(buffer.segments == 0 || buffer.segment_sectors >= 1, "buffer.segment_sectors", || {
        "0; 1 or more are allowed where there are segments".to_owned()
    })?;
    require((1..=65_536).contains(&buffer.dirty_extents_max), "buffer.dirty_extents_max", || {
        format!("{}; 1 to 65,536 are allowed", buffer.dirty_extents_max)
    })?;
    require(buffer.dirty_sectors_max >= 1, "buffer.dirty_sectors_max", || "0; 1 or more are allowed".to_owned())?;
    for (share, field) in
        [(buffer.read_watermark, "buffer.read_watermark"), (buffer.write_watermark, "buffer.write_watermark")]
    {
        require((0.0..=1.0).contains(&share), field, || format!("{share}; 0 to 1 are allowed"))?;
    }
    for ns_per_byte in [interface.read_ns_per_byte, interface.write_ns_per_byte] {
        require((0.0..1e6).contains(&ns_per_byte), "interface.rate", || "the rate must be above 1 kB/s".to_owned())?;
    }
    require(interface.host_tags >= 1, "interface.host_tags", || "0; 1 or more are allowed".to_owned())
}

fn check_slow(description: &DriveDescription) -> Result<(), InvalidDescription> {
    let slow = &description.slow;
    if let Some(retries) = slow.retries {
        require((0.0..1.0).contains(&retries.probability), "slow.retries.probability", || {
            format!("{}; 0 up to (but not including) 1 is allowed", retries.probability)
        })?;
    }
    if let Some(process) = slow.recalibration {
        require(process.interval_ns > process.duration_ns, "slow.recalibration.interval", || {
            "too short; it must be longer than slow.recalibration.duration".to_owned()
        })?;
    }
    if let Some(scan) = slow.scan {
        require(scan.step_sectors >= 1 && scan.idle_ns >= 1, "slow.scan", || {
            "a step of 1 sector or more after 1 ns or more is allowed".to_owned()
        })?;
    }
    Ok(())
}

fn check_flash_cache(description: &DriveDescription) -> Result<(), InvalidDescription> {
    let Some(flash) = description.flash_cache else {
        return Ok(());
    };
    let sector = u64::from(description.geometry.physical_sector_bytes);
    let block = u64::from(flash.block_bytes);
    require(block > 0 && block.is_multiple_of(sector) && block <= 1 << 20, "flash_cache.block", || {
        format!("{block} bytes; whole sectors of {sector} bytes, up to 1 MiB, are allowed")
    })?;
    let capacity = description.geometry.logical_blocks * u64::from(description.geometry.logical_block_bytes);
    require(flash.size_bytes >= block && flash.size_bytes <= capacity, "flash_cache.size", || {
        format!("{} bytes; a block ({block}) up to the size of the drive ({capacity}) are allowed", flash.size_bytes)
    })?;
    require(flash.latency_ns < 1_000_000_000, "flash_cache.latency", || "0 to 1 s are allowed".to_owned())?;
    require((0.0..1e6).contains(&flash.ns_per_byte), "flash_cache.rate", || "it must be above 1 kB/s".to_owned())?;
    let fill = flash.fill_bytes_per_s;
    require(fill.is_finite() && fill >= 1.0, "flash_cache.fill_rate", || format!("{fill} B/s; 1 or more is allowed"))?;
    require((1..=1 << 28).contains(&flash.history_blocks), "flash_cache.history_blocks", || {
        format!("{}; 1 to 268,435,456 are allowed", flash.history_blocks)
    })
}

fn check_media_cache(description: &DriveDescription) -> Result<(), InvalidDescription> {
    let sector = u64::from(description.geometry.physical_sector_bytes);
    if let Some(shingles) = description.shingles {
        let band = shingles.band_bytes;
        require(band > 0 && band.is_multiple_of(sector) && band <= 1 << 30, "shingles.band", || {
            format!("{band} bytes; whole sectors of {sector} bytes, up to 1 GiB, are allowed")
        })?;
        require(description.media_cache.is_some(), "shingles", || {
            "a shingled drive needs a media_cache, since it cannot overwrite single blocks in place".to_owned()
        })?;
    }
    let Some(cache) = description.media_cache else {
        return Ok(());
    };
    let size = cache.size_bytes;
    require(size.is_multiple_of(sector) && size >= 64 * sector, "media_cache.size", || {
        format!("{size} bytes; whole sectors of {sector} bytes, 64 of them or more, are allowed")
    })?;
    let geometry = &description.geometry;
    let capacity = geometry.logical_blocks * u64::from(geometry.logical_block_bytes);
    require(size <= capacity, "media_cache.size", || {
        format!("{size} bytes; up to the size of the drive ({capacity}) are allowed")
    })?;
    let held: u64 = (0..geometry.zones.len()).map(|zone| zone_blocks(geometry, zone)).sum();
    let home = geometry.logical_blocks.div_ceil(sector / u64::from(geometry.logical_block_bytes));
    require(home.checked_add(size / sector).is_some_and(|both| both <= held), "media_cache.size", || {
        format!("{size} bytes; the zones hold {} bytes more than the drive exports", (held - home) * sector)
    })?;
    require((16..=1 << 28).contains(&cache.extents_max), "media_cache.extents_max", || {
        format!("{}; 16 to 268,435,456 are allowed", cache.extents_max)
    })?;
    require(cache.busy_share > 0.0 && cache.busy_share <= 1.0, "media_cache.busy_share", || {
        format!("{}; above 0, up to 1 is allowed", cache.busy_share)
    })?;
    require((sector..=size).contains(&cache.sweep_bytes), "media_cache.sweep", || {
        format!("{} bytes; a sector ({sector}) up to the size of the cache ({size}) are allowed", cache.sweep_bytes)
    })?;
    require((1..=4096).contains(&cache.sweep_window), "media_cache.sweep_window", || {
        format!("{}; 1 to 4,096 are allowed", cache.sweep_window)
    })
}

fn check_actuators(description: &DriveDescription) -> Result<(), InvalidDescription> {
    let (count, geometry) = (description.actuators, &description.geometry);
    require((1..=8).contains(&count), "actuators", || format!("{count}; 1 to 8 are allowed"))?;
    if count == 1 {
        return Ok(());
    }
    let timeout = description.power.and_then(|power| power.idle_timeout_ns);
    require(timeout.is_none(), "power.idle_timeout", || "a drive with several actuators never spins down".to_owned())?;
    require(geometry.heads.is_multiple_of(count), "actuators", || {
        format!("{} heads cannot be shared evenly by {count}", geometry.heads)
    })?;
    let blocks = u64::from(count) * u64::from(geometry.physical_sector_bytes / geometry.logical_block_bytes);
    require(geometry.logical_blocks.is_multiple_of(blocks), "actuators", || {
        format!("{} blocks cannot be shared evenly by {count}, in whole sectors", geometry.logical_blocks)
    })?;
    let alone = description.flash_cache.is_none() && description.media_cache.is_none();
    require(alone, "actuators", || format!("{count}; one is allowed with a flash_cache or a media_cache"))
}
