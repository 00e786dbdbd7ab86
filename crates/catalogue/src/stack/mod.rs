//! Stacks: the TOML form and the defaults of the layers. See docs/design/stacks.md.

pub mod cache_table;
mod caches;
mod ceph;
pub mod ceph_table;
pub mod file;
mod files;
mod host_cache;
pub mod instances;
mod journals;
mod md_journal;
pub mod md_journal_table;
pub mod protocols;
mod zfs;
pub mod zfs_table;

use headstack_sim::stack::description::{LayerDescription, NetworkDescription, PageCacheDescription};
use headstack_sim::{StackDescription, SystemDescription};
use headstack_workload::quantity::{Bytes, DurationNs, Rate};
use headstack_workload::{Document, InputError};

use crate::resolve::{Derived, check_source, source_of};
use crate::volume::types::VolumeType;
use crate::{ResolvedDevice, ResolvedSystem};
use file::{LayerName, StackFile};

/// A complete stack with its file.
#[derive(Clone, Debug, PartialEq)]
pub struct ResolvedStack {
    /// Description with every value that the model needs.
    pub description: SystemDescription,
    /// The file as it was read.
    pub file: StackFile,
    /// Values that the file does not state.
    pub derived: Vec<Derived>,
}

impl ResolvedStack {
    /// Returns the source of a key, like [`crate::Resolved::source`].
    pub fn source(&self, key: &str) -> Option<&str> {
        source_of(&self.file.sources, key)
    }
}

/// A system below a stack.
#[derive(Clone, Debug, PartialEq)]
pub struct Below {
    /// Its description.
    pub description: SystemDescription,
    /// Type of the cloud volume; `None` for other systems, and for volumes that state no type.
    pub volume: Option<VolumeType>,
}

impl From<ResolvedSystem> for Below {
    fn from(system: ResolvedSystem) -> Below {
        let volume = match &system {
            ResolvedSystem::Drive(ResolvedDevice::Volume(volume)) => volume.file.volume.kind,
            ResolvedSystem::Drive(ResolvedDevice::Disk(_) | ResolvedDevice::Ssd(_))
            | ResolvedSystem::Array(_)
            | ResolvedSystem::Stack(_) => None,
        };
        Below { description: system.description(), volume }
    }
}

/// Whether a file describes a stack.
pub fn is_stack(document: &Document) -> bool {
    document.states("stack")
}

/// Completes a stack file. `load` returns the system of a name.
///
/// # Errors
/// Impossible or missing values, and errors of the systems below.
pub fn resolve(
    document: &Document,
    load: &dyn Fn(&str) -> Result<Below, InputError>,
) -> Result<ResolvedStack, InputError> {
    let file: StackFile = document.read()?;
    file.sources.iter().try_for_each(|(key, source)| check_source(document, key, source))?;
    check_layers(document, &file)?;
    let Below { description: mut below, volume } = load(&file.stack.over)?;
    let mut completer = Completer { document, file: &file, derived: Vec::new() };
    for &name in file.stack.layers.iter().rev() {
        let mut systems = vec![below];
        for device in completer.devices(name)? {
            systems.push(load(device)?.description);
        }
        let layer = completer.layer(name, &systems)?;
        below = completer.put(layer, systems)?;
        if name == LayerName::Instance
            && let Some(cache) = completer.host_cache(volume, below.capacity_bytes())?
        {
            below = completer.put(LayerDescription::HostCache(cache), vec![below])?;
        }
    }
    completer.check_files(&below)?;
    below.check().map_err(|fault| document.error(&fault.key, fault.message))?;
    let derived = completer.derived;
    Ok(ResolvedStack { description: below, file, derived })
}

