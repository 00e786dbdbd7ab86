//! The TOML form of an array: drives, the links that they hang on, groups, LUNs and the controller.
//!
//! Nearly every key is optional: what is left out follows from a rule or from the standard of a link (see
//! [`super::resolve()`] and [`super::standards`]). Drives and links are named by their tables: `count = 7` under
//! `id = "d"` makes `d0` to `d6`, and lists of names take ranges such as `"d0..d6"`.

use std::collections::BTreeMap;

use headstack_sim::array::description::{
    CachePolicy, CacheWrites, Destage, Level, MirrorReads, Prefill, Rotation, SmallWrites,
};
use headstack_sim::device::DeviceDescription;
use headstack_sim::drive::description::{Policy, ReadAhead, WriteCache};
use headstack_workload::InputError;
use headstack_workload::quantity::{Bytes, DurationNs, LinkRate, Rate};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::standards::LinkStandard;
use crate::hosts::HostProfile;
use crate::key_error;
use crate::twin::TwinTable;

/// An array file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArrayFile {
    /// Its name, for people; that of `base` where left out.
    pub name: Option<String>,
    /// Another array, by id or as a path relative to this file: whatever key or table stands here replaces the one there.
    pub base: Option<String>,
    /// Maker.
    pub vendor: Option<String>,
    /// Model number.
    pub model: Option<String>,
    /// Year of introduction.
    pub year: Option<u32>,
    /// What a reader should know.
    pub notes: Option<String>,
    /// The drives, spares included.
    pub drives: Option<Vec<DrivesTable>>,
    /// The links between drives, controller and host; none where left out: only the drives' own ports then take time.
    pub links: Option<Vec<LinkTable>>,
    /// How the spindles of the disks turn; each with a phase and a speed of its own where left out.
    pub spindles: Option<SpindlesTable>,
    /// How blocks lie on drives.
    pub groups: Option<Vec<GroupTable>>,
    /// What is exported; where left out, one LUN over each group, or over each drive of a `jbod`.
    pub luns: Option<Vec<LunTable>>,
    /// What a request meets before the drives; nothing that takes time where left out.
    pub controller: Option<ControllerTable>,
    /// The way to the host.
    pub host: Option<HostTable>,
    /// What breaks, and when.
    pub incidents: Option<Vec<IncidentTable>>,
    /// Key path, or the path of a table that holds it, or `default`, to `CODE text`, as in drive files.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sources: BTreeMap<String, String>,
    /// How it was learnt from a device, where it was; carried, not used by the model.
    pub twin: Option<TwinTable>,
}

/// `[[drives]]`: equal drives.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DrivesTable {
    /// What their names begin with; `d` where left out. Without a count it is the name of the one drive.
    pub id: Option<String>,
    /// A drive of the catalogue, or a path relative to this file that ends in `.toml`.
    pub drive: String,
    /// How many; 1 where left out. Tables with the same id count on.
    pub count: Option<u32>,
    /// The links that they hang on, dealt out in equal runs: eight drives on four cables hang two by two.
    pub links: Option<Vec<String>>,
    /// Every drive hangs on all of the links, and its commands take them in turn.
    pub multipath: Option<bool>,
    /// When a write is complete.
    pub write_cache: Option<WriteCache>,
    /// How far reads go on after the request.
    pub read_ahead: Option<ReadAhead>,
    /// Pace at which a drive takes data, where that is below its interface's rate (credits granted slowly).
    pub write_rate: Option<Rate>,
    /// Commands that a drive holds at once.
    pub queue_depth: Option<u32>,
    /// Order in which a drive serves its queue.
    pub policy: Option<Policy>,
    /// How much of its queue the policy may choose from.
    pub reordering: Option<f64>,
    /// Solid-state drives start in the steady state of random overwrites.
    pub preconditioned: Option<bool>,
}

impl DrivesTable {
    /// Takes out what only the drives know that stood here before: others have replaced them.
    pub(super) fn keep_known_to(&mut self, device: &DeviceDescription) {
        let of_disks = matches!(device, DeviceDescription::Disk(_));
        let of_flash = matches!(device, DeviceDescription::Ssd(_));
        self.write_cache = self.write_cache.filter(|_| of_disks);
        self.read_ahead = self.read_ahead.filter(|_| of_disks);
        self.policy = self.policy.filter(|_| of_disks);
        self.reordering = self.reordering.filter(|_| of_disks);
        self.write_rate = self.write_rate.filter(|_| of_disks || of_flash);
        self.preconditioned = self.preconditioned.filter(|_| of_flash);
    }
}

