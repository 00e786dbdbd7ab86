//! [`ArrayFile`]: the TOML form of an array with its drives, links, groups, LUNs and controller. See
//! docs/design/catalogue.md.
//!
//! Nearly every key is optional: missing values follow from a rule or from a link standard (see [`super::resolve()`]
//! and [`super::standards`]). Tables name their drives and links: `count = 7` with `id = "d"` creates `d0` to `d6`.
//! Lists of names accept ranges such as `"d0..d6"`.

use std::collections::BTreeMap;

use headstack_sim::array::description::{
    AboveMinimum, CachePolicy, CacheWrites, Destage, Level, MirrorReads, Prefill, Rotation, SmallWrites,
};
use headstack_sim::device::DeviceDescription;
use headstack_sim::drive::description::{Policy, ReadAhead, WriteCache};
use headstack_sim::ssd::description::FlashState;
use headstack_workload::InputError;
use headstack_workload::quantity::{Bytes, DurationNs, LinkRate, Rate};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::standards::LinkStandard;
use crate::hosts::HostProfile;
use crate::key_error;
use crate::ssd::former_state;
use crate::twin::TwinTable;

/// An array file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArrayFile {
    /// Name for display; by default the name of `base`.
    pub name: Option<String>,
    /// Base array, by id or as a path relative to this file. Keys and tables of this file replace those of the base.
    pub base: Option<String>,
    /// Maker.
    pub vendor: Option<String>,
    /// Model number.
    pub model: Option<String>,
    /// Year of introduction.
    pub year: Option<u32>,
    /// Notes for readers.
    pub notes: Option<String>,
    /// Drives, including spares.
    pub drives: Option<Vec<DrivesTable>>,
    /// Links between drives, controller and host. Without links, only the drives' own interfaces take time.
    pub links: Option<Vec<LinkTable>>,
    /// Rotation of the disks' spindles; by default, each has its own phase and speed.
    pub spindles: Option<SpindlesTable>,
    /// RAID groups.
    pub groups: Option<Vec<GroupTable>>,
    /// Exported LUNs; by default one per group, or one per drive of a `jbod`.
    pub luns: Option<Vec<LunTable>>,
    /// Controller between host and drives; by default one that takes no time.
    pub controller: Option<ControllerTable>,
    /// Connection to the host.
    pub host: Option<HostTable>,
    /// Failures and other events during the run.
    pub incidents: Option<Vec<IncidentTable>>,
    /// Sources as `CODE text`, as in drive files. The map's key is a key path, the path of a table that contains the
    /// key, or `default`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sources: BTreeMap<String, String>,
    /// Provenance of a calibrated model (twin); stored, but not used by the model.
    pub twin: Option<TwinTable>,
}

/// Table `[[drives]]`: a set of identical drives.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DrivesTable {
    /// Prefix of the drives' names; default `d`. Without a count, the name of the single drive.
    pub id: Option<String>,
    /// Drive: an id of the catalogue, or a path relative to this file that ends in `.toml`.
    pub drive: String,
    /// Number of drives; default 1. Tables with the same id continue the numbering.
    pub count: Option<u32>,
    /// Links to which the drives are attached, in equal consecutive runs: with eight drives on four cables, two drives
    /// share each cable.
    pub links: Option<Vec<String>>,
    /// Whether every drive is attached to all of the links and its commands alternate between them.
    pub multipath: Option<bool>,
    /// Condition for the completion of a write.
    pub write_cache: Option<WriteCache>,
    /// How far reads continue beyond the request.
    pub read_ahead: Option<ReadAhead>,
    /// Rate at which a drive accepts data, if lower than its interface rate (for example because it grants credits
    /// slowly).
    pub write_rate: Option<Rate>,
    /// Maximum number of commands that a drive holds.
    pub queue_depth: Option<u32>,
    /// Order in which a drive serves its queue.
    pub policy: Option<Policy>,
    /// Fraction of the queue from which the policy may choose.
    pub reordering: Option<f64>,
    /// Contents of SSDs when a run begins.
    pub state: Option<FlashState>,
    /// Former key for `state`: `true` for steady. Read but never written.
    #[serde(default, skip_serializing)]
    pub preconditioned: Option<bool>,
}

