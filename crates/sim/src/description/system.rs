//! [`SystemDescription`]: the system that a run simulates.

use headstack_workload::Span;
use serde::{Deserialize, Serialize};

use super::array::{ArrayDescription, Filler};
use super::device::DeviceDescription;
use super::drive::DriveDescription;
use super::level::{Level, SmallWrites};
use super::stack::{FileDescription, LayerDescription, MdJournalDescription, PoolShape, check_files, check_md_journal};
use crate::error::{InvalidDescription, fault};

#[allow(clippy::large_enum_variant)] // One a run; a box would be in every pattern.
/// A system.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum SystemDescription {
    /// A single device.
    Drive(DeviceDescription),
    /// Several devices behind a controller.
    Array(ArrayDescription),
    /// A layer of software or network over other systems.
    Stack(Box<StackDescription>),
}

impl From<DriveDescription> for SystemDescription {
    fn from(drive: DriveDescription) -> SystemDescription {
        SystemDescription::Drive(DeviceDescription::Disk(drive))
    }
}

impl SystemDescription {
    /// Returns the kind of the system, as named in results.
    pub fn kind(&self) -> &'static str {
        match self {
            SystemDescription::Drive(_) => "drive",
            SystemDescription::Array(_) => "array",
            SystemDescription::Stack(_) => "stack",
        }
    }

    /// Returns its top-level devices as a layer of ZFS sees them: the LUNs of an array, or the whole system.
    pub(crate) fn pool_shape(&self) -> PoolShape {
        let SystemDescription::Array(array) = self else {
            return PoolShape { vdev_bytes: vec![self.capacity_bytes()], records: None };
        };
        let with_records = array.groups.iter().find(|group| group.level.rules().has_records);
        PoolShape {
            vdev_bytes: array.luns.iter().map(|lun| lun.length_bytes).collect(),
            records: with_records.map(|group| (group.level, group.record_bytes)),
        }
    }

    /// Returns the RAID group of each top-level device; that of a system without groups is 0.
    pub(crate) fn lun_groups(&self) -> Vec<u32> {
        match self {
            SystemDescription::Array(array) => array.luns.iter().map(|lun| lun.group).collect(),
            SystemDescription::Drive(_) | SystemDescription::Stack(_) => vec![0],
        }
    }

    /// Returns the kinds of devices: the device itself, those of an array, or those of all systems below a layer.
    pub fn device_kinds(&self) -> Vec<&DeviceDescription> {
        match self {
            SystemDescription::Drive(device) => vec![device],
            SystemDescription::Array(array) => array.devices.iter().collect(),
            SystemDescription::Stack(stack) => stack.below.iter().flat_map(SystemDescription::device_kinds).collect(),
        }
    }

    /// Returns the kinds of devices, as [`SystemDescription::device_kinds`] does, for modification.
    pub fn device_kinds_mut(&mut self) -> Vec<&mut DeviceDescription> {
        match self {
            SystemDescription::Drive(device) => vec![device],
            SystemDescription::Array(array) => array.devices.iter_mut().collect(),
            SystemDescription::Stack(stack) => {
                stack.below.iter_mut().flat_map(SystemDescription::device_kinds_mut).collect()
            }
        }
    }

    /// Returns the array that holds the data, if the system is one or has one below its layers.
    pub fn base_array(&self) -> Option<&ArrayDescription> {
        match self {
            SystemDescription::Drive(_) => None,
            SystemDescription::Array(array) => Some(array),
            SystemDescription::Stack(stack) => stack.below[0].base_array(),
        }
    }

    /// Returns the array whose addresses are those of the system: itself, or one below layers that move nothing.
    pub fn array_in_place(&self) -> Option<&ArrayDescription> {
        match self {
            SystemDescription::Drive(_) => None,
            SystemDescription::Array(array) => Some(array),
            SystemDescription::Stack(stack) if stack.layer.keeps_addresses() => stack.below[0].array_in_place(),
            SystemDescription::Stack(_) => None,
        }
    }

    /// Returns the array that holds the data, as [`SystemDescription::base_array`] does, for modification.
    pub fn base_array_mut(&mut self) -> Option<&mut ArrayDescription> {
        match self {
            SystemDescription::Drive(_) => None,
            SystemDescription::Array(array) => Some(array),
            SystemDescription::Stack(stack) => stack.below[0].base_array_mut(),
        }
    }

    /// Returns the exported capacity, in bytes.
    pub fn capacity_bytes(&self) -> u64 {
        match self {
            SystemDescription::Drive(device) => device.capacity_bytes(),
            SystemDescription::Array(array) => array.capacity_bytes(),
            SystemDescription::Stack(stack) => stack.capacity_bytes(),
        }
    }

    /// Returns the largest physical sector size in bytes; 4 KiB for devices without sectors.
    pub fn sector_bytes(&self) -> u32 {
        self.device_kinds().iter().map(|device| device.sector_bytes()).max().unwrap_or(DeviceDescription::PAGE_BYTES)
    }

    /// Returns the number of drives; for an array, the number of drives of its first kind.
    pub fn drives(&self) -> usize {
        match self {
            SystemDescription::Drive(_) => 1,
            SystemDescription::Array(array) => array.members.iter().filter(|member| member.device == 0).count(),
            SystemDescription::Stack(stack) => match &stack.layer {
                LayerDescription::Ceph(ceph) => stack.below[0].drives() * ceph.osds as usize,
                LayerDescription::InstanceLimit(_)
                | LayerDescription::HostCache(_)
                | LayerDescription::Network(_)
                | LayerDescription::Journal(_)
                | LayerDescription::PageCache(_)
                | LayerDescription::Zfs(_)
                | LayerDescription::BlockCache(_)
                | LayerDescription::MdJournal(_) => stack.below[0].drives(),
            },
        }
    }

    /// Returns the name of each exported LUN, and its place in the address space.
    pub fn luns(&self) -> Vec<(String, Span)> {
        match self {
            SystemDescription::Drive(device) => {
                let span = Span { start_bytes: 0, length_bytes: device.capacity_bytes() };
                vec![("drive".to_owned(), span)]
            }
            SystemDescription::Array(array) => array.spans(),
            SystemDescription::Stack(stack) => stack.luns(),
        }
    }

    /// Returns the block size in bytes. Every request is a multiple of it.
    pub fn block_bytes(&self) -> u32 {
        match self {
            SystemDescription::Drive(device) => device.block_bytes(),
            SystemDescription::Array(array) => array.block_bytes(),
            SystemDescription::Stack(stack) => stack.layer.block_bytes(stack.below[0].block_bytes()),
        }
    }
}