/// `[spindles]`
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SpindlesTable {
    /// Spindle synchronization: all disks turn in phase at their stated speed; false where left out.
    pub synchronized: Option<bool>,
    /// Largest relative difference between a spindle's speed and the stated speed, such as 0.001.
    pub speed_tolerance: Option<f64>,
}

/// `[[links]]`: equal links.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkTable {
    /// Its name; with a count, what their names begin with, and a name for all of them.
    pub name: String,
    /// The standard it follows, which gives what is left out.
    pub kind: LinkStandard,
    /// How many; 1 where left out.
    pub count: Option<u32>,
    /// The links that they hang on towards the controller, dealt out in equal runs.
    pub up: Option<Vec<String>>,
    /// Lanes of a SAS wide port or a PCI Express slot; 1 where left out.
    pub lanes: Option<u32>,
    /// Generation of PCI Express.
    pub generation: Option<u32>,
    /// Rate of payload, framing and encoding taken off; or of a serial line in bits.
    pub rate: Option<LinkRate>,
    /// Time taken to deliver a command, beside its data.
    pub command: Option<DurationNs>,
    /// Time taken by a transfer towards the host, beside its data.
    pub read: Option<DurationNs>,
    /// Time taken by a transfer away from the host, beside its data.
    pub write: Option<DurationNs>,
    /// Delay that occupies nobody.
    pub latency: Option<DurationNs>,
    /// Data of reads and of writes do not share its time.
    pub full_duplex: Option<bool>,
    /// Parallel ATA: drives release the cable while they work on a command (TCQ); false where left out.
    pub overlapped: Option<bool>,
}

/// `[[groups]]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupTable {
    /// Its name; its level where left out and unique.
    pub name: Option<String>,
    /// How data and redundancy are spread.
    pub level: LevelName,
    /// Its drives in the order of the layout; those that nobody else names where left out.
    pub drives: Option<Vec<String>>,
    /// Bytes on one drive before the next is used.
    pub stripe_unit: Option<Bytes>,
    /// Bytes of a record of RAIDZ and dRAID, whose `stripe_unit` is the sector; 128 KiB where left out.
    pub record: Option<Bytes>,
    /// Bytes used of each drive; what the smallest holds where left out.
    pub drive_size: Option<Bytes>,
    /// Equal sub-groups of RAID 50 and 60; 1 where left out.
    pub spans: Option<u32>,
    /// Where parity goes from stripe to stripe.
    pub rotation: Option<Rotation>,
    /// How a write smaller than a stripe keeps parity true.
    pub small_writes: Option<SmallWrites>,
    /// Which copy a read takes.
    pub mirror_reads: Option<MirrorReads>,
    /// Drives that stand by.
    pub spares: Option<Vec<String>>,
    /// How a spare is filled.
    pub rebuild: Option<RebuildTable>,
    /// Blocks are placed when they are first written.
    pub pool: Option<PoolTable>,
    /// Writes set a bit of a bitmap on all drives before they begin, as Linux md does; none where left out.
    pub bitmap: Option<BitmapTable>,
}

/// `[groups.bitmap]`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BitmapTable {
    /// Bytes of a drive that a bit stands for; 64 MiB where left out.
    pub chunk: Option<Bytes>,
    /// Between two passes of the daemon that clears bits; 5 s where left out.
    pub daemon: Option<DurationNs>,
    /// Time without a write after which the array is marked clean; 200 ms where left out.
    pub safe_mode: Option<DurationNs>,
}