/// Rejects layers in an impossible order, and tables without their layer.
fn check_layers(document: &Document, file: &StackFile) -> Result<(), InputError> {
    let layers = &file.stack.layers;
    if layers.is_empty() {
        return Err(document.error("stack.layers", "no layer; at least one is needed"));
    }
    for (number, layer) in layers.iter().enumerate() {
        if layers[..number].contains(layer) {
            let message =
                format!("`{}` twice; put the second one into a stack of its own, and that below", layer.key());
            return Err(document.error("stack.layers", message));
        }
    }
    let place = |name: LayerName| layers.iter().position(|&layer| layer == name);
    let file_system = place(LayerName::Ext4).or(place(LayerName::Xfs));
    if place(LayerName::Ext4).is_some() && place(LayerName::Xfs).is_some() {
        return Err(document.error("stack.layers", "`ext4` and `xfs`; one file system is allowed"));
    }
    if place(LayerName::Ceph).is_some_and(|at| at + 1 < layers.len()) {
        return Err(
            document.error("stack.layers", "a layer below `ceph`; it must be the last, over the drive of an OSD")
        );
    }
    if place(LayerName::Zfs).is_some_and(|at| at + 1 < layers.len()) {
        return Err(document.error("stack.layers", "a layer below `zfs`; it must be the last, over a pool"));
    }
    if place(LayerName::MdJournal).is_some_and(|at| at + 1 < layers.len()) {
        return Err(document.error("stack.layers", "a layer below `md_journal`; it must be the last, over an array"));
    }
    let caches = [LayerName::Bcache, LayerName::DmCache, LayerName::DmWritecache];
    for cache in caches {
        let above = [file_system, place(LayerName::PageCache)].into_iter().flatten().max();
        if place(cache).is_some_and(|at| above.is_some_and(|above| at < above)) {
            let message = format!("`{}` is above the file system or page cache; it must be below", cache.key());
            return Err(document.error("stack.layers", message));
        }
    }
    if place(LayerName::PageCache) > file_system && file_system.is_some() {
        return Err(document.error("stack.layers", "`page_cache` is below the file system; it must be above"));
    }
    if file.stack.journal.is_some() && file_system.is_none() {
        return Err(document.error("stack.journal", "a journal without `ext4` or `xfs` among the layers"));
    }
    for name in LayerName::ALL {
        if document.states(name.key()) && place(name).is_none() {
            return Err(document.error(name.key(), format!("`{}` is not among stack.layers", name.key())));
        }
    }
    Ok(())
}

/// Completes the layers of a file, and collects what the file does not state.
struct Completer<'a> {
    document: &'a Document,
    file: &'a StackFile,
    derived: Vec<Derived>,
}

