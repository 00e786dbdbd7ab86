//! Writes a complete description of an SSD as a TOML file that states every value.

use std::collections::BTreeMap;

use headstack_sim::drive::description::WriteCache;
use headstack_sim::ssd::description::{Medium, SsdDescription};
use headstack_workload::quantity::{Bytes, DurationNs};

use super::file::{
    FlashTable, Generation, SlcCacheTable, SsdCapacityTable, SsdControllerTable, SsdFile, SsdInterfaceKind,
    SsdInterfaceTable, SsdPowerTable, WriteBufferTable,
};
use crate::hosts::HostProfile;

/// Returns the complete TOML form of a description. `sources` maps key paths to `CODE text`.
///
/// [`super::resolve()`] of this text returns exactly `description` and derives nothing.
pub fn description_to_toml(description: &SsdDescription, sources: &BTreeMap<String, String>) -> String {
    let SsdDescription {
        name,
        medium,
        capacity,
        flash,
        timing,
        slc_cache,
        buffer,
        collection,
        controller,
        interface,
        state,
        power,
    } = description;
    let file = SsdFile {
        name: name.clone(),
        state: Some(state.clone()),
        capacity: SsdCapacityTable {
            size: Some(Bytes(capacity.logical_bytes)),
            logical_block: Some(Bytes(u64::from(capacity.logical_block_bytes))),
            mapping_unit: Some(Bytes(u64::from(capacity.mapping_unit_bytes))),
        },
        flash: FlashTable {
            generation: match medium {
                Medium::Flash => None,
                Medium::XPoint => Some(Generation::Xpoint),
            },
            channels: Some(flash.channels),
            dies_per_channel: Some(flash.dies_per_channel),
            planes_per_die: Some(flash.planes_per_die),
            blocks_per_plane: Some(flash.blocks_per_plane),
            pages_per_block: Some(flash.pages_per_block),
            page: Some(Bytes(u64::from(flash.page_bytes))),
            pages_per_program: Some(flash.pages_per_program),
            read: Some(duration(timing.read_ns)),
            program: Some(duration(timing.program_ns)),
            erase: Some(duration(timing.erase_ns)),
            channel_ns_per_byte: Some(timing.channel_ns_per_byte),
            suspends: Some(timing.suspend_ns.is_some()),
            suspend: timing.suspend_ns.map(duration),
            suspend_spread: Some(duration(timing.suspend_spread_ns)),
            writes_urgent_when_full: Some(timing.writes_urgent_when_full),
            resume: Some(duration(timing.resume_ns)),
            suspensions_max: Some(timing.suspensions_max),
            independent_planes: Some(false),
            reads_ahead_max: Some(timing.reads_ahead_max),
            free_blocks_min: Some(collection.free_blocks_min),
            ..FlashTable::default()
        },
        slc_cache: slc_cache.map_or_else(SlcCacheTable::default, |slc| SlcCacheTable {
            static_size: Some(Bytes(slc.static_bytes)),
            dynamic_size: Some(Bytes(slc.dynamic_bytes)),
            bits_per_cell: Some(slc.bits_per_cell),
            read: Some(duration(slc.read_ns)),
            program: Some(duration(slc.program_ns)),
            idle: slc.idle_ns.map(duration),
            folds_when_idle: Some(slc.idle_ns.is_some()),
        }),
        buffer: WriteBufferTable {
            size: Some(Bytes(buffer.bytes)),
            power_loss_protected: Some(buffer.power_loss_protected),
            // The three values that it determines are stated.
            reports_volatile_cache: None,
            flush: Some(duration(buffer.flush_ns)),
            map_update: Some(duration(buffer.map_update_ns)),
            flushes_per_map_update: Some(buffer.flushes_per_map_update),
            write_cache: buffer.write_through.then_some(WriteCache::Off),
        },
        controller: SsdControllerTable {
            command: Some(duration(controller.command_ns)),
            command_interval: Some(duration(controller.command_interval_ns)),
            write_command: Some(duration(controller.write_command_ns)),
            write_interval: Some(duration(controller.write_interval_ns)),
            read_ns_per_byte: Some(controller.read_ns_per_byte),
            write_ns_per_byte: Some(controller.write_ns_per_byte),
            map_cache: controller.map_cache_bytes.map(Bytes),
            ..SsdControllerTable::default()
        },
        interface: SsdInterfaceTable {
            // The kind determines one value that has no key of its own: whether the interface is full duplex.
            kind: Some(if interface.full_duplex { SsdInterfaceKind::Nvme } else { SsdInterfaceKind::Sata }),
            read_ns_per_byte: Some(interface.read_ns_per_byte),
            write_ns_per_byte: Some(interface.write_ns_per_byte),
            queue_depth: Some(interface.queue_depth),
            host: interface.host.and_then(|host| HostProfile::of(&host)),
            ..SsdInterfaceTable::default()
        },
        power: power.map_or_else(SsdPowerTable::default, |power| SsdPowerTable {
            idle_w: Some(power.idle_w),
            active_w: Some(power.active_w),
            ambient_celsius: Some(power.ambient_celsius),
            airflow_k_per_w: Some(power.airflow_k_per_w),
        }),
        sources: sources.clone(),
        ..SsdFile::default()
    };
    toml::to_string(&file).expect("a drive file is valid TOML")
}

fn duration(ns: u64) -> DurationNs {
    DurationNs(i64::try_from(ns).expect("drive times are at most an hour"))
}