impl DrivesTable {
    /// Removes the keys that the new drives do not support, after the drives were replaced.
    pub(super) fn keep_known_to(&mut self, device: &DeviceDescription) {
        let of_disks = matches!(device, DeviceDescription::Disk(_));
        let of_flash = matches!(device, DeviceDescription::Ssd(_));
        self.write_cache = self.write_cache.filter(|_| of_disks);
        self.read_ahead = self.read_ahead.filter(|_| of_disks);
        self.policy = self.policy.filter(|_| of_disks);
        self.reordering = self.reordering.filter(|_| of_disks);
        self.write_rate = self.write_rate.filter(|_| of_disks || of_flash);
        (self.state, self.preconditioned) = (self.state().filter(|_| of_flash), None);
    }

    /// Returns the stated contents of SSDs.
    pub(super) fn state(&self) -> Option<FlashState> {
        self.state.clone().or(former_state(None, self.preconditioned))
    }
}

/// Table `[spindles]`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SpindlesTable {
    /// Whether the spindles are synchronized: all disks turn in phase at their stated speed; default false.
    pub synchronized: Option<bool>,
    /// Maximum relative difference between a spindle's speed and its stated speed, such as 0.001.
    pub speed_tolerance: Option<f64>,
}

/// Table `[[links]]`: a set of identical links.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkTable {
    /// Name of the link. With a count, the prefix of the links' names; the name then stands for all of them.
    pub name: String,
    /// Link standard, which determines the missing values.
    pub kind: LinkStandard,
    /// Number of links; default 1.
    pub count: Option<u32>,
    /// Links closer to the controller to which these links are attached, in equal consecutive runs.
    pub up: Option<Vec<String>>,
    /// Number of lanes of a SAS wide port or a PCI Express slot; default 1.
    pub lanes: Option<u32>,
    /// PCI Express generation.
    pub generation: Option<u32>,
    /// Payload rate without framing and encoding, or the bit rate of a serial line.
    pub rate: Option<LinkRate>,
    /// Time to deliver a command without its data.
    pub command: Option<DurationNs>,
    /// Overhead of a transfer towards the host, in addition to the time of its data.
    pub read: Option<DurationNs>,
    /// Overhead of a transfer away from the host, in addition to the time of its data.
    pub write: Option<DurationNs>,
    /// Latency that does not occupy the link.
    pub latency: Option<DurationNs>,
    /// Whether the link carries read and write data at the same time.
    pub full_duplex: Option<bool>,
    /// Parallel ATA: whether a drive releases the cable while it works on a command (TCQ); default false.
    pub overlapped: Option<bool>,
}

/// Table `[[groups]]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupTable {
    /// Name of the group; by default its level, if unique.
    pub name: Option<String>,
    /// RAID level.
    pub level: LevelName,
    /// Drives in the order of the layout; by default the drives that no other key names.
    pub drives: Option<Vec<String>>,
    /// Chunk size: number of consecutive bytes on a drive before the layout moves to the next drive.
    pub chunk_size: Option<Bytes>,
    /// Record size of RAIDZ and dRAID, for which `chunk_size` is the sector size; default 128 KiB.
    pub record: Option<Bytes>,
    /// Number of bytes used on each drive; by default the size of the smallest drive.
    pub drive_size: Option<Bytes>,
    /// Number of equal spans of RAID 50 and 60; default 1.
    pub spans: Option<u32>,
    /// How parity rotates between stripes.
    pub rotation: Option<Rotation>,
    /// How a write smaller than a stripe updates parity.
    pub small_writes: Option<SmallWrites>,
    /// Which copy serves a read.
    pub mirror_reads: Option<MirrorReads>,
    /// Hot spares.
    pub spares: Option<Vec<String>>,
    /// How a spare is rebuilt.
    pub rebuild: Option<RebuildTable>,
    /// Pool that allocates blocks when they are first written.
    pub pool: Option<PoolTable>,
    /// Write-intent bitmap as in Linux md: before a write begins, its bit is set on all drives. None by default.
    pub bitmap: Option<BitmapTable>,
    /// Partial parity log as in Linux md (RAID 5): before a stripe is written, its partial parity is written to the drive
    /// with the parity. None by default.
    pub ppl: Option<PplTable>,
}

