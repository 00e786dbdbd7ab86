//! Converts the tables of groups and LUNs to the model's block placement and exports.

use headstack_sim::array::description::{
    AboveMinimum, Bitmap, Filler, Group, Lun, PartialParityLog, Prefill, Rebuild, RebuildMinimum,
};
use headstack_sim::array::pool::{Classes, PoolDescription};
use headstack_workload::InputError;
use headstack_workload::quantity::{Bytes, DurationNs};

use super::file::{ArrayFile, BitmapTable, GroupTable, LevelName, LunTable, PoolTable, PplTable, RebuildTable};
use super::resolver::{Parts, Resolver, ns};

/// Default chunk size: the usual setting of controllers since 2000; medium confidence.
pub const CHUNK_SIZE: Bytes = Bytes(64 << 10);
/// Default sector size of RAIDZ and dRAID: ashift 12, the setting for drives with 4 KiB sectors.
pub const SECTOR: Bytes = Bytes(4 << 10);
/// Default record size of RAIDZ and dRAID: OpenZFS's recordsize.
pub const RECORD: Bytes = Bytes(128 << 10);
/// Default number of bytes on a drive covered by one bit of a bitmap: mdadm's minimum for internal bitmaps.
pub const BITMAP_CHUNK: Bytes = Bytes(64 << 20);
/// Default interval between passes of md's bitmap daemon (`DAEMON_PERIOD`, 5 s).
pub const BITMAP_DAEMON: DurationNs = DurationNs(5_000_000_000);
/// Default time without writes after which md marks an array clean (`DEFAULT_SAFEMODE_DELAY`, 200 ms).
pub const SAFE_MODE: DurationNs = DurationNs(200_000_000);
/// Default space of a partial parity log: mdadm's, if there is room (`MULTIPLE_PPL_AREA_SIZE_SUPER1`, super1.c).
pub const PPL_AREA: u64 = 1 << 20;
/// Default size of a rebuild step: long enough to stream, short enough not to delay the host; an estimate.
pub const REBUILD_STEP: Bytes = Bytes(1 << 20);
/// Default number of concurrent rebuild steps: one reads while the other writes; an estimate.
pub const REBUILD_STEPS: u32 = 2;
/// Default idle time after a host request, as a multiple of a step: the host gets half of the time; an estimate.
pub const REBUILD_YIELD: f64 = 1.0;

/// Default bytes of each drive between two looks of Linux md at its rate: 32 pages, and at least a chunk of this model
/// (`window` in `md_do_sync`, drivers/md/md.c).
pub const REBUILD_WINDOW: Bytes = Bytes(128 << 10);
const MD_BUSY: &str = "A Linux 4.2 and later, drivers/md/md.c: waits for its own requests";
const MD_WINDOW: &str = "A Linux, drivers/md/md.c: 32 pages; at least a chunk";

/// Default controller time to allocate a segment of a pool; an estimate.
pub const POOL_ALLOCATION: DurationNs = DurationNs(200_000);

/// Segment size and other dimensions of a pool's group.
struct PoolShape {
    members: u32,
    member_bytes: u64,
    segment: Bytes,
}

