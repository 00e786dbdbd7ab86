//! [`StackDescription`]: a layer of software or network over one or more systems. See docs/design/stacks.md.

mod journal;
mod limits;
mod page_cache;

use serde::{Deserialize, Serialize};

use super::system::SystemDescription;
use crate::error::{InvalidDescription, fault};
pub use journal::{JournalDescription, JournalKind};
pub use limits::{InstanceLimitDescription, NetworkDescription};
pub use page_cache::PageCacheDescription;

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
}

/// A layer between an application and its devices.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum LayerDescription {
    /// Limits of a cloud instance.
    InstanceLimit(InstanceLimitDescription),
    /// A network to a target on another host.
    Network(NetworkDescription),
    /// A file system that makes data durable with a journal. A second system below holds the journal if it is external.
    Journal(JournalDescription),
    /// The page cache of a host.
    PageCache(PageCacheDescription),
}

impl LayerDescription {
    /// Returns the kind of the layer, for display.
    pub fn kind(&self) -> &'static str {
        match self {
            LayerDescription::InstanceLimit(_) => "instance limit",
            LayerDescription::Network(_) => "network",
            LayerDescription::Journal(journal) => match journal.kind {
                JournalKind::Ext4 => "ext4",
                JournalKind::Xfs => "XFS",
            },
            LayerDescription::PageCache(_) => "page cache",
        }
    }
}

/// Rejects impossible layers.
///
/// # Errors
/// The first impossible value.
pub(crate) fn check(layer: &LayerDescription, below: &[SystemDescription]) -> Result<(), InvalidDescription> {
    match layer {
        LayerDescription::InstanceLimit(limit) => {
            check_one(layer.kind(), below)?;
            limits::check_instance(limit)
        }
        LayerDescription::Network(network) => {
            check_one(layer.kind(), below)?;
            limits::check_network(network)
        }
        LayerDescription::Journal(journal) => {
            let needed = if journal.external { 2 } else { 1 };
            if below.len() != needed {
                let count = below.len();
                return fault("stack.below", format!("{count} systems below a file system; must be {needed}"));
            }
            journal::check(journal, below[0].capacity_bytes())
        }
        LayerDescription::PageCache(cache) => {
            check_one(layer.kind(), below)?;
            page_cache::check(cache)
        }
    }
}

fn check_one(kind: &str, below: &[SystemDescription]) -> Result<(), InvalidDescription> {
    match below {
        [_] => Ok(()),
        _ => fault("stack.below", format!("{} systems below a layer `{kind}`; must be 1", below.len())),
    }
}

impl StackDescription {
    /// Returns the name of a system below besides the first, as in counters and faults.
    pub fn port_name(&self, port: usize) -> String {
        match &self.layer {
            LayerDescription::Journal(_) => "journal".to_owned(),
            LayerDescription::InstanceLimit(_) | LayerDescription::Network(_) | LayerDescription::PageCache(_) => {
                format!("system {port}")
            }
        }
    }

    /// Returns the name of a device of a system below, which is `own` there.
    pub fn device_name(&self, port: usize, own: &str) -> String {
        match (port, own) {
            (0, _) => own.to_owned(),
            (_, "") => self.port_name(port),
            _ => format!("{} {own}", self.port_name(port)),
        }
    }

    /// Returns the capacity that it exports, in bytes.
    pub fn capacity_bytes(&self) -> u64 {
        match &self.layer {
            LayerDescription::InstanceLimit(_) | LayerDescription::Network(_) | LayerDescription::PageCache(_) => {
                self.below[0].capacity_bytes()
            }
            LayerDescription::Journal(journal) => journal.capacity_bytes(self.below[0].capacity_bytes()),
        }
    }
}