/// Table `[groups.ppl]`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PplTable {
    /// Space for the log on each drive; default 1 MiB.
    pub area: Option<Bytes>,
}

/// Table `[groups.bitmap]`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BitmapTable {
    /// Number of bytes on a drive covered by one bit; default 64 MiB.
    pub chunk: Option<Bytes>,
    /// Interval between passes of the daemon that clears bits; default 5 s.
    pub daemon: Option<DurationNs>,
    /// Time without writes after which the array is marked clean; default 200 ms.
    pub safe_mode: Option<DurationNs>,
}

impl ArrayFile {
    /// Sets the level of all groups. Removes the spans unless it is a parity level.
    ///
    /// # Errors
    /// If the array has a pool, whose level cannot change.
    pub(super) fn change_level(&mut self, level: LevelName) -> Result<(), InputError> {
        let is_named = self.luns.is_some();
        for group in self.groups.iter_mut().flatten() {
            // LUNs name their group, whose name may have been its previous level.
            let former = group.level.name();
            if group.pool.is_some() && group.level != level {
                let message = format!("a pool has its own placement rules and must be {former}");
                return Err(key_error("level", message));
            }
            group.name = group.name.take().or(is_named.then_some(former));
            group.spans = group.spans.filter(|_| level.level().rules().has_spans);
            group.ppl = group.ppl.filter(|_| level.level() == Level::Raid5);
            if level.level().rules().has_records != group.level.level().rules().has_records {
                // A sector is not a chunk, and levels without records have no record size.
                (group.chunk_size, group.record, group.rebuild) = (None, None, None);
            }
            group.level = level;
        }
        Ok(())
    }
}

/// Value of the key `level` of a group: a level of the model, or `jbod`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LevelName {
    /// Independent drives, each exported as a LUN.
    Jbod,
    /// A level of the model, such as `raid5`, `4+2`, `raidz2` or `draid2:8d:1s`.
    LimitScope(Level),
}

impl LevelName {
    /// Returns the forms of level names in files.
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

    /// Returns the level's name in files.
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
            // Serde requires `'static` names; the forms are few and are stored only once.
            static FORMS: std::sync::LazyLock<Vec<&str>> = std::sync::LazyLock::new(LevelName::forms);
            D::Error::unknown_variant(&text, &FORMS)
        })
    }
}

/// Table `[groups.rebuild]`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RebuildTable {
    /// Number of bytes per drive rebuilt in one step.
    pub step: Option<Bytes>,
    /// Number of concurrent steps.
    pub steps: Option<u32>,
    /// Rate limit in bytes per second written to the spare; none by default.
    pub rate_limit: Option<Rate>,
    /// Idle time after a host request before the next step, as a multiple of the step's duration.
    pub yield_to_host: Option<f64>,
    /// Rate of each drive up to which a rebuild or check of Linux md proceeds next to the host (`sync_speed_min`).
    pub minimum_rate: Option<Rate>,
    /// Behavior above that rate while the host is busy.
    pub above_minimum: Option<AboveMinimum>,
    /// Bytes of each drive between two looks at the rate while the host is busy.
    pub window: Option<Bytes>,
}

/// Table `[groups.pool]`. With `parity_width`, `low_free` and `high_free`, segments that have not been written for a
/// long time move to double parity. Without these keys, everything is mirrored.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PoolTable {
    /// Unit of allocation and mirroring; by default the chunk size.
    pub segment: Option<Bytes>,
    /// Raw space kept free for rebuilding, total of all drives; none by default.
    pub spare: Option<Bytes>,
    /// Controller time to allocate a segment.
    pub allocation: Option<DurationNs>,
    /// Number of drives in a stripe, including two for parity.
    pub parity_width: Option<u32>,
    /// Free raw space below which segments start to move.
    pub low_free: Option<Bytes>,
    /// Free raw space at which segments stop moving.
    pub high_free: Option<Bytes>,
}

