//! [`StackFile`]: the TOML form of a stack: its layers from the application down, and the system below them.

use std::collections::BTreeMap;

use headstack_workload::quantity::{Bytes, DurationNs, Rate};
use serde::{Deserialize, Serialize};

use super::cache_table::{BcacheTable, DmCacheTable, DmWritecacheTable};
use super::ceph_table::CephTable;
use super::instances::Instance;
use super::md_journal_table::MdJournalTable;
use super::protocols::Protocol;
use super::zfs_table::ZfsTable;
use crate::file::is_default;

/// A stack file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StackFile {
    /// Name, for display.
    pub name: String,
    /// Notes for readers.
    pub notes: Option<String>,
    /// Layers and what is below them.
    pub stack: StackTable,
    /// Files of the file system; without any, all its space is one file.
    #[serde(default, skip_serializing_if = "is_default")]
    pub files: Vec<FileTable>,
    /// Cache of file pages.
    #[serde(default, skip_serializing_if = "is_default")]
    pub page_cache: PageCacheTable,
    /// File system ext4.
    #[serde(default, skip_serializing_if = "is_default")]
    pub ext4: JournalTable,
    /// File system XFS.
    #[serde(default, skip_serializing_if = "is_default")]
    pub xfs: JournalTable,
    /// OpenZFS.
    #[serde(default, skip_serializing_if = "is_default")]
    pub zfs: ZfsTable,
    /// bcache.
    #[serde(default, skip_serializing_if = "is_default")]
    pub bcache: BcacheTable,
    /// dm-cache, as lvmcache sets it up.
    #[serde(default, skip_serializing_if = "is_default")]
    pub dm_cache: DmCacheTable,
    /// dm-writecache.
    #[serde(default, skip_serializing_if = "is_default")]
    pub dm_writecache: DmWritecacheTable,
    /// Write journal of Linux md RAID 5 and 6.
    #[serde(default, skip_serializing_if = "is_default")]
    pub md_journal: MdJournalTable,
    /// Ceph RBD.
    #[serde(default, skip_serializing_if = "is_default")]
    pub ceph: CephTable,
    /// Network to the host of the layers below.
    #[serde(default, skip_serializing_if = "is_default")]
    pub network: NetworkTable,
    /// Limits of a cloud instance.
    #[serde(default, skip_serializing_if = "is_default")]
    pub instance: InstanceTable,
    /// Sources, as in [`crate::file::DriveFile::sources`].
    #[serde(default, skip_serializing_if = "is_default")]
    pub sources: BTreeMap<String, String>,
}

/// Table `[stack]`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StackTable {
    /// Layers, from the application down.
    pub layers: Vec<LayerName>,
    /// Drive, array, volume or stack below the layers: an id or name in the catalogue, or a path that ends in `.toml`.
    pub over: String,
    /// System that holds an external journal, named as `over`.
    pub journal: Option<String>,
}

/// Table `[[files]]`: a file, after those before it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileTable {
    /// Name, by which scenarios use the file as a LUN.
    pub name: String,
    /// Size; the rest of the file system by default.
    pub size: Option<Bytes>,
}

/// Name of a layer, and of the table with its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LayerName {
    /// Table `[page_cache]`.
    PageCache,
    /// Table `[ext4]`.
    Ext4,
    /// Table `[xfs]`.
    Xfs,
    /// Table `[zfs]`.
    Zfs,
    /// Table `[bcache]`.
    Bcache,
    /// Table `[dm_cache]`.
    DmCache,
    /// Table `[dm_writecache]`.
    DmWritecache,
    /// Table `[md_journal]`.
    MdJournal,
    /// Table `[ceph]`.
    Ceph,
    /// Table `[network]`.
    Network,
    /// Table `[instance]`.
    Instance,
}

impl LayerName {
    /// All layers.
    pub const ALL: [LayerName; 11] = [
        LayerName::PageCache,
        LayerName::Ext4,
        LayerName::Xfs,
        LayerName::Zfs,
        LayerName::Bcache,
        LayerName::DmCache,
        LayerName::DmWritecache,
        LayerName::MdJournal,
        LayerName::Ceph,
        LayerName::Network,
        LayerName::Instance,
    ];