impl Resolver<'_> {
    pub(super) fn groups(&mut self, file: &ArrayFile, parts: &Parts) -> Result<Vec<Group>, InputError> {
        let tables = file.groups.as_deref().unwrap_or_default();
        if tables.is_empty() {
            return Err(self.error("groups", "this key is missing; add at least one [[groups]] table"));
        }
        let mut drives = Vec::new();
        let mut spares = Vec::new();
        for (index, table) in tables.iter().enumerate() {
            let listed = |field: &str, names: &Option<Vec<String>>| {
                let key = format!("groups[{index}].{field}");
                names.as_ref().map(|names| parts.find(self, &key, names)).transpose()
            };
            drives.push(listed("drives", &table.drives)?);
            spares.push(listed("spares", &table.spares)?.unwrap_or_default());
        }
        self.fill_in(&mut drives, &spares, file, parts)?;
        let mut groups = Vec::new();
        for (index, ((table, members), spares)) in tables.iter().zip(drives).zip(spares).enumerate() {
            groups.push(self.group(index, table, members.unwrap_or_default(), spares, parts)?);
        }
        Ok(groups)
    }

    /// Assigns all drives that no other key names to the one group that names no drives.
    fn fill_in(
        &mut self,
        drives: &mut [Option<Vec<u32>>],
        spares: &[Vec<u32>],
        file: &ArrayFile,
        parts: &Parts,
    ) -> Result<(), InputError> {
        let cache = file.controller.as_ref().and_then(|controller| controller.cache.as_ref());
        let flash = cache.and_then(|cache| cache.flash_drives.as_deref()).unwrap_or_default();
        let flash = parts.find(self, "controller.cache.flash_drives", flash)?;
        let named: Vec<u32> =
            drives.iter().flatten().flatten().chain(spares.iter().flatten()).chain(&flash).copied().collect();
        let free = (0..parts.members.len() as u32).filter(|member| !named.contains(member)).collect();
        let mut without = (0..drives.len()).filter(|&index| drives[index].is_none());
        let Some(index) = without.next() else { return Ok(()) };
        if let Some(other) = without.next() {
            let message = "this key is missing; only one group may omit it and take the remaining drives";
            return Err(self.error(&format!("groups[{other}].drives"), message));
        }
        drives[index] = Some(free);
        Ok(())
    }

    fn group(
        &mut self,
        index: usize,
        table: &GroupTable,
        members: Vec<u32>,
        spares: Vec<u32>,
        parts: &Parts,
    ) -> Result<Group, InputError> {
        let key = |field: &str| format!("groups[{index}].{field}");
        let level = table.level.level();
        let name = table.name.clone().unwrap_or_else(|| table.level.name());
        let chunk_size = if level.rules().has_records {
            self.or(table.chunk_size, &key("chunk_size"), "C ashift 12", SECTOR)
        } else if level.rules().is_striped {
            self.or(table.chunk_size, &key("chunk_size"), "C usual controller setting", CHUNK_SIZE)
        } else {
            table.chunk_size.unwrap_or(CHUNK_SIZE)
        };
        let drives = || members.iter().chain(&spares).map(|&member| parts.device(member));
        let record = if level.rules().has_records {
            self.or(table.record, &key("record"), "A OpenZFS's recordsize", RECORD)
        } else {
            table.record.unwrap_or(Bytes(0))
        };
        let smallest = drives().map(|device| device.capacity_bytes()).min().unwrap_or(0);
        let block = drives().map(|device| u64::from(device.block_bytes())).max().unwrap_or(512);
        let unit = if level.rules().is_striped { chunk_size.0.max(1) } else { block };
        let whole = Bytes(smallest / unit * unit);
        let stated = self.in_units(table.drive_size, &key("drive_size"), block, "blocks");
        let member_bytes = self.or(stated, &key("drive_size"), "the smallest drive, in whole units", whole);
        let pool = table.pool.as_ref().map(|pool| {
            let shape = PoolShape { members: members.len() as u32, member_bytes: member_bytes.0, segment: chunk_size };
            self.pool(&key("pool"), pool, &shape)
        });
        let rebuild = self.rebuild(&key("rebuild"), table, chunk_size, !spares.is_empty())?;
        Ok(Group {
            name,
            level,
            members,
            spans: table.spans.unwrap_or(1),
            chunk_bytes: chunk_size.0,
            rotation: table.rotation.unwrap_or_default(),
            member_bytes: member_bytes.0,
            record_bytes: record.0,
            small_writes: table.small_writes.unwrap_or_default(),
            mirror_reads: table.mirror_reads.unwrap_or_default(),
            spares,
            rebuild,
            pool: pool.transpose()?,
            bitmap: table.bitmap.map(|bitmap| self.bitmap(&key("bitmap"), bitmap)).transpose()?,
            ppl: table.ppl.map(|ppl| self.ppl(&key("ppl"), ppl, chunk_size)),
            is_journaled: false,
        })
    }

    fn ppl(&mut self, key: &str, table: PplTable, chunk_size: Bytes) -> PartialParityLog {
        let area = Bytes(PPL_AREA.max(PartialParityLog::area_bytes_min(chunk_size.0)));
        let area = self.or(table.area, &format!("{key}.area"), "A mdadm, super1.c: the multiple PPL area", area);
        PartialParityLog { area_bytes: area.0 }
    }

    fn bitmap(&mut self, key: &str, table: BitmapTable) -> Result<Bitmap, InputError> {
        let of = |field: &str| format!("{key}.{field}");
        let chunk = self.or(table.chunk, &of("chunk"), "A mdadm's minimum for an internal bitmap", BITMAP_CHUNK);
        let daemon = self.or(table.daemon, &of("daemon"), "A Linux md, DAEMON_PERIOD", BITMAP_DAEMON);
        let safe_mode = self.or(table.safe_mode, &of("safe_mode"), "A Linux md, DEFAULT_SAFEMODE_DELAY", SAFE_MODE);
        Ok(Bitmap {
            chunk_bytes: chunk.0,
            daemon_ns: ns(self, &of("daemon"), daemon)?,
            safe_mode_ns: ns(self, &of("safe_mode"), safe_mode)?,
        })
    }

    fn pool(&mut self, key: &str, table: &PoolTable, shape: &PoolShape) -> Result<PoolDescription, InputError> {
        let PoolTable { segment, spare, allocation, parity_width, low_free, high_free } = *table;
        let segment = self.or(segment, &format!("{key}.segment"), "the chunk size", shape.segment);
        let spare = self.or(spare, &format!("{key}.spare"), "nothing kept free", Bytes(0));
        let allocation_key = format!("{key}.allocation");
        let allocation = self.or(allocation, &allocation_key, "D estimate", POOL_ALLOCATION);
        let classes = match (parity_width, low_free, high_free) {
            (None, None, None) => Classes::Mirrored,
            (Some(parity_width), Some(low), Some(high)) => {
                Classes::Migrating { parity_width, low_free_bytes: low.0, high_free_bytes: high.0 }
            }
            _ => {
                let message = "set all of parity_width, low_free and high_free, or none";
                return Err(self.error(key, message));
            }
        };
        Ok(PoolDescription {
            segment_bytes: segment.0,
            members: shape.members,
            member_bytes: shape.member_bytes,
            spare_bytes: spare.0,
            allocation_ns: ns(self, &allocation_key, allocation)?,
            classes,
        })
    }

    /// Returns the rebuild settings. Missing values are listed as derived only if there is a spare.
    fn rebuild(
        &mut self,
        key: &str,
        table: &GroupTable,
        chunk_size: Bytes,
        matters: bool,
    ) -> Result<Rebuild, InputError> {
        let own = table.rebuild.clone().unwrap_or_default();
        let RebuildTable { step, steps, rate_limit, yield_to_host, .. } = own.clone();
        let unit = chunk_size.0.max(1);
        let whole_step = Bytes((REBUILD_STEP.0 / unit * unit).max(unit));
        if let Some(rate) = rate_limit.filter(|rate| rate.0 <= 0.0) {
            return Err(
                self.error(&format!("{key}.rate_limit"), format!("{rate} is not allowed; the rate must be above 0"))
            );
        }
        let minimum = self.rebuild_minimum(key, &own, unit, matters)?;
        let rule = "D compromise between host and rebuild speed";
        if !matters {
            return Ok(Rebuild {
                step_bytes: step.unwrap_or(whole_step).0,
                steps: steps.unwrap_or(REBUILD_STEPS),
                rate_limit_bytes_per_s: rate_limit.map(|rate| rate.0),
                yield_to_host: yield_to_host.unwrap_or(if minimum.is_some() { 0.0 } else { REBUILD_YIELD }),
                minimum,
                filled_by: Filler::Array,
            });
        }
        Ok(Rebuild {
            step_bytes: self.or(step, &format!("{key}.step"), rule, whole_step).0,
            steps: self.or(steps, &format!("{key}.steps"), rule, REBUILD_STEPS),
            rate_limit_bytes_per_s: rate_limit.map(|rate| rate.0),
            yield_to_host: match minimum {
                Some(_) => 0.0,
                None => self.or(yield_to_host, &format!("{key}.yield_to_host"), rule, REBUILD_YIELD),
            },
            minimum,
            filled_by: Filler::Array,
        })
    }

    /// Returns the minimum rate of Linux md; `None` without the key.
    fn rebuild_minimum(
        &mut self,
        key: &str,
        table: &RebuildTable,
        unit: u64,
        matters: bool,
    ) -> Result<Option<RebuildMinimum>, InputError> {
        let Some(rate) = table.minimum_rate else {
            let stated = [("above_minimum", table.above_minimum.is_some()), ("window", table.window.is_some())];
            return match stated.into_iter().find(|(_, is_stated)| *is_stated) {
                Some((name, _)) => {
                    Err(self.error(&format!("{key}.{name}"), "needs minimum_rate; set it or remove this key"))
                }
                None => Ok(None),
            };
        };
        if table.yield_to_host.is_some() {
            return Err(
                self.error(&format!("{key}.yield_to_host"), "remove this key, or minimum_rate, which replaces it")
            );
        }
        let default_above = AboveMinimum::Drain;
        let default_window = Bytes(REBUILD_WINDOW.0.next_multiple_of(unit));
        let (above, window) = match matters {
            true => (
                self.or(table.above_minimum, &format!("{key}.above_minimum"), MD_BUSY, default_above),
                self.or(table.window, &format!("{key}.window"), MD_WINDOW, default_window),
            ),
            false => (table.above_minimum.unwrap_or(default_above), table.window.unwrap_or(default_window)),
        };
        Ok(Some(RebuildMinimum { bytes_per_s: rate.0.round() as u64, above, window_bytes: window.0 }))
    }

    pub(super) fn luns(&mut self, file: &ArrayFile, groups: &[Group], parts: &Parts) -> Result<Vec<Lun>, InputError> {
        let Some(tables) = &file.luns else {
            return Ok(default_luns(file, groups, parts));
        };
        let mut luns = Vec::new();
        for (index, table) in tables.iter().enumerate() {
            let lun = self.lun(index, table, &luns, groups, parts)?;
            luns.push(lun);
        }
        Ok(luns)
    }

    fn lun(
        &mut self,
        index: usize,
        table: &LunTable,
        before: &[Lun],
        groups: &[Group],
        parts: &Parts,
    ) -> Result<Lun, InputError> {
        let key = |field: &str| format!("luns[{index}].{field}");
        let names: Vec<&str> = groups.iter().map(|group| group.name.as_str()).collect();
        let group = match &table.group {
            Some(name) => self.find(&key("group"), "group", &names, name)?[0],
            None if groups.len() == 1 => 0,
            None => {
                let message = format!("this key is missing; allowed: {}", names.join(", "));
                return Err(self.error(&key("group"), message));
            }
        };
        let holder = &groups[group as usize];
        // `check` rejects a group without drives.
        let block = holder.members.first().map_or(512, |&member| u64::from(parts.device(member).block_bytes()));
        let whole = |bytes: u64| bytes / block * block;
        let ends = before.iter().filter(|lun| lun.group == group).map(|lun| match holder.pool {
            // Blocks of a pool have no fixed location, so the pool's LUNs only take space.
            Some(_) => lun.length_bytes,
            None => lun.start_bytes.saturating_add(lun.length_bytes),
        });
        let used = if holder.pool.is_some() {
            ends.fold(0, u64::saturating_add)
        } else {
            ends.max().unwrap_or_else(|| holder.log_bytes())
        };
        let after = if holder.pool.is_some() { 0 } else { used };
        let start_bytes = table.start.map_or(after, |start| whole(start.0));
        let held = holder.capacity_bytes();
        let left = whole(held.saturating_sub(used.max(start_bytes)));
        // `check` rejects a group without capacity.
        if table.size.is_none() && left == 0 && held > 0 {
            let message = format!("group {:?} has no space left; set the size of the previous LUNs", holder.name);
            return Err(self.error(&key("size"), message));
        }
        let stated = self.in_units(table.size, &key("size"), block, "blocks");
        let size = self.or(stated, &key("size"), "remaining space of the group", Bytes(left));
        let prefill = table.prefill.unwrap_or_default();
        Ok(Lun { name: table.name.clone(), group, start_bytes, length_bytes: whole(size.0), prefill })
    }
}

/// Returns one LUN per group, or one per drive of a `jbod`.
fn default_luns(file: &ArrayFile, groups: &[Group], parts: &Parts) -> Vec<Lun> {
    let mut luns = Vec::new();
    let tables = file.groups.iter().flatten();
    for (number, (group, table)) in (0u32..).zip(groups.iter().zip(tables)) {
        if table.level == LevelName::Jbod {
            let length_bytes = group.member_bytes;
            luns.extend((0u64..).zip(&group.members).map(|(place, &member)| Lun {
                name: parts.members[member as usize].name.clone(),
                group: number,
                start_bytes: place.saturating_mul(length_bytes),
                length_bytes,
                prefill: Prefill::None,
            }));
        } else {
            let start_bytes = group.log_bytes();
            let length_bytes = group.capacity_bytes().saturating_sub(start_bytes);
            let (name, prefill) = (group.name.clone(), Prefill::None);
            luns.push(Lun { name, group: number, start_bytes, length_bytes, prefill });
        }
    }
    luns
}