/// Table `[[luns]]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LunTable {
    /// Name of the LUN.
    pub name: String,
    /// Group of the LUN; may be omitted if there is only one group.
    pub group: Option<String>,
    /// Start within the group, in bytes; by default the end of the previous LUN.
    pub start: Option<Bytes>,
    /// Size of the LUN, rounded down to whole blocks; by default the rest of the group.
    pub size: Option<Bytes>,
    /// How a LUN of a pool is filled before the run; by default it is empty.
    pub prefill: Option<Prefill>,
}

/// Table `[controller]`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ControllerTable {
    /// Processor time per host request.
    pub request: Option<DurationNs>,
    /// Processor time per drive command.
    pub command: Option<DurationNs>,
    /// Rate at which a processor computes parity.
    pub parity_rate: Option<Rate>,
    /// Number of processors that share the work.
    pub processors: Option<u32>,
    /// Maximum number of commands queued in a drive. The drive's own limit also applies.
    pub drive_tags: Option<u32>,
    /// Cache of the controller; none by default.
    pub cache: Option<CacheTable>,
}

/// Table `[controller.cache]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CacheTable {
    /// Size of the controller's memory.
    pub memory: Bytes,
    /// Size of the part that holds data: of the memory, or of the flash drives if the cache is on them.
    pub data: Option<Bytes>,
    /// Maximum amount of dirty data.
    pub dirty: Option<Bytes>,
    /// Page size.
    pub page: Option<Bytes>,
    /// Write policy: what a write must reach before it is acknowledged.
    pub writes: Option<CacheWrites>,
    /// Link to the partner controller, which keeps a copy of each write.
    pub mirror: Option<String>,
    /// Whether a battery protects dirty data.
    pub battery: Option<bool>,
    /// Whether the cache keeps read data.
    pub keeps_reads: Option<bool>,
    /// Unit of reads on a miss; by default only the requested data is read.
    pub fill: Option<Bytes>,
    /// Prefetching; none by default.
    pub prefetch: Option<PrefetchTable>,
    /// Eviction policy: `lru`, `fifo`, `clock`, `arc`, `s3-fifo`, `sieve`, `lirs`, `twoq`, `slru`, `lfu` or `wtinylfu`;
    /// default `lru`.
    pub policy: Option<CachePolicy>,
    /// Order in which dirty pages are destaged.
    pub destage: Option<Destage>,
    /// Dirty fraction above which destaging no longer waits for an idle moment.
    pub high_water: Option<f64>,
    /// Dirty fraction at which destaging ends.
    pub low_water: Option<f64>,
    /// Maximum number of concurrent destages.
    pub destages: Option<u32>,
    /// SSDs that hold the cached data instead of memory.
    pub flash_drives: Option<Vec<String>>,
}

/// Table `[controller.cache.prefetch]`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PrefetchTable {
    /// Number of sequential requests after which a stream is detected.
    pub after: Option<u32>,
    /// Number of bytes read ahead of a stream.
    pub ahead: Option<Bytes>,
    /// Number of streams tracked at once.
    pub streams: Option<u32>,
}

/// Table `[host]`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostTable {
    /// Links between host and controller, starting at the host; data crosses all of them. None by default.
    #[serde(default)]
    pub links: Vec<String>,
    /// Host adapter of the drives. Without values in `[controller]`, it determines the controller's time per command
    /// and its tags.
    pub adapter: Option<HostProfile>,
}

/// Table `[[incidents]]`, with exactly one of `fails` and `battery`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IncidentTable {
    /// Time of the incident.
    pub at: DurationNs,
    /// Name of the drive that fails.
    pub fails: Option<String>,
    /// Event of the cache's battery.
    pub battery: Option<BatteryEvent>,
}

/// Value of the key `battery` of an incident.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BatteryEvent {
    /// The battery fails.
    Fails,
    /// The battery is charged again.
    Returns,
}

impl ArrayFile {
    /// Merges the file with `base`: the keys, tables and sources of this file take precedence.
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
