//! [`LayerDescription`]: layers of software or network between an application and its devices. See
//! docs/design/stacks.md.

mod block_cache;
mod ceph;
mod files;
mod host_cache;
mod journal;
mod limits;
mod md_journal;
mod page_cache;
mod zfs;

use serde::{Deserialize, Serialize};

use crate::error::{InvalidDescription, fault};
pub use block_cache::{
    BcacheRules, BlockCacheDescription, CacheMode, CacheSoftware, DmCacheRules, DmWritecacheRules, WhenFull,
};
pub(crate) use ceph::{BLOCK_BYTES, OsdLayout};
pub use ceph::{
    CephDescription, ClusterNetwork, ErasureAccess, ErasureCode, FailureDomain, OBJECT_BYTES, OsdCpu, OsdScheduler,
    Recovery, Redundancy, Share,
};
pub use files::FileDescription;
pub(crate) use files::check_files;
pub use host_cache::{HostCacheDescription, HostCacheMode};
pub use journal::{JournalDescription, JournalKind};
pub use limits::{InstanceLimitDescription, NetworkDescription};
pub(crate) use md_journal::check as check_md_journal;
pub use md_journal::{MdJournalDescription, MdJournalMode};
pub use page_cache::PageCacheDescription;
pub use zfs::{
    ArcMaximum, IndirectRule, LogBias, LogBlockSizes, PrimaryCache, Sync, ZfsDescription, ZfsParameters,
    dirty_data_max_bytes,
};
pub(crate) use zfs::{PoolShape, Reserved};

/// A layer between an application and its devices.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum LayerDescription {
    /// Limits of a cloud instance.
    InstanceLimit(InstanceLimitDescription),
    /// The cache of a cloud host in front of a volume.
    HostCache(HostCacheDescription),
    /// A network to a target on another host.
    Network(NetworkDescription),
    /// A file system that makes data durable with a journal. A second system below holds the journal if it is external.
    Journal(JournalDescription),
    /// The page cache of a host.
    PageCache(PageCacheDescription),
    /// OpenZFS over a pool, with an optional log, cache and special device.
    Zfs(Box<ZfsDescription>),
    /// A cache on a fast device in front of a slow one.
    BlockCache(Box<BlockCacheDescription>),
    /// The write journal of Linux md over an array; a second system below is the journal device.
    MdJournal(MdJournalDescription),
    /// An RBD image in a pool of a Ceph cluster: the system below is the drive of each OSD, a second one the DB device.
    Ceph(Box<CephDescription>),
}

impl LayerDescription {
    /// Returns the kind of the layer, for display.
    pub fn kind(&self) -> &'static str {
        match self {
            LayerDescription::InstanceLimit(_) => "instance limit",
            LayerDescription::HostCache(_) => "host cache",
            LayerDescription::Network(_) => "network",
            LayerDescription::Journal(journal) => match journal.kind {
                JournalKind::Ext4 => "ext4",
                JournalKind::Xfs => "XFS",
            },
            LayerDescription::PageCache(_) => "page cache",
            LayerDescription::Zfs(_) => "ZFS",
            LayerDescription::BlockCache(cache) => cache.name(),
            LayerDescription::MdJournal(_) => "md journal",
            LayerDescription::Ceph(_) => "Ceph",
        }
    }
}