impl ArrayFile {
    /// Gives all groups this level; only parity has spans.
    ///
    /// # Errors
    /// For a pool, which has no other level than its own.
    pub(super) fn change_level(&mut self, level: LevelName) -> Result<(), InputError> {
        let is_named = self.luns.is_some();
        for group in self.groups.iter_mut().flatten() {
            // LUNs name their group, which may be called by its former level.
            let former = group.level.name();
            if group.pool.is_some() && group.level != level {
                let message = format!("a pool places its blocks by rules of its own; only {former} is allowed");
                return Err(key_error("level", message));
            }
            group.name = group.name.take().or(is_named.then_some(former));
            group.spans = group.spans.filter(|_| level.level().rules().has_spans);
            if level.level().rules().has_records != group.level.level().rules().has_records {
                // A sector is no stripe unit, and levels without records have none.
                (group.stripe_unit, group.record, group.rebuild) = (None, None, None);
            }
            group.level = level;
        }
        Ok(())
    }
}

/// `level` of a group: that of the model, or `jbod`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LevelName {
    /// One drive after the other, each a LUN.
    Jbod,
    /// A level of the model: `raid5`, `4+2`, `raidz2`, `draid2:8d:1s`.
    Of(Level),
}

impl LevelName {
    /// What it can be in files.
    pub fn forms() -> Vec<&'static str> {
        std::iter::once("jbod").chain(Level::FORMS.iter().copied()).collect()
    }

    /// The level that a text names.
    pub fn parse(text: &str) -> Option<LevelName> {
        if text == "jbod" { Some(LevelName::Jbod) } else { Level::parse(text).map(LevelName::Of) }
    }

    /// The level of the model.
    pub fn level(self) -> Level {
        match self {
            LevelName::Jbod => Level::Concat,
            LevelName::Of(level) => level,
        }
    }

    /// Its name in files.
    pub fn name(self) -> String {
        match self {
            LevelName::Jbod => "jbod".to_owned(),
            LevelName::Of(level) => level.to_string(),
        }
    }
}

impl Serialize for LevelName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.name())
    }
}

impl<'de> Deserialize<'de> for LevelName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<LevelName, D::Error> {
        let text = String::deserialize(deserializer)?;
        LevelName::parse(&text).ok_or_else(|| {
            // Serde asks for names that live as long as the program; forms are few, and written down once.
            static FORMS: std::sync::LazyLock<Vec<&str>> = std::sync::LazyLock::new(LevelName::forms);
            D::Error::unknown_variant(&text, &FORMS)
        })
    }
}

/// `[groups.rebuild]`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RebuildTable {
    /// Bytes of each drive that one step rebuilds.
    pub step: Option<Bytes>,
    /// Steps under way at once.
    pub steps: Option<u32>,
    /// Bytes of the spare a second at most; no limit where left out.
    pub rate_limit: Option<Rate>,
    /// Idle time after a host request before the next step, as a share of the step's own time.
    pub yield_to_host: Option<f64>,
}

/// `[groups.pool]`: with `parity_width`, `low_free` and `high_free`, what has not been written for long moves to double
/// parity; without them everything is mirrored.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PoolTable {
    /// Unit of allocation and mirroring; the stripe unit where left out.
    pub segment: Option<Bytes>,
    /// Raw space kept free for rebuilding, over all drives; none where left out.
    pub spare: Option<Bytes>,
    /// Time of the controller to allocate a segment.
    pub allocation: Option<DurationNs>,
    /// Drives of a stripe, its two parities included.
    pub parity_width: Option<u32>,
    /// Moving begins where less raw space is free.
    pub low_free: Option<Bytes>,
    /// Moving ends where so much is free.
    pub high_free: Option<Bytes>,
}

/// `[[luns]]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LunTable {
    /// Its name.
    pub name: String,
    /// Its group; the only one where left out.
    pub group: Option<String>,
    /// First byte within the group; after the LUN before where left out.
    pub start: Option<Bytes>,
    /// Its size, rounded down to whole blocks; the rest of the group where left out.
    pub size: Option<Bytes>,
    /// How a LUN of a pool was filled before the run; not at all where left out.
    pub prefill: Option<Prefill>,
}

/// `[controller]`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ControllerTable {
    /// Time of a processor for each request of the host.
    pub request: Option<DurationNs>,
    /// Time of a processor for each command to a drive.
    pub command: Option<DurationNs>,
    /// Rate at which a processor computes parity.
    pub parity_rate: Option<Rate>,
    /// Processors that share the work.
    pub processors: Option<u32>,
    /// Commands kept in a drive at most; the drives' own limits hold as well.
    pub drive_tags: Option<u32>,
    /// Its cache; none where left out.
    pub cache: Option<CacheTable>,
}

