//! [`check`]: rejects impossible descriptions of arrays. Keys in errors are those of the TOML form.

use super::pool;
use crate::description::array::{
    ArrayDescription, Cache, Controller, Group, IncidentKind, Level, PartialParityLog, Prefill, Spindles,
};
use crate::description::device::DeviceDescription;
use crate::description::link::{LinkDescription, LinkKind};
use crate::description::ssd::FlashState;
use crate::error::InvalidDescription;
use crate::error::{fault, require};

/// Maximum number of members, and of links, of an array.
const MEMBERS_MAX: usize = 4096;
/// Maximum for counts such as commands in a member, destages and processors.
const COUNT_MAX: u32 = 65_536;
/// Maximum record size, as in OpenZFS.
const RECORD_BYTES_MAX: u64 = 16 << 20;
/// Maximum page size of a cache.
const PAGE_BYTES_MAX: u32 = 64 << 20;

/// Checks that an array can be simulated.
///
/// # Errors
/// Returns an error for the first impossible field, with its allowed values.
pub fn check(array: &ArrayDescription) -> Result<(), InvalidDescription> {
    for device in &array.devices {
        device.check()?;
        let is_skewed = matches!(device, DeviceDescription::Ssd(ssd) if matches!(ssd.state, FlashState::Skewed(_)));
        require(!is_skewed, "state", || {
            "skewed overwrites are for a drive alone: striping gives each drive other hot blocks; use steady".to_owned()
        })?;
    }
    require((1..=MEMBERS_MAX).contains(&array.members.len()), "drives", || {
        format!("{} drives are out of range; must be 1 to {MEMBERS_MAX}", array.members.len())
    })?;
    let tolerance = array.spindles.speed_tolerance;
    require((0.0..=Spindles::TOLERANCE_MAX).contains(&tolerance), "spindles.speed_tolerance", || {
        format!("{tolerance} is out of range; must be 0 to {}", Spindles::TOLERANCE_MAX)
    })?;
    check_links(array)?;
    check_members(array)?;
    for index in 0..array.groups.len() {
        check_group(array, index)?;
    }
    check_uses(array)?;
    check_luns(array)?;
    check_controller(array)?;
    array.controller.adapter.as_ref().map_or(Ok(()), crate::adapter::check)?;
    check_incidents(array)
}

fn check_links(array: &ArrayDescription) -> Result<(), InvalidDescription> {
    require(array.links.len() <= MEMBERS_MAX, "links", || {
        format!("{} links are too many; the maximum is {MEMBERS_MAX}", array.links.len())
    })?;
    for (index, link) in array.links.iter().enumerate() {
        let key = |field: &str| format!("links[{index}].{field}");
        let named = |what: &str| format!("link {:?}: {what}", link.name);
        require(!link.name.is_empty(), &key("name"), || "the name must not be empty".to_owned())?;
        let twice = array.links[..index].iter().any(|other| other.name == link.name);
        require(!twice, &key("name"), || named("the name is already used; each link must have a unique name"))?;
        let pace = link.ns_per_byte;
        require(pace.is_finite() && pace >= 0.0, &key("rate"), || {
            named(&format!("{pace} ns per byte is not allowed; must be a positive rate"))
        })?;
        check_attached(array, index, link)?;
    }
    for (place, &link) in array.host_links.iter().enumerate() {
        let again = array.host_links[..place].contains(&link);
        require((link as usize) < array.links.len() && !again, "host.links", || {
            format!("link {link} is unknown or listed twice; list each of the {} links at most once", array.links.len())
        })?;
    }
    Ok(())
}

/// Checks that a link is not shared by more drives than its kind allows.
fn check_attached(array: &ArrayDescription, index: usize, link: &LinkDescription) -> Result<(), InvalidDescription> {
    let room = match link.kind {
        LinkKind::Ata => 2,
        // Sixteen addresses, one of which the host adapter uses.
        LinkKind::Scsi => 15,
        // 127 addresses of an arbitrated loop, one of which the controller uses.
        LinkKind::FcLoop => 126,
        LinkKind::Sata | LinkKind::Sas | LinkKind::Pci | LinkKind::Ethernet | LinkKind::Mirror => usize::MAX,
    };
    let hangs = |ways: &[Vec<u32>]| ways.iter().flatten().any(|&hop| hop as usize == index);
    let attached = array.members.iter().filter(|member| hangs(&member.ways)).count();
    require(attached <= room, &format!("links[{index}]"), || {
        format!("{attached} drives on link {:?} are too many; the maximum is {room}", link.name)
    })
}