/// Rejects impossible layers over systems of these shapes.
///
/// # Errors
/// The first impossible value.
pub(crate) fn check(layer: &LayerDescription, below: &[PoolShape]) -> Result<(), InvalidDescription> {
    let below_bytes: Vec<u64> = below.iter().map(PoolShape::bytes).collect();
    let below_bytes = below_bytes.as_slice();
    match layer {
        LayerDescription::Zfs(zfs) => zfs::check(zfs, below),
        LayerDescription::BlockCache(cache) => block_cache::check(cache, below_bytes),
        // Checked with the description of its array, by `check_md_journal`.
        LayerDescription::MdJournal(_) => Ok(()),
        LayerDescription::Ceph(ceph) => ceph::check(ceph, below),
        LayerDescription::InstanceLimit(limit) => {
            check_one(layer.kind(), below_bytes)?;
            limits::check_instance(limit)
        }
        LayerDescription::HostCache(cache) => {
            check_one(layer.kind(), below_bytes)?;
            host_cache::check(cache)
        }
        LayerDescription::Network(network) => {
            check_one(layer.kind(), below_bytes)?;
            limits::check_network(network)
        }
        LayerDescription::Journal(journal) => {
            let needed = if journal.external { 2 } else { 1 };
            if below_bytes.len() != needed {
                let count = below_bytes.len();
                return fault("stack.below", format!("{count} systems below a file system; must be {needed}"));
            }
            journal::check(journal, below_bytes[0])
        }
        LayerDescription::PageCache(cache) => {
            check_one(layer.kind(), below_bytes)?;
            page_cache::check(cache)
        }
    }
}

fn check_one(kind: &str, below_bytes: &[u64]) -> Result<(), InvalidDescription> {
    match below_bytes {
        [_] => Ok(()),
        _ => fault("stack.below", format!("{} systems below a layer `{kind}`; must be 1", below_bytes.len())),
    }
}

impl LayerDescription {
    /// Returns the name of a system below besides the first, as in counters and faults.
    pub fn port_name(&self, port: usize) -> String {
        match self {
            LayerDescription::Journal(_) | LayerDescription::MdJournal(_) => "journal".to_owned(),
            LayerDescription::Zfs(zfs) => zfs.port_name(port),
            LayerDescription::BlockCache(_) => "cache".to_owned(),
            LayerDescription::Ceph(ceph) => ceph.port_name(port),
            LayerDescription::InstanceLimit(_)
            | LayerDescription::HostCache(_)
            | LayerDescription::Network(_)
            | LayerDescription::PageCache(_) => format!("system {port}"),
        }
    }

    /// Whether each byte lies at its own address in the first system below.
    pub fn keeps_addresses(&self) -> bool {
        match self {
            LayerDescription::InstanceLimit(_)
            | LayerDescription::HostCache(_)
            | LayerDescription::Network(_)
            | LayerDescription::PageCache(_) => true,
            LayerDescription::Journal(_)
            | LayerDescription::Zfs(_)
            | LayerDescription::BlockCache(_)
            | LayerDescription::MdJournal(_)
            | LayerDescription::Ceph(_) => false,
        }
    }

    /// Returns the capacity that it exports over a first system of `below_bytes`.
    pub fn capacity_bytes(&self, below_bytes: u64) -> u64 {
        match self {
            LayerDescription::InstanceLimit(_)
            | LayerDescription::HostCache(_)
            | LayerDescription::Network(_)
            | LayerDescription::PageCache(_)
            | LayerDescription::BlockCache(_)
            | LayerDescription::MdJournal(_) => below_bytes,
            LayerDescription::Journal(journal) => journal.capacity_bytes(below_bytes),
            LayerDescription::Zfs(zfs) => zfs.capacity_bytes,
            LayerDescription::Ceph(ceph) => ceph.capacity_bytes,
        }
    }

    /// Returns the block size that it exports over a first system with blocks of `below_bytes`.
    pub fn block_bytes(&self, below_bytes: u32) -> u32 {
        match self {
            LayerDescription::InstanceLimit(_)
            | LayerDescription::HostCache(_)
            | LayerDescription::Network(_)
            | LayerDescription::Journal(_)
            | LayerDescription::PageCache(_)
            | LayerDescription::Zfs(_)
            | LayerDescription::MdJournal(_)
            | LayerDescription::Ceph(_) => below_bytes,
            LayerDescription::BlockCache(cache) => cache.block_bytes(below_bytes),
        }
    }
}
