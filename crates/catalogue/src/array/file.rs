//! [`ArrayFile`]: the TOML form of an array: drives, their links, groups, LUNs and the controller. See
//! docs/design/catalogue.md.
//!
//! Nearly every key is optional: missing values follow from a rule or from the standard of a link (see
//! [`super::resolve()`] and [`super::standards`]). Drives and links are named by their tables: `count = 7` under `id =
//! "d"` creates `d0` to `d6`, and lists of names accept ranges such as `"d0..d6"`.

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
    /// Its name, for display; by default that of `base`.
    pub name: Option<String>,
    /// Another array, by id or as a path relative to this file: keys and tables of this file replace those there.
    pub base: Option<String>,
    /// Maker.
    pub vendor: Option<String>,
    /// Model number.
    pub model: Option<String>,
    /// Year of introduction.
    pub year: Option<u32>,
    /// Notes for readers.
    pub notes: Option<String>,
    /// The drives, spares included.
    pub drives: Option<Vec<DrivesTable>>,
    /// The links between drives, controller and host; without any, only the drives' own ports take time.
    pub links: Option<Vec<LinkTable>>,
    /// Rotation of the disks' spindles; by default each has a phase and a speed of its own.
    pub spindles: Option<SpindlesTable>,
    /// RAID groups.
    pub groups: Option<Vec<GroupTable>>,
    /// Exported LUNs; by default one over each group, or over each drive of a `jbod`.
    pub luns: Option<Vec<LunTable>>,
    /// The controller in front of the drives; by default one that takes no time.
    pub controller: Option<ControllerTable>,
    /// The connection to the host.
    pub host: Option<HostTable>,
    /// Incidents and their times.
    pub incidents: Option<Vec<IncidentTable>>,
    /// Key path, or the path of a table that holds it, or `default`, to `CODE text`, as in drive files.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sources: BTreeMap<String, String>,
    /// Provenance of a calibrated model (twin); carried, not used by the model.
    pub twin: Option<TwinTable>,
}

/// `[[drives]]`: identical drives.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DrivesTable {
    /// Prefix of their names; default `d`. Without a count it is the name of the only drive.
    pub id: Option<String>,
    /// A drive of the catalogue, or a path relative to this file that ends in `.toml`.
    pub drive: String,
    /// Number of drives; default 1. Tables with the same id continue the numbering.
    pub count: Option<u32>,
    /// Links to which they are attached, distributed in equal runs: of eight drives on four cables, two share each.
    pub links: Option<Vec<String>>,
    /// Whether every drive is attached to all of the links, and its commands alternate between them.
    pub multipath: Option<bool>,
    /// When a write is complete.
    pub write_cache: Option<WriteCache>,
    /// How far reads continue after the request.
    pub read_ahead: Option<ReadAhead>,
    /// Rate at which a drive accepts data, if below its interface's rate (credits granted slowly).
    pub write_rate: Option<Rate>,
    /// Most commands that a drive holds at once.
    pub queue_depth: Option<u32>,
    /// Order in which a drive serves its queue.
    pub policy: Option<Policy>,
    /// Share of its queue that the policy may choose from.
    pub reordering: Option<f64>,
    /// Whether SSDs start in the steady state of random overwrites.
    pub preconditioned: Option<bool>,
}

impl DrivesTable {
    /// Removes keys that only the previous drives support, after others have replaced them.
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
    /// Spindle synchronization: whether all disks turn in phase at their stated speed; default false.
    pub synchronized: Option<bool>,
    /// Largest relative difference between a spindle's speed and the stated speed, such as 0.001.
    pub speed_tolerance: Option<f64>,
}

/// `[[links]]`: identical links.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkTable {
    /// Name of the link; with a count, the prefix of the links' names and the name of all of them.
    pub name: String,
    /// Its standard, which determines values that are not stated.
    pub kind: LinkStandard,
    /// Number of links; default 1.
    pub count: Option<u32>,
    /// Links towards the controller to which they are attached, distributed in equal runs.
    pub up: Option<Vec<String>>,
    /// Lanes of a SAS wide port or a PCI Express slot; default 1.
    pub lanes: Option<u32>,
    /// Generation of PCI Express.
    pub generation: Option<u32>,
    /// Rate of payload, without framing and encoding; or of a serial line in bits.
    pub rate: Option<LinkRate>,
    /// Time to deliver a command, without its data.
    pub command: Option<DurationNs>,
    /// Time that a transfer towards the host takes in addition to its data.
    pub read: Option<DurationNs>,
    /// Time that a transfer away from the host takes in addition to its data.
    pub write: Option<DurationNs>,
    /// Latency that occupies nothing.
    pub latency: Option<DurationNs>,
    /// Whether read and write data do not share its time.
    pub full_duplex: Option<bool>,
    /// Parallel ATA: whether drives release the cable while they work on a command (TCQ); default false.
    pub overlapped: Option<bool>,
}