fn check_members(array: &ArrayDescription) -> Result<(), InvalidDescription> {
    for (index, member) in array.members.iter().enumerate() {
        let named = |what: &str| format!("drive {:?}: {what}", member.name);
        let twice = array.members[..index].iter().any(|other| other.name == member.name);
        require(!member.name.is_empty() && !twice, "drives", || named("each drive must have a unique name"))?;
        require((member.device as usize) < array.devices.len(), "drives", || {
            named(&format!("device {} is out of range; must be 0 to {}", member.device, array.devices.len() - 1))
        })?;
        require(member.ways.len() <= 8, "drives", || {
            named(&format!("{} paths to the controller are too many; the maximum is 8", member.ways.len()))
        })?;
        for way in &member.ways {
            let are_indices_valid = way.iter().all(|&hop| (hop as usize) < array.links.len());
            let once = (1..way.len()).all(|at| !way[..at].contains(&way[at]));
            require(are_indices_valid && once, "drives", || {
                named("a path must use each link at most once, and only links of the array")
            })?;
        }
    }
    Ok(())
}

fn check_group(array: &ArrayDescription, index: usize) -> Result<(), InvalidDescription> {
    let group = &array.groups[index];
    let key = |field: &str| format!("groups[{index}].{field}");
    let named = |what: String| format!("group {:?}: {what}", group.name);
    let twice = array.groups[..index].iter().any(|other| other.name == group.name);
    require(!group.name.is_empty() && !twice, &key("name"), || named("each group must have a unique name".to_owned()))?;
    for (field, members) in [("drives", &group.members), ("spares", &group.spares)] {
        require(members.iter().all(|&member| (member as usize) < array.members.len()), &key(field), || {
            named(format!("an index is out of range; must be 0 to {}", array.members.len() - 1))
        })?;
    }
    check_shape(group, &key)?;
    let block = array.device(group.members[0]).block_bytes();
    for &member in group.members.iter().chain(&group.spares) {
        let (device, name) = (array.device(member), &array.members[member as usize].name);
        require(device.block_bytes() == block, &key("drives"), || {
            named(format!(
                "drive {name:?} has blocks of {} bytes, others of {block}; all must have the same size",
                device.block_bytes()
            ))
        })?;
        require(group.member_bytes <= device.capacity_bytes(), &key("drive_size"), || {
            named(format!(
                "{} bytes of each drive are too many; {name:?} holds {}",
                group.member_bytes,
                device.capacity_bytes()
            ))
        })?;
    }
    check_stripes(group, u64::from(block), &key)?;
    if let Some(bitmap) = &group.bitmap {
        require(group.pool.is_none(), &key("bitmap"), || "a group with a pool has no bitmap; omit the key".to_owned())?;
        let chunk = bitmap.chunk_bytes;
        require(chunk > 0, &key("bitmap.chunk"), || "0 bytes is not allowed; must be more than 0".to_owned())?;
        require(bitmap.daemon_ns > 0, &key("bitmap.daemon"), || {
            "0ns is not allowed; must be more than 0ns".to_owned()
        })?;
    }
    check_ppl(array, index)?;
    check_pool(array, index)
}

/// Checks a partial parity log.
fn check_ppl(array: &ArrayDescription, index: usize) -> Result<(), InvalidDescription> {
    let group = &array.groups[index];
    let Some(ppl) = &group.ppl else {
        return Ok(());
    };
    let key = |field: &str| format!("groups[{index}].{field}");
    require(group.level == Level::Raid5 && group.spans == 1, &key("ppl"), || {
        format!("a partial parity log needs level raid5 with one span, not {}; omit the key", group.level)
    })?;
    let count = group.members.len();
    require(count <= PartialParityLog::MEMBERS_MAX, &key("ppl"), || {
        format!("a partial parity log on {count} drives is not allowed; must be up to 64")
    })?;
    for (field, is_set) in [("bitmap", group.bitmap.is_some()), ("pool", group.pool.is_some())] {
        require(!is_set, &key("ppl"), || format!("a group with a partial parity log has no {field}; omit one"))?;
    }
    let other = array.groups.iter().find(|other| other.ppl.is_none());
    require(other.is_none(), &key("ppl"), || {
        let name = other.map_or("", |group| group.name.as_str());
        format!("group {name:?} has no partial parity log; all groups of an array must have one, or none")
    })?;
    let (area, least, most) =
        (ppl.area_bytes, PartialParityLog::area_bytes_min(group.chunk_bytes), PartialParityLog::AREA_BYTES_MAX);
    require((least..=most).contains(&area) && area.is_multiple_of(4096), &key("ppl.area"), || {
        format!("{area} bytes are not allowed; must be {least} to {most}, in steps of 4 KiB")
    })?;
    let (name, from) = (&group.name, group.log_bytes());
    let first = array.luns.iter().filter(|lun| lun.group as usize == index).map(|lun| lun.start_bytes).min();
    require(first.is_none_or(|first| first >= from), "luns", || {
        format!("a LUN of group {name:?} begins in the partial parity log; it must begin at {from} bytes or later")
    })
}