/// `[controller.cache]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CacheTable {
    /// Memory of the controller.
    pub memory: Bytes,
    /// What of it holds data (of the flash drives, where the cache is on these).
    pub data: Option<Bytes>,
    /// What of the data may be dirty at once.
    pub dirty: Option<Bytes>,
    /// Unit of placement.
    pub page: Option<Bytes>,
    /// What a write waits for.
    pub writes: Option<CacheWrites>,
    /// Link to the partner that keeps a copy of each write.
    pub mirror: Option<String>,
    /// It may hold dirty data.
    pub battery: Option<bool>,
    /// Reads are kept.
    pub keeps_reads: Option<bool>,
    /// A miss reads whole multiples of this; what is asked for where left out.
    pub fill: Option<Bytes>,
    /// Prefetching; none where left out.
    pub prefetch: Option<PrefetchTable>,
    /// Which page gives way to a new one: `lru`, `fifo`, `clock`, `arc`, `s3-fifo`, `sieve`, `lirs`, `twoq`, `slru`, `lfu` or
    /// `wtinylfu`; `lru` where left out.
    pub policy: Option<CachePolicy>,
    /// Order in which dirty pages go out.
    pub destage: Option<Destage>,
    /// Dirty share at which destaging no longer waits for an idle moment.
    pub high_water: Option<f64>,
    /// Dirty share at which it ends.
    pub low_water: Option<f64>,
    /// Destages under way at once.
    pub destages: Option<u32>,
    /// Solid-state drives that hold the data instead of memory.
    pub flash_drives: Option<Vec<String>>,
}

/// `[controller.cache.prefetch]`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PrefetchTable {
    /// Sequential requests after which a stream is known.
    pub after: Option<u32>,
    /// Bytes kept read ahead of a stream.
    pub ahead: Option<Bytes>,
    /// Streams that are followed at once.
    pub streams: Option<u32>,
}

/// `[host]`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostTable {
    /// The links between host and controller, from the host on; data pass all of them. None where left out.
    #[serde(default)]
    pub links: Vec<String>,
    /// What the drives hang on: it gives the controller's time for a command and its tags where `[controller]` states none.
    pub adapter: Option<HostProfile>,
}

/// `[[incidents]]`: exactly one of `fails` and `battery`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IncidentTable {
    /// When.
    pub at: DurationNs,
    /// The drive that answers no more.
    pub fails: Option<String>,
    /// What the cache's battery does.
    pub battery: Option<BatteryEvent>,
}

/// `battery` of an incident.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BatteryEvent {
    /// It is down.
    Fails,
    /// It is charged again.
    Returns,
}

impl ArrayFile {
    /// This file's keys and tables with their sources, and those of `base` where it states none.
    pub fn over(self, base: ArrayFile) -> ArrayFile {
        let replaced = [
            ("drives", self.drives.is_some()),
            ("links", self.links.is_some()),
            ("spindles", self.spindles.is_some()),
            ("groups", self.groups.is_some()),
            ("luns", self.luns.is_some()),
            ("controller", self.controller.is_some()),
            ("host", self.host.is_some()),
            ("incidents", self.incidents.is_some()),
        ];
        let is_replaced = |key: &str| replaced.contains(&(key.split(['.', '[']).next().unwrap_or(key), true));
        let kept = base.sources.into_iter().filter(|(key, _)| !is_replaced(key));
        ArrayFile {
            name: self.name.or(base.name),
            base: self.base,
            vendor: self.vendor.or(base.vendor),
            model: self.model.or(base.model),
            year: self.year.or(base.year),
            notes: self.notes.or(base.notes),
            drives: self.drives.or(base.drives),
            links: self.links.or(base.links),
            spindles: self.spindles.or(base.spindles),
            groups: self.groups.or(base.groups),
            luns: self.luns.or(base.luns),
            controller: self.controller.or(base.controller),
            host: self.host.or(base.host),
            incidents: self.incidents.or(base.incidents),
            sources: kept.chain(self.sources).collect(),
            twin: self.twin,
        }
    }
}