/// `[[groups]]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupTable {
    /// Its name; by default its level, if unique.
    pub name: Option<String>,
    /// RAID level.
    pub level: LevelName,
    /// Its drives in the order of the layout; by default those that no other key names.
    pub drives: Option<Vec<String>>,
    /// Chunk size: bytes on one drive before the next is used.
    pub stripe_unit: Option<Bytes>,
    /// Bytes of a record of RAIDZ and dRAID, whose `stripe_unit` is the sector; default 128 KiB.
    pub record: Option<Bytes>,
    /// Bytes used of each drive; by default the size of the smallest.
    pub drive_size: Option<Bytes>,
    /// Equal sub-groups of RAID 50 and 60; default 1.
    pub spans: Option<u32>,
    /// How parity rotates from stripe to stripe.
    pub rotation: Option<Rotation>,
    /// How a write smaller than a stripe updates parity.
    pub small_writes: Option<SmallWrites>,
    /// Which copy a read uses.
    pub mirror_reads: Option<MirrorReads>,
    /// Hot spares.
    pub spares: Option<Vec<String>>,
    /// How a spare is filled.
    pub rebuild: Option<RebuildTable>,
    /// Pool whose blocks are placed when they are first written.
    pub pool: Option<PoolTable>,
    /// Write-intent bitmap: writes set a bit on all drives before they begin, as in Linux md; none by default.
    pub bitmap: Option<BitmapTable>,
}

/// `[groups.bitmap]`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BitmapTable {
    /// Bytes of a drive that one bit covers; default 64 MiB.
    pub chunk: Option<Bytes>,
    /// Time between two passes of the daemon that clears bits; default 5 s.
    pub daemon: Option<DurationNs>,
    /// Time without a write after which the array is marked clean; default 200 ms.
    pub safe_mode: Option<DurationNs>,
}

impl ArrayFile {
    /// Gives all groups this level; only parity levels have spans.
    ///
    /// # Errors
    /// For a pool, which has no level other than its own.
    pub(super) fn change_level(&mut self, level: LevelName) -> Result<(), InputError> {
        let is_named = self.luns.is_some();
        for group in self.groups.iter_mut().flatten() {
            // LUNs name their group, which may have been named after its former level.
            let former = group.level.name();
            if group.pool.is_some() && group.level != level {
                let message = format!("a pool has its own placement rules; only {former} is allowed");
                return Err(key_error("level", message));
            }
            group.name = group.name.take().or(is_named.then_some(former));
            group.spans = group.spans.filter(|_| level.level().rules().has_spans);
            if level.level().rules().has_records != group.level.level().rules().has_records {
                // A sector is not a stripe unit, and levels without records have none.
                (group.stripe_unit, group.record, group.rebuild) = (None, None, None);
            }
            group.level = level;
        }
        Ok(())
    }
}

/// `level` of a group: a level of the model, or `jbod`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LevelName {
    /// Independent drives, each exported as a LUN.
    Jbod,
    /// A level of the model: `raid5`, `4+2`, `raidz2`, `draid2:8d:1s`.
    LimitScope(Level),
}

impl LevelName {
    /// Returns its forms in files.
    pub fn forms() -> Vec<&'static str> {
        std::iter::once("jbod").chain(Level::FORMS.iter().copied()).collect()
    }

    /// Parses the name of a level.
    pub fn parse(text: &str) -> Option<LevelName> {
        if text == "jbod" { Some(LevelName::Jbod) } else { Level::parse(text).map(LevelName::LimitScope) }
    }

    /// Returns the level of the model.
    pub fn level(self) -> Level {
        match self {
            LevelName::Jbod => Level::Concat,
            LevelName::LimitScope(level) => level,
        }
    }

    /// Returns its name in files.
    pub fn name(self) -> String {
        match self {
            LevelName::Jbod => "jbod".to_owned(),
            LevelName::LimitScope(level) => level.to_string(),
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
            // Serde requires names that live as long as the program; forms are few, and are stored only once.
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
    /// Steps in flight at once.
    pub steps: Option<u32>,
    /// Rate limit in bytes of the spare a second; none by default.
    pub rate_limit: Option<Rate>,
    /// Idle time after a host request before the next step, as a share of the step's own time.
    pub yield_to_host: Option<f64>,
}

/// `[groups.pool]`: with `parity_width`, `low_free` and `high_free`, segments that have not been written for long move
/// to double parity; without them everything is mirrored.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PoolTable {
    /// Unit of allocation and mirroring; by default the stripe unit.
    pub segment: Option<Bytes>,
    /// Raw space kept free for rebuilding, over all drives; none by default.
    pub spare: Option<Bytes>,
    /// Time of the controller to allocate a segment.
    pub allocation: Option<DurationNs>,
    /// Drives of a stripe, its two parities included.
    pub parity_width: Option<u32>,
    /// Free raw space below which moving begins.
    pub low_free: Option<Bytes>,
    /// Free raw space at which moving ends.
    pub high_free: Option<Bytes>,
}