/// Checks the description of a pool. Keys in errors are the names of its fields.
fn check_pool(array: &ArrayDescription, index: usize) -> Result<(), InvalidDescription> {
    let group = &array.groups[index];
    let Some(pool) = &group.pool else {
        return Ok(());
    };
    let key = |field: &str| format!("groups[{index}].{field}");
    require(pool.members as usize == group.members.len(), &key("pool.members"), || {
        format!("{} disks do not match the group; must be the group's {}", pool.members, group.members.len())
    })?;
    require(pool.member_bytes <= group.member_bytes, &key("drive_size"), || {
        format!(
            "{} bytes of each drive for the pool are too many; the maximum is {}",
            pool.member_bytes, group.member_bytes
        )
    })?;
    pool::check(pool)
        .map_err(|fault| InvalidDescription { key: key(fault.key.trim_end_matches("_bytes")), ..fault })?;
    let luns = array.luns.iter().filter(|lun| lun.group as usize == index);
    let lengths: Vec<u64> = luns.map(|lun| lun.length_bytes).collect();
    pool::check_luns(pool, &lengths).map_err(|fault| InvalidDescription { key: "luns".to_owned(), ..fault })
}

/// Checks the numbers of members and spans.
fn check_shape(group: &Group, key: &dyn Fn(&str) -> String) -> Result<(), InvalidDescription> {
    let (members, spans, level, rules) = (group.members.len(), group.spans as usize, group.level, group.level.rules());
    require(level.is_possible(), &key("level"), || {
        format!("{level} is not a level; allowed: {}", Level::FORMS.join(", "))
    })?;
    require(spans == 1 || rules.has_spans && spans >= 1, &key("spans"), || {
        format!("{spans} spans are not allowed; must be 1 (only raid5 and raid6 may have more)")
    })?;
    require(members.is_multiple_of(spans), &key("spans"), || {
        format!("{spans} spans do not divide {members} drives equally; use a number that divides {members}")
    })?;
    let (fewest, most) = (rules.members_min as usize * spans, rules.members_max as usize);
    let has = || format!("group {:?}: {members} drives", group.name);
    require(members >= fewest, &key("drives"), || {
        let of_spans = if spans > 1 { format!(" in {spans} spans") } else { String::new() };
        format!("{} are too few for {level}{of_spans}; the minimum is {fewest}", has())
    })?;
    require(members <= most, &key("drives"), || format!("{} are too many for {level}; the maximum is {most}", has()))?;
    let step = rules.members_step as usize;
    require(members.is_multiple_of(step), &key("drives"), || {
        format!("{} are not allowed for {level}; must be a multiple of {step}", has())
    })?;
    check_record(group, key)
}

/// Checks that OpenZFS allows the number of sectors of a record.
fn check_record(group: &Group, key: &dyn Fn(&str) -> String) -> Result<(), InvalidDescription> {
    let (record, sector) = (group.record_bytes, group.chunk_bytes);
    if !group.level.rules().has_records {
        return require(record == 0, &key("record"), || {
            format!("{record} bytes is not allowed; {} has no records; omit the key", group.level)
        });
    }
    require(
        record > 0 && record <= RECORD_BYTES_MAX && sector > 0 && record.is_multiple_of(sector),
        &key("record"),
        || {
            format!(
                "{record} bytes is not allowed; must be a multiple of the sector (chunk_size) of {sector}, up to {RECORD_BYTES_MAX}"
            )
        },
    )?;
    require(group.capacity_bytes() > 0, &key("drive_size"), || {
        format!("{} bytes of each drive are too few; must hold at least one record", group.member_bytes)
    })
}