    /// Returns the name in files.
    pub fn key(self) -> &'static str {
        match self {
            LayerName::PageCache => "page_cache",
            LayerName::Ext4 => "ext4",
            LayerName::Xfs => "xfs",
            LayerName::Zfs => "zfs",
            LayerName::Bcache => "bcache",
            LayerName::DmCache => "dm_cache",
            LayerName::DmWritecache => "dm_writecache",
            LayerName::MdJournal => "md_journal",
            LayerName::Ceph => "ceph",
            LayerName::Network => "network",
            LayerName::Instance => "instance",
        }
    }
}

/// Table `[page_cache]`; missing values are the defaults of Linux.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PageCacheTable {
    /// Memory for file pages.
    pub memory: Option<Bytes>,
    /// `vm.dirty_background_ratio`, in percent.
    pub background_ratio: Option<u32>,
    /// `vm.dirty_ratio`, in percent.
    pub dirty_ratio: Option<u32>,
    /// `vm.dirty_expire_centisecs`.
    pub expire: Option<DurationNs>,
    /// `vm.dirty_writeback_centisecs`.
    pub writeback_interval: Option<DurationNs>,
    /// `queue/max_sectors_kb`.
    pub write_size: Option<Bytes>,
    /// `queue/nr_requests`.
    pub writes: Option<u32>,
    /// `queue/read_ahead_kb`.
    pub read_ahead: Option<Bytes>,
    /// Time of a system call that finds its page in memory.
    pub call: Option<DurationNs>,
    /// Rate of copies between cache and application.
    pub copy: Option<Rate>,
}

/// Tables `[ext4]` and `[xfs]`; missing values are the defaults of mkfs and mount.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JournalTable {
    /// Size of the journal.
    pub size: Option<Bytes>,
    /// Time after which a transaction is committed without a sync.
    pub interval: Option<DurationNs>,
    /// Whether commits flush the device's cache.
    pub barriers: Option<bool>,
    /// Whether the device takes forced writes (FUA).
    pub forced_writes: Option<bool>,
    /// Blocks of metadata of a commit after data were allocated.
    pub allocation_blocks: Option<u32>,
    /// Bytes of the file that are allocated and written at the start; the whole file by default.
    pub written: Option<Bytes>,
}

/// Table `[network]`, with a `protocol` that gives missing values.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetworkTable {
    /// Protocol.
    pub protocol: Option<Protocol>,
    /// Rate of the wire, for example 25Gb/s.
    pub speed: Option<Rate>,
    /// Time of a message without payload to the target and back.
    pub round_trip: Option<DurationNs>,
    /// Most requests without an answer.
    pub window: Option<u32>,
    /// Processor time of a request at the initiator.
    pub initiator: Option<DurationNs>,
    /// Cores of the initiator.
    pub initiator_cores: Option<u32>,
    /// Processor time of a request on one core of the target.
    pub target: Option<DurationNs>,
    /// Cores of the target.
    pub target_cores: Option<u32>,
}

/// Table `[instance]`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InstanceTable {
    /// Type of the instance, such as `m6i.large`.
    #[serde(rename = "type")]
    pub kind: Option<Instance>,
    /// Host caching of the volume.
    pub host_cache: Option<HostCaching>,
    /// Size of the host cache that the volume can use.
    pub host_cache_size: Option<Bytes>,
    /// Time of a request that the host cache answers.
    pub host_cache_latency: Option<DurationNs>,
    /// Time between two flushes of dirty pages to the volume.
    pub host_cache_flush: Option<DurationNs>,
    /// Most writes of a flush at the volume.
    pub host_cache_writes: Option<u32>,
    /// Longest write of a flush.
    pub host_cache_write_size: Option<Bytes>,
}

/// Host caching of a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HostCaching {
    /// No cache: only the uncached limits apply.
    None,
    /// A cache for reads; writes go through.
    ReadOnly,
    /// A cache for reads and writes.
    ReadWrite,
}