impl Completer<'_> {
    /// Puts a layer over systems.
    fn put(&self, layer: LayerDescription, below: Vec<SystemDescription>) -> Result<SystemDescription, InputError> {
        let mut stack = StackDescription { name: self.file.name.clone(), layer, below, files: Vec::new() };
        self.place_files(&mut stack)?;
        Ok(SystemDescription::Stack(Box::new(stack)))
    }

    /// Returns the names of the systems of a layer besides the one that holds the data.
    fn devices(&self, name: LayerName) -> Result<Vec<&str>, InputError> {
        Ok(match name {
            LayerName::Ext4 | LayerName::Xfs => self.file.stack.journal.as_deref().into_iter().collect(),
            LayerName::Zfs => self.file.zfs.devices().collect(),
            LayerName::Ceph => self.file.ceph.devices().collect(),
            LayerName::Bcache | LayerName::DmCache | LayerName::DmWritecache | LayerName::MdJournal => {
                self.cache_device(name)?.into_iter().collect()
            }
            LayerName::PageCache | LayerName::Network | LayerName::Instance => Vec::new(),
        })
    }

    /// Completes a layer over systems, the first of which holds the data.
    fn layer(&mut self, name: LayerName, systems: &[SystemDescription]) -> Result<LayerDescription, InputError> {
        let below = &systems[0];
        Ok(match name {
            LayerName::Bcache => LayerDescription::BlockCache(Box::new(self.bcache(&systems[1])?)),
            LayerName::DmCache => LayerDescription::BlockCache(Box::new(self.dm_cache(&systems[1])?)),
            LayerName::DmWritecache => LayerDescription::BlockCache(Box::new(self.dm_writecache(&systems[1])?)),
            LayerName::MdJournal => LayerDescription::MdJournal(self.md_journal(&systems[1])),
            LayerName::PageCache => LayerDescription::PageCache(self.page_cache()?),
            LayerName::Ext4 | LayerName::Xfs => LayerDescription::Journal(self.journal(name, below)?),
            LayerName::Zfs => LayerDescription::Zfs(Box::new(self.zfs(below)?)),
            LayerName::Ceph => LayerDescription::Ceph(Box::new(self.ceph(systems)?)),
            LayerName::Network => LayerDescription::Network(self.network()?),
            LayerName::Instance => match self.file.instance.kind {
                Some(instance) => LayerDescription::InstanceLimit(instance.limits()),
                None => return Err(self.missing("instance.type", "for example m6i.large")),
            },
        })
    }

    fn missing(&self, key: &str, example: &str) -> InputError {
        self.document.error(key, format!("this key is missing; set it, {example}"))
    }

    /// Returns a stated value, or a default, which it notes with its rule.
    fn or_default<T: serde::Serialize + Copy>(&mut self, key: &str, stated: Option<T>, default: T, rule: &str) -> T {
        stated.unwrap_or_else(|| {
            self.derived.push(Derived::new(key, &default, rule));
            default
        })
    }

    /// Returns a stated size, or a default in bytes.
    fn bytes(&mut self, key: &str, stated: Option<Bytes>, default: u64, rule: &str) -> u64 {
        self.or_default(key, stated, Bytes(default), rule).0
    }

    /// Returns a stated time, or a default in ns.
    fn duration(&mut self, key: &str, stated: Option<DurationNs>, default: u64, rule: &str) -> Result<u64, InputError> {
        let DurationNs(ns) = self.or_default(key, stated, DurationNs(default as i64), rule);
        u64::try_from(ns).map_err(|_| self.document.error(key, "a negative time is not allowed; must be 0 or more"))
    }

    fn page_cache(&mut self) -> Result<PageCacheDescription, InputError> {
        let table = &self.file.page_cache;
        let Some(memory) = table.memory else {
            return Err(self.missing("page_cache.memory", "the memory that is free for file pages, for example 64GiB"));
        };
        let linux = "default of Linux (vm and queue settings)";
        let measured = "buffered writes of 4 and 64 KiB took 1.8 and 8.6 us on a virtual machine (fio psync, 2026); 0.5 to 4 us elsewhere";
        let copy_rate = self.or_default("page_cache.copy", table.copy, Rate(9e9), measured).0;
        Ok(PageCacheDescription {
            memory_bytes: memory.0,
            background_percent: self.or_default("page_cache.background_ratio", table.background_ratio, 10, linux),
            dirty_percent: self.or_default("page_cache.dirty_ratio", table.dirty_ratio, 20, linux),
            expire_ns: self.duration("page_cache.expire", table.expire, 30_000_000_000, linux)?,
            writeback_interval_ns: self.duration(
                "page_cache.writeback_interval",
                table.writeback_interval,
                5_000_000_000,
                linux,
            )?,
            write_bytes_max: self.bytes_u32("page_cache.write_size", table.write_size, 1280 << 10, linux)?,
            writes_max: self.or_default("page_cache.writes", table.writes, 128, linux),
            read_ahead_bytes: self.bytes_u32("page_cache.read_ahead", table.read_ahead, 128 << 10, linux)?,
            call_ns: self.duration("page_cache.call", table.call, 1_400, measured)?,
            ns_per_byte: 1e9 / copy_rate,
        })
    }

    fn bytes_u32(&mut self, key: &str, stated: Option<Bytes>, default: u32, rule: &str) -> Result<u32, InputError> {
        let bytes = self.bytes(key, stated, u64::from(default), rule);
        u32::try_from(bytes).map_err(|_| self.document.error(key, "too large; must be below 4GiB"))
    }

    fn network(&mut self) -> Result<NetworkDescription, InputError> {
        let table = &self.file.network;
        let Some(protocol) = table.protocol else {
            return Err(self.missing("network.protocol", "nvme-tcp, nvme-rdma, iscsi or nfs"));
        };
        let Some(speed) = table.speed else {
            return Err(self.missing("network.speed", "for example 25Gb/s"));
        };
        let network = protocol.network(speed.0 * 8.0);
        let rule = "network.protocol";
        Ok(NetworkDescription {
            round_trip_ns: self.duration("network.round_trip", table.round_trip, network.round_trip_ns, rule)?,
            window: self.or_default("network.window", table.window, network.window, rule),
            initiator_ns: self.duration("network.initiator", table.initiator, network.initiator_ns, rule)?,
            initiator_cores: self.or_default(
                "network.initiator_cores",
                table.initiator_cores,
                network.initiator_cores,
                rule,
            ),
            target_core_ns: self.duration("network.target", table.target, network.target_core_ns, rule)?,
            target_cores: self.or_default("network.target_cores", table.target_cores, network.target_cores, rule),
            ..network
        })
    }
}