fn check_stripes(group: &Group, block: u64, key: &dyn Fn(&str) -> String) -> Result<(), InvalidDescription> {
    let unit = group.chunk_bytes;
    require(unit > 0 && unit.is_multiple_of(block), &key("chunk_size"), || {
        format!("{unit} bytes is not allowed; must be a multiple of the drives' block of {block} bytes")
    })?;
    let least = if group.level.rules().is_striped { unit } else { block };
    require(group.member_bytes >= least && group.member_bytes.is_multiple_of(block), &key("drive_size"), || {
        format!(
            "{} bytes of each drive is not allowed; must be a multiple of {block} bytes, at least {least}",
            group.member_bytes
        )
    })?;
    let rebuild = &group.rebuild;
    let step = rebuild.step_bytes;
    require(step > 0 && step.is_multiple_of(unit), &key("rebuild.step"), || {
        format!("{step} bytes is not allowed; must be a multiple of the chunk size of {unit} bytes")
    })?;
    require((1..=COUNT_MAX).contains(&rebuild.steps), &key("rebuild.steps"), || {
        format!("{} steps at once are out of range; must be 1 to {COUNT_MAX}", rebuild.steps)
    })?;
    let limited = rebuild.rate_limit_bytes_per_s.is_none_or(|rate| rate.is_finite() && rate > 0.0);
    require(limited, &key("rebuild.rate_limit"), || "must be a positive rate; omit the key for no limit".to_owned())?;
    if let Some(minimum) = &rebuild.minimum {
        let most = rebuild.rate_limit_bytes_per_s.unwrap_or(f64::INFINITY);
        require(minimum.bytes_per_s >= 1 && minimum.bytes_per_s as f64 <= most, &key("rebuild.minimum_rate"), || {
            format!("{} bytes/s are out of range; must be above 0, up to rebuild.rate_limit", minimum.bytes_per_s)
        })?;
        let window = minimum.window_bytes;
        require(window > 0 && window.is_multiple_of(unit), &key("rebuild.window"), || {
            format!("{window} bytes are not allowed; must be a multiple of {unit}")
        })?;
    }
    let share = rebuild.yield_to_host;
    require(share.is_finite() && (0.0..=1e6).contains(&share), &key("rebuild.yield_to_host"), || {
        format!("{share} is out of range; must be 0 (regardless of the host) or more")
    })
}

/// Checks that every member belongs to at most one group or cache.
fn check_uses(array: &ArrayDescription) -> Result<(), InvalidDescription> {
    let mut users: Vec<Option<String>> = vec![None; array.members.len()];
    let mut take = |key: &str, members: &[u32], user: String| -> Result<(), InvalidDescription> {
        for &member in members {
            let name = &array.members[member as usize].name;
            if let Some(other) = &users[member as usize] {
                return fault(key, format!("drive {name:?} is already used by {other}; use each drive only once"));
            }
            users[member as usize] = Some(user.clone());
        }
        Ok(())
    };
    require(!array.groups.is_empty(), "groups", || "no group; add at least one".to_owned())?;
    for (index, group) in array.groups.iter().enumerate() {
        let user = format!("group {:?}", group.name);
        take(&format!("groups[{index}].drives"), &group.members, user.clone())?;
        take(&format!("groups[{index}].spares"), &group.spares, user)?;
    }
    if let Some(cache) = &array.controller.cache {
        let are_indices_valid = cache.flash_members.iter().all(|&member| (member as usize) < array.members.len());
        require(are_indices_valid, "controller.cache.flash_drives", || {
            format!("an index is out of range; must be 0 to {}", array.members.len() - 1)
        })?;
        take("controller.cache.flash_drives", &cache.flash_members, "the cache".to_owned())?;
    }
    Ok(())
}