/// A layer over systems, any of which can be a stack itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StackDescription {
    /// Name, for display.
    pub name: String,
    /// The layer.
    pub layer: LayerDescription,
    /// Systems below. The first holds the data; the layer determines what the others are for.
    pub below: Vec<SystemDescription>,
    /// Files of the file system in this layer or below it; without any, all its space is one file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileDescription>,
}

impl StackDescription {
    /// Rejects impossible descriptions.
    ///
    /// # Errors
    /// The first impossible value of the layer; the systems below are checked on their own.
    pub fn check_layer(&self) -> Result<(), InvalidDescription> {
        if self.below.is_empty() {
            return fault("stack.below", "no system; at least one is needed");
        }
        let below: Vec<PoolShape> = self.below.iter().map(SystemDescription::pool_shape).collect();
        super::stack::check(&self.layer, &below)?;
        if let LayerDescription::MdJournal(journal) = &self.layer {
            self.check_md_journal(journal)?;
        }
        check_files(&self.files, self.capacity_bytes())
    }

    fn check_md_journal(&self, journal: &MdJournalDescription) -> Result<(), InvalidDescription> {
        let [array, device] = self.below.as_slice() else {
            let count = self.below.len();
            let message = format!("{count} systems below `md_journal`; must be 2, the array and the journal device");
            return fault("stack.below", message);
        };
        let SystemDescription::Array(array) = array else {
            let message = format!("`md_journal` over a {}; it must be the last layer, over an array", array.kind());
            return fault("stack.over", message);
        };
        check_md_journal(journal, array, device.capacity_bytes())
    }

