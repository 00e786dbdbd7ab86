//! [`Layer`]: the kinds of layers.

use headstack_result::Levels;
use headstack_workload::{Request, Span};

use super::block_cache::BlockCache;
use super::ceph::Ceph;
use super::files::Files;
use super::host_cache::HostCache;
use super::instance_limit::InstanceLimit;
use super::journal::Journal;
use super::md_journal::MdJournal;
use super::network::Network;
use super::orders::{Answer, LayerModel, Orders};
use super::page_cache::PageCache;
use super::zfs::Zfs;
use crate::description::stack::LayerDescription;
use crate::description::system::{StackDescription, SystemDescription};
use crate::repair::Filling;
use crate::snapshot::Snapshot;

/// A layer of any kind.
#[derive(Clone, Debug)]
pub(crate) enum Layer {
    InstanceLimit(Box<InstanceLimit>),
    HostCache(Box<HostCache>),
    Network(Box<Network>),
    Journal(Box<Journal>),
    PageCache(Box<PageCache>),
    Zfs(Box<Zfs>),
    BlockCache(Box<BlockCache>),
    MdJournal(Box<MdJournal>),
    Ceph(Box<Ceph>),
}

macro_rules! of_layer {
    ($layer:expr, $kind:ident => $answer:expr) => {
        match $layer {
            Layer::InstanceLimit($kind) => $answer,
            Layer::HostCache($kind) => $answer,
            Layer::Network($kind) => $answer,
            Layer::Journal($kind) => $answer,
            Layer::PageCache($kind) => $answer,
            Layer::Zfs($kind) => $answer,
            Layer::BlockCache($kind) => $answer,
            Layer::MdJournal($kind) => $answer,
            Layer::Ceph($kind) => $answer,
        }
    };
}

impl Layer {
    /// Creates the idle layer of a stack.
    pub fn new(StackDescription { layer: description, below, files, .. }: &StackDescription) -> Layer {
        let files = Files::new(files);
        let capacity_bytes = below[0].capacity_bytes();
        match description {
            LayerDescription::InstanceLimit(limit) => Layer::InstanceLimit(Box::new(InstanceLimit::new(limit))),
            LayerDescription::HostCache(cache) => Layer::HostCache(Box::new(HostCache::new(cache, capacity_bytes))),
            LayerDescription::Network(network) => Layer::Network(Box::new(Network::new(network))),
            LayerDescription::BlockCache(cache) => {
                Layer::BlockCache(Box::new(BlockCache::new(cache, capacity_bytes, below[1].capacity_bytes())))
            }
            LayerDescription::MdJournal(journal) => {
                let array = below[0].base_array().expect("a checked journal is over an array");
                Layer::MdJournal(Box::new(MdJournal::new(journal, array, below[1].capacity_bytes())))
            }
            LayerDescription::Ceph(ceph) => {
                let below_bytes: Vec<u64> = below.iter().map(SystemDescription::capacity_bytes).collect();
                Layer::Ceph(Box::new(Ceph::new(ceph, &below_bytes)))
            }
            LayerDescription::Journal(journal) => {
                Layer::Journal(Box::new(Journal::new(journal, files, capacity_bytes)))
            }
            LayerDescription::PageCache(cache) => {
                Layer::PageCache(Box::new(PageCache::new(cache, files, capacity_bytes)))
            }
            LayerDescription::Zfs(zfs) => Layer::Zfs(Box::new(Zfs::new(zfs, files, below))),
        }
    }
}

impl LayerModel for Layer {
    #[inline]
    fn submit(&mut self, now_ns: u64, id: u32, request: &Request, orders: &mut Orders) {
        of_layer!(self, layer => layer.submit(now_ns, id, request, orders));
    }

    #[inline]
    fn answered(&mut self, now_ns: u64, port: u32, answer: &Answer, orders: &mut Orders) {
        of_layer!(self, layer => layer.answered(now_ns, port, answer, orders));
    }

    #[inline]
    fn next_event_ns(&self) -> u64 {
        of_layer!(self, layer => layer.next_event_ns())
    }

    #[inline]
    fn wake(&mut self, now_ns: u64, orders: &mut Orders) {
        of_layer!(self, layer => layer.wake(now_ns, orders));
    }

    fn fillings_changed(&mut self, now_ns: u64, port: u32, fillings: &[Filling], orders: &mut Orders) {
        of_layer!(self, layer => layer.fillings_changed(now_ns, port, fillings, orders));
    }

    fn scrub(&mut self, now_ns: u64, orders: &mut Orders) -> Option<Result<(), String>> {
        of_layer!(self, layer => layer.scrub(now_ns, orders))
    }

    fn pieces(&self, span: Span, each: &mut dyn FnMut(u32, u64, Span)) {
        of_layer!(self, layer => layer.pieces(span, each));
    }

    fn volatile(&self, spans: &[Span], into: &mut Vec<Span>) {
        of_layer!(self, layer => layer.volatile(spans, into));
    }

    fn atomic_bytes(&self) -> Option<u64> {
        of_layer!(self, layer => layer.atomic_bytes())
    }

    fn holds_data(&self) -> bool {
        of_layer!(self, layer => layer.holds_data())
    }

    fn power_cycle(&mut self, now_ns: u64) {
        of_layer!(self, layer => layer.power_cycle(now_ns));
    }

    fn snapshot(&self, into: &mut Snapshot) {
        of_layer!(self, layer => layer.snapshot(into));
    }

    fn add_levels(&self, into: &mut Levels) {
        of_layer!(self, layer => layer.add_levels(into));
    }

    fn warm_with(&mut self, request: &Request) -> bool {
        of_layer!(self, layer => layer.warm_with(request))
    }
}