fn check_luns(array: &ArrayDescription) -> Result<(), InvalidDescription> {
    require(!array.luns.is_empty(), "luns", || "no LUN; add at least one".to_owned())?;
    let block = u64::from(array.block_bytes());
    let sum = array.luns.iter().try_fold(0u64, |sum, lun| sum.checked_add(lun.length_bytes));
    require(sum.is_some(), "luns", || "more than 16 EiB in total; the maximum is 16 EiB".to_owned())?;
    for (index, lun) in array.luns.iter().enumerate() {
        let key = |field: &str| format!("luns[{index}].{field}");
        let twice = array.luns[..index].iter().any(|other| other.name == lun.name);
        require(!lun.name.is_empty() && !twice, &key("name"), || {
            format!("LUN {:?}: each LUN must have a unique name", lun.name)
        })?;
        let Some(group) = array.groups.get(lun.group as usize) else {
            return fault(
                key("group"),
                format!("group {} is out of range; must be 0 to {}", lun.group, array.groups.len() - 1),
            );
        };
        let (from, length) = (lun.start_bytes, lun.length_bytes);
        require(length > 0 && length.is_multiple_of(block) && from.is_multiple_of(block), &key("size"), || {
            format!(
                "LUN {:?}: {length} bytes from {from} is not allowed; must be multiples of {block}, the length above 0",
                lun.name
            )
        })?;
        if group.pool.is_some() {
            // The blocks of a pool's LUNs are not placed yet, so LUNs cannot overlap.
            require(from == 0, &key("start"), || {
                format!("{from} is not allowed; a LUN of a pool has no start; use 0")
            })?;
            continue;
        }
        require(lun.prefill == Prefill::None, &key("prefill"), || {
            format!("group {:?} has no pool; omit the key", group.name)
        })?;
        let held = group.capacity_bytes();
        require(from.checked_add(length).is_some_and(|end| end <= held), &key("size"), || {
            format!("LUN {:?}: {length} bytes from {from} is too long; group {:?} holds {held}", lun.name, group.name)
        })?;
        let clash = array.luns[..index].iter().find(|other| {
            other.group == lun.group
                && other.start_bytes < from + length
                && from < other.start_bytes + other.length_bytes
        });
        if let Some(other) = clash {
            return fault(key("start"), format!("LUN {:?} overlaps {:?}; LUNs must not overlap", lun.name, other.name));
        }
    }
    Ok(())
}

fn check_controller(array: &ArrayDescription) -> Result<(), InvalidDescription> {
    let Controller { processors, member_tags, parity_ns_per_byte: pace, .. } = array.controller;
    require((1..=COUNT_MAX).contains(&processors), "controller.processors", || {
        format!("{processors} processors are out of range; must be 1 to {COUNT_MAX}")
    })?;
    require((1..=COUNT_MAX).contains(&member_tags), "controller.drive_tags", || {
        format!("{member_tags} commands are out of range; must be 1 to {COUNT_MAX}")
    })?;
    require(pace.is_finite() && pace >= 0.0, "controller.parity_rate", || {
        format!("{pace} ns per byte is not allowed; must be a positive rate")
    })?;
    array.controller.cache.as_ref().map_or(Ok(()), |cache| check_cache(array, cache))
}

fn check_cache(array: &ArrayDescription, cache: &Cache) -> Result<(), InvalidDescription> {
    let key = |field: &str| format!("controller.cache.{field}");
    let (page, block) = (cache.page_bytes, array.block_bytes());
    let fits = page.is_power_of_two() && page.is_multiple_of(block) && page <= PAGE_BYTES_MAX;
    require(fits, &key("page"), || {
        format!("{page} bytes is not allowed; must be a power of two from {block} (the block size) to {PAGE_BYTES_MAX}")
    })?;
    check_cache_sizes(array, cache, &key)?;
    require(cache.mirror_link.is_none_or(|link| (link as usize) < array.links.len()), &key("mirror"), || {
        format!("the index is out of range; must be one of links 0 to {}", array.links.len().saturating_sub(1))
    })?;
    if let Some(prefetch) = &cache.prefetch {
        let counts = [("after", prefetch.after_requests), ("streams", prefetch.streams_max)];
        for (field, count) in counts {
            require((1..=COUNT_MAX).contains(&count), &key(&format!("prefetch.{field}")), || {
                format!("{count} is out of range; must be 1 to {COUNT_MAX}")
            })?;
        }
        require((1..=cache.data_bytes).contains(&prefetch.ahead_bytes), &key("prefetch.ahead"), || {
            format!(
                "{} bytes are out of range; must be 1 to {} (the size of the cache)",
                prefetch.ahead_bytes, cache.data_bytes
            )
        })?;
    }
    let (low, high) = (cache.low_water, cache.high_water);
    require((0.0..=1.0).contains(&high), &key("high_water"), || format!("{high} is out of range; must be 0 to 1"))?;
    require((0.0..=high).contains(&low), &key("low_water"), || {
        format!("{low} is out of range; must be 0 to {high} (high_water)")
    })?;
    require((1..=COUNT_MAX).contains(&cache.destages_max), &key("destages"), || {
        format!("{} destages at once are out of range; must be 1 to {COUNT_MAX}", cache.destages_max)
    })
}