    /// Returns the files by name, or all space without files.
    fn luns(&self) -> Vec<(String, Span)> {
        if self.files.is_empty() {
            let span = Span { start_bytes: 0, length_bytes: self.capacity_bytes() };
            return vec![(self.layer.kind().to_owned(), span)];
        }
        let starts = FileDescription::bounds(&self.files);
        let spans = self
            .files
            .iter()
            .zip(starts)
            .map(|(file, start_bytes)| (file.name.clone(), Span { start_bytes, length_bytes: file.length_bytes }));
        spans.collect()
    }

    /// Returns the systems that run below the layer, in the order of their numbers: for Ceph, that of each OSD.
    pub(crate) fn ports(&self) -> Vec<&SystemDescription> {
        match &self.layer {
            LayerDescription::Ceph(ceph) => ceph.ports().map(|index| &self.below[index]).collect(),
            LayerDescription::InstanceLimit(_)
            | LayerDescription::HostCache(_)
            | LayerDescription::Network(_)
            | LayerDescription::Journal(_)
            | LayerDescription::PageCache(_)
            | LayerDescription::Zfs(_)
            | LayerDescription::BlockCache(_)
            | LayerDescription::MdJournal(_) => self.below.iter().collect(),
        }
    }

    /// Returns those systems as the layer uses them: ZFS writes blocks of RAIDZ and dRAID to new places, and fills
    /// replaced members itself, unless the level is one that only another RAID below it can have. An array with a journal
    /// needs no resync.
    pub(crate) fn adapted_ports(&self) -> Vec<SystemDescription> {
        let mut below: Vec<SystemDescription> = self.ports().into_iter().cloned().collect();
        match &self.layer {
            LayerDescription::InstanceLimit(_)
            | LayerDescription::HostCache(_)
            | LayerDescription::Network(_)
            | LayerDescription::Journal(_)
            | LayerDescription::PageCache(_)
            | LayerDescription::BlockCache(_)
            | LayerDescription::Ceph(_) => {}
            LayerDescription::MdJournal(_) => {
                if let SystemDescription::Array(array) = &mut below[0] {
                    array.groups.iter_mut().for_each(|group| group.is_journaled = true);
                }
            }
            LayerDescription::Zfs(_) => {
                for system in &mut below {
                    let SystemDescription::Array(array) = system else { continue };
                    for group in &mut array.groups {
                        if group.level.rules().has_records {
                            group.small_writes = SmallWrites::NewBlocks;
                        }
                        if is_of_zfs(group.level) && group.pool.is_none() {
                            group.rebuild.filled_by = Filler::Layer;
                        }
                    }
                }
            }
        }
        below
    }

    /// Returns the name of a device of a system below, which is `own` there.
    pub fn device_name(&self, port: usize, own: &str) -> String {
        let is_cluster = matches!(self.layer, LayerDescription::Ceph(_));
        match (port, own) {
            (0, _) if !is_cluster => own.to_owned(),
            (_, "") => self.layer.port_name(port),
            _ => format!("{} {own}", self.layer.port_name(port)),
        }
    }

    /// Returns the name that a system below shares with others of its kind, such as all OSDs of a cluster.
    pub(crate) fn part_name(&self, port: usize) -> Option<&'static str> {
        match &self.layer {
            LayerDescription::Ceph(ceph) => Some(if port < ceph.osds as usize { "osd" } else { "db" }),
            LayerDescription::InstanceLimit(_)
            | LayerDescription::HostCache(_)
            | LayerDescription::Network(_)
            | LayerDescription::Journal(_)
            | LayerDescription::PageCache(_)
            | LayerDescription::Zfs(_)
            | LayerDescription::BlockCache(_)
            | LayerDescription::MdJournal(_) => None,
        }
    }

    /// Returns the capacity that it exports, in bytes.
    pub fn capacity_bytes(&self) -> u64 {
        self.layer.capacity_bytes(self.below[0].capacity_bytes())
    }
}

/// Whether ZFS has the RAID level itself.
fn is_of_zfs(level: Level) -> bool {
    match level {
        Level::Raid1 | Level::Raid10 | Level::Raidz { .. } | Level::Draid { .. } => true,
        Level::Concat | Level::Raid0 | Level::Raid5 | Level::Raid6 | Level::Erasure { .. } => false,
    }
}