/// `[[luns]]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LunTable {
    /// Its name.
    pub name: String,
    /// Its group; may be omitted if there is only one.
    pub group: Option<String>,
    /// First byte within the group; by default after the previous LUN.
    pub start: Option<Bytes>,
    /// Its size, rounded down to whole blocks; by default the rest of the group.
    pub size: Option<Bytes>,
    /// How a LUN of a pool was filled before the run; not at all by default.
    pub prefill: Option<Prefill>,
}

/// `[controller]`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ControllerTable {
    /// Processor time for each request of the host.
    pub request: Option<DurationNs>,
    /// Processor time for each command to a drive.
    pub command: Option<DurationNs>,
    /// Rate at which a processor computes parity.
    pub parity_rate: Option<Rate>,
    /// Processors that share the work.
    pub processors: Option<u32>,
    /// Most commands kept in a drive; the drives' own limits apply as well.
    pub drive_tags: Option<u32>,
    /// Its cache; none by default.
    pub cache: Option<CacheTable>,
}

/// `[controller.cache]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CacheTable {
    /// Size of the controller's memory.
    pub memory: Bytes,
    /// Part of it that holds data (of the flash drives, if the cache is on these).
    pub data: Option<Bytes>,
    /// Part of the data that may be dirty at once.
    pub dirty: Option<Bytes>,
    /// Page size.
    pub page: Option<Bytes>,
    /// Write policy: what acknowledges a write.
    pub writes: Option<CacheWrites>,
    /// Link to the partner controller that keeps a copy of each write.
    pub mirror: Option<String>,
    /// Whether a battery protects dirty data.
    pub battery: Option<bool>,
    /// Whether read data are kept.
    pub keeps_reads: Option<bool>,
    /// A miss reads whole multiples of this; by default only the requested data.
    pub fill: Option<Bytes>,
    /// Prefetching; none by default.
    pub prefetch: Option<PrefetchTable>,
    /// Policy that selects the page to evict: `lru`, `fifo`, `clock`, `arc`, `s3-fifo`, `sieve`, `lirs`, `twoq`,
    /// `slru`, `lfu` or `wtinylfu`; default `lru`.
    pub policy: Option<CachePolicy>,
    /// Order in which dirty pages are destaged.
    pub destage: Option<Destage>,
    /// Dirty share above which destaging no longer waits for an idle moment.
    pub high_water: Option<f64>,
    /// Dirty share at which destaging ends.
    pub low_water: Option<f64>,
    /// Most destages in flight at once.
    pub destages: Option<u32>,
    /// SSDs that hold the data instead of memory.
    pub flash_drives: Option<Vec<String>>,
}

/// `[controller.cache.prefetch]`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PrefetchTable {
    /// Sequential requests after which a stream is detected.
    pub after: Option<u32>,
    /// Bytes kept read ahead of a stream.
    pub ahead: Option<Bytes>,
    /// Streams that are tracked at once.
    pub streams: Option<u32>,
}

/// `[host]`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostTable {
    /// The links between host and controller, beginning at the host; data cross all of them. None by default.
    #[serde(default)]
    pub links: Vec<String>,
    /// Host adapter of the drives: it determines the controller's time for a command and its tags if `[controller]`
    /// states none.
    pub adapter: Option<HostProfile>,
}

/// `[[incidents]]`: exactly one of `fails` and `battery`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IncidentTable {
    /// Time of the incident.
    pub at: DurationNs,
    /// The drive that fails.
    pub fails: Option<String>,
    /// Event of the cache's battery.
    pub battery: Option<BatteryEvent>,
}

/// `battery` of an incident.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BatteryEvent {
    /// The battery fails.
    Fails,
    /// It is charged again.
    Returns,
}

impl ArrayFile {
    /// Returns this file's keys and tables with their sources, and those of `base` where it states none.
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