fn check_cache_sizes(
    array: &ArrayDescription,
    cache: &Cache,
    key: &dyn Fn(&str) -> String,
) -> Result<(), InvalidDescription> {
    let (page, data) = (u64::from(cache.page_bytes), cache.data_bytes);
    require(data >= page && data.is_multiple_of(page), &key("data"), || {
        format!("{data} bytes is not allowed; must be a multiple of the page size of {page} bytes")
    })?;
    let (room, holder) = match flash_room_bytes(array, cache) {
        None => (cache.memory_bytes, "memory"),
        Some(room) => (room, "space on the flash drives"),
    };
    require(data <= room, &key("data"), || {
        format!("{data} bytes of data are too many; the maximum is {room} (the {holder})")
    })?;
    require(cache.dirty_bytes_max <= data, &key("dirty"), || {
        format!("{} dirty bytes are too many; the maximum is {data} (data)", cache.dirty_bytes_max)
    })?;
    let holds_writes = cache.writes == crate::description::array::CacheWrites::Back;
    require(!holds_writes || cache.dirty_bytes_max >= page, &key("dirty"), || {
        format!("{} dirty bytes are too few; a write-back cache needs at least a page of {page}", cache.dirty_bytes_max)
    })
}

/// Returns the number of bytes that a cache can hold on its flash members, in whole pages; `None` for a cache in
/// memory. Pages are distributed over the members round-robin. With several members, half of each holds copies of pages
/// of another.
pub fn flash_room_bytes(array: &ArrayDescription, cache: &Cache) -> Option<u64> {
    let members = &cache.flash_members;
    let smallest = members.iter().map(|&member| array.device(member).capacity_bytes()).min()?;
    let pages_each = smallest / u64::from(cache.page_bytes.max(1)) / if members.len() > 1 { 2 } else { 1 };
    Some(pages_each.saturating_mul(u64::from(cache.page_bytes)).saturating_mul(members.len() as u64))
}

fn check_incidents(array: &ArrayDescription) -> Result<(), InvalidDescription> {
    for (index, incident) in array.incidents.iter().enumerate() {
        let key = |field: &str| format!("incidents[{index}].{field}");
        let before = index.checked_sub(1).map_or(0, |before| array.incidents[before].at_ns);
        require(incident.at_ns >= before, &key("at"), || {
            format!("{} ns is before the previous incident at {before} ns; times must be ascending", incident.at_ns)
        })?;
        match incident.what {
            IncidentKind::MemberFails { member } => {
                require((member as usize) < array.members.len(), &key("fails"), || {
                    format!("drive {member} is out of range; must be 0 to {}", array.members.len() - 1)
                })?;
                require(!is_missing(array, index, member), &key("fails"), || {
                    format!(
                        "drive {:?} has already failed; it must return before it fails again",
                        array.members[member as usize].name
                    )
                })?;
            }
            IncidentKind::MemberReturns { member } => {
                require(is_missing(array, index, member), &key("returns"), || {
                    format!("drive {member} has not failed; only a failed drive can return")
                })?;
            }
            IncidentKind::SpareAdded { group } | IncidentKind::Scrub { group, .. } => {
                let count = array.groups.len();
                require((group as usize) < count, &key("group"), || {
                    format!("group {group} is out of range; must be 0 to {}", count - 1)
                })?;
            }
            IncidentKind::BatteryFails | IncidentKind::BatteryReturns => {
                let has = array.controller.cache.as_ref().is_some_and(|cache| cache.battery);
                require(has, &key("battery"), || "the array has no cache with a battery".to_owned())?;
            }
        }
    }
    Ok(())
}

/// Whether a member is missing at incident `index`: its last earlier incident is a failure.
fn is_missing(array: &ArrayDescription, index: usize, member: u32) -> bool {
    let earlier = array.incidents[..index].iter().rev();
    let last = earlier
        .map(|incident| incident.what)
        .find(|what| [IncidentKind::MemberFails { member }, IncidentKind::MemberReturns { member }].contains(what));
    last == Some(IncidentKind::MemberFails { member })
}
