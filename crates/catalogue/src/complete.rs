//! Writes a complete description of a disk as a TOML file that states every value.

use std::collections::BTreeMap;

use headstack_sim::drive::description::{
    AfterReadWrite, Buffer, Disconnect, DriveDescription, FlashCache, Geometry, Interface, Mechanics, MediaCache,
    Overheads, Power, Queue, SeekCurve, SlowProcesses,
};
use headstack_workload::quantity::{Bytes, DurationNs, Rate, Rpm};

use crate::file::{
    AfterTable, BufferTable, CapacityTable, DisconnectTable, DriveFile, ExtraDisconnectTable, FlashCacheTable,
    GeometryTable, InterfaceTable, MediaCacheTable, OverheadsTable, PowerTable, QueueTable, RecalibrationTable,
    RetriesTable, ScanTable, SeekTable, ShinglesTable, SlowTable, SpindleTable, ThreeParameterTable, TwoPieceTable,
    ZoneTable,
};
use crate::hosts::HostProfile;

/// Returns the complete TOML form of a description. `sources` maps key paths to `CODE text`.
///
/// [`crate::resolve()`] of this text returns exactly `description` and derives nothing.
pub fn description_to_toml(description: &DriveDescription, sources: &BTreeMap<String, String>) -> String {
    let file = DriveFile {
        name: description.name.clone(),
        capacity: capacity(&description.geometry),
        geometry: geometry(&description.geometry),
        spindle: spindle(&description.mechanics),
        seek: seek(&description.mechanics),
        queue: queue(&description.queue),
        buffer: buffer(&description.buffer),
        overheads: overheads(&description.overheads),
        interface: interface(&description.interface),
        slow: slow(&description.slow),
        flash_cache: description.flash_cache.as_ref().map(flash_cache),
        media_cache: description.media_cache.as_ref().map(media_cache),
        shingles: description.shingles.map(|shingles| ShinglesTable { band: Bytes(shingles.band_bytes) }),
        actuators: (description.actuators > 1).then_some(description.actuators),
        power: description.power.as_ref().map(power).unwrap_or_default(),
        sources: sources.clone(),
        ..DriveFile::default()
    };
    toml::to_string(&file).expect("a drive file is valid TOML")
}

fn duration(ns: u64) -> DurationNs {
    DurationNs(i64::try_from(ns).expect("drive times are shorter than 292 years"))
}

fn after(cost: AfterReadWrite) -> AfterTable {
    AfterTable { after_read: duration(cost.after_read), after_write: duration(cost.after_write) }
}

fn capacity(geometry: &Geometry) -> CapacityTable {
    CapacityTable {
        logical_blocks: Some(geometry.logical_blocks),
        size: None,
        logical_block: Some(Bytes(u64::from(geometry.logical_block_bytes))),
        physical_sector: Some(Bytes(u64::from(geometry.physical_sector_bytes))),
    }
}

fn geometry(geometry: &Geometry) -> GeometryTable {
    GeometryTable {
        heads: Some(geometry.heads),
        cylinders: Some(geometry.cylinders),
        order: Some(geometry.order),
        sparing: Some(geometry.sparing),
        zones: Some(
            geometry
                .zones
                .iter()
                .map(|zone| ZoneTable {
                    first_cylinder: zone.first_cylinder,
                    last_cylinder: zone.last_cylinder,
                    sectors_per_track: zone.sectors_per_track,
                    offset_turns: Some(zone.offset_turns),
                    track_skew_turns: Some(zone.track_skew_turns),
                    cylinder_skew_turns: Some(zone.cylinder_skew_turns),
                    reserved_sectors: Some(zone.reserved_sectors),
                    spares: Some(zone.spares),
                    slips: Some(zone.slips.clone()),
                    remaps: Some(zone.remaps.clone()),
                })
                .collect(),
        ),
        ..GeometryTable::default()
    }
}

fn spindle(mechanics: &Mechanics) -> SpindleTable {
    SpindleTable {
        speed: Some(Rpm(mechanics.rpm)),
        read_on_arrival: Some(mechanics.read_on_arrival),
        write_on_arrival: Some(mechanics.write_on_arrival),
    }
}

fn seek(mechanics: &Mechanics) -> SeekTable {
    let mut table = SeekTable {
        head_switch: Some(duration(mechanics.head_switch_ns)),
        read_settle: Some(DurationNs(mechanics.read_settle_ns)),
        write_settle: Some(DurationNs(mechanics.write_settle_ns)),
        ..SeekTable::default()
    };
    match &mechanics.seek {
        SeekCurve::Points(points) => {
            table.points = Some(points.iter().map(|&(cylinders, ns)| (cylinders, duration(ns))).collect());
        }
        SeekCurve::TwoPiece {
            boundary_cylinders,
            short_ns,
            short_ns_per_sqrt,
            long_ns,
            long_ns_per_cylinder,
            first_ns,
        } => {
            table.two_piece = Some(TwoPieceTable {
                boundary_cylinders: *boundary_cylinders,
                short_ns: *short_ns,
                short_ns_per_sqrt: *short_ns_per_sqrt,
                long_ns: *long_ns,
                long_ns_per_cylinder: *long_ns_per_cylinder,
                first: first_ns.iter().copied().map(duration).collect(),
            });
        }
        SeekCurve::ThreeParameter { minimum_ns, average_ns, maximum_ns } => {
            table.three_parameter = Some(ThreeParameterTable {
                minimum: duration(*minimum_ns),
                average: duration(*average_ns),
                maximum: duration(*maximum_ns),
            });
        }
        SeekCurve::Constant(ns) => table.constant = Some(duration(*ns)),
    }
    table
}

fn queue(queue: &Queue) -> QueueTable {
    QueueTable {
        depth: Some(queue.depth),
        policy: Some(queue.policy),
        ageing: queue.ageing_ns.map(duration),
        reordering_strength: Some(queue.reordering_strength),
        committed: Some(queue.committed),
        rotation_margin: Some(duration(queue.rotation_margin_ns)),
        age_weight: Some(queue.age_weight),
    }
}

fn buffer(buffer: &Buffer) -> BufferTable {
    BufferTable {
        size: None,
        segments: Some(buffer.segments),
        segment_sectors: Some(buffer.segment_sectors),
        read_ahead: Some(buffer.read_ahead),
        read_ahead_max_sectors: Some(buffer.read_ahead_max_sectors),
        read_ahead_min_sectors: Some(buffer.read_ahead_min_sectors),
        read_ahead_on_hit: Some(buffer.read_ahead_on_hit),
        keep_passing_sectors: Some(buffer.keep_passing_sectors),
        read_hits_on_arriving: Some(buffer.read_hits_on_arriving),
        read_hits_on_writes: Some(buffer.read_hits_on_writes),
        write_cache: Some(buffer.write_cache),
        dirty_extents_max: Some(buffer.dirty_extents_max),
        dirty_sectors_max: Some(buffer.dirty_sectors_max),
        separate_write_segment: Some(buffer.separate_write_segment),
        read_watermark: Some(buffer.read_watermark),
        write_watermark: Some(buffer.write_watermark),
    }
}

fn overheads(overheads: &Overheads) -> OverheadsTable {
    OverheadsTable {
        command: None,
        read_hit: Some(after(overheads.read_hit_ns)),
        read_miss: Some(after(overheads.read_miss_ns)),
        write_hit: Some(after(overheads.write_hit_ns)),
        write_miss: Some(after(overheads.write_miss_ns)),
        read_completion: Some(duration(overheads.read_completion_ns)),
        write_completion: Some(duration(overheads.write_completion_ns)),
        data_preparation: Some(duration(overheads.data_preparation_ns)),
        minimum_seek_delay: Some(duration(overheads.minimum_seek_delay_ns)),
        read_settled_min: Some(after(overheads.read_settled_min_ns)),
    }
}

fn interface(interface: &Interface) -> InterfaceTable {
    InterfaceTable {
        kind: Some(interface.kind),
        rate: None,
        read_ns_per_byte: Some(interface.read_ns_per_byte),
        write_ns_per_byte: Some(interface.write_ns_per_byte),
        host_tags: Some(interface.host_tags),
        host_elevator: Some(interface.host_elevator),
        host: interface.host.and_then(|host| HostProfile::of(&host)),
        disconnect: interface.disconnect.as_ref().map(disconnect),
    }
}

fn disconnect(disconnect: &Disconnect) -> DisconnectTable {
    DisconnectTable {
        read: after(disconnect.read_ns),
        write: duration(disconnect.write_ns),
        first_reselect: duration(disconnect.first_reselect_ns),
        other_reselect: duration(disconnect.other_reselect_ns),
        extra: disconnect.extra.as_ref().map(|extra| ExtraDisconnectTable {
            command: duration(extra.command_ns),
            disconnect: duration(extra.disconnect_ns),
            between: duration(extra.between_ns),
            second_disconnect: duration(extra.second_disconnect_ns),
            seek_delta: duration(extra.seek_delta_ns),
        }),
    }
}

fn slow(slow: &SlowProcesses) -> SlowTable {
    SlowTable {
        retries: slow
            .retries
            .map(|retries| RetriesTable { probability: retries.probability, passes_max: retries.passes_max }),
        recalibration: slow.recalibration.map(|recalibration| RecalibrationTable {
            interval: duration(recalibration.interval_ns),
            duration: duration(recalibration.duration_ns),
        }),
        scan: slow.scan.map(|scan| ScanTable { idle: duration(scan.idle_ns), step_sectors: scan.step_sectors }),
        write_verify: slow.write_verify.then_some(true),
    }
}

fn flash_cache(flash: &FlashCache) -> FlashCacheTable {
    FlashCacheTable {
        size: Some(Bytes(flash.size_bytes)),
        block: Some(Bytes(u64::from(flash.block_bytes))),
        latency: Some(duration(flash.latency_ns)),
        rate: None,
        ns_per_byte: Some(flash.ns_per_byte),
        fill_rate: Some(Rate(flash.fill_bytes_per_s)),
        history_blocks: Some(flash.history_blocks),
        on_first_read: flash.on_first_read.then_some(true),
        keeps_written: flash.keeps_written.then_some(true),
        sequential: Some(Bytes(flash.sequential_bytes)),
    }
}

fn media_cache(cache: &MediaCache) -> MediaCacheTable {
    MediaCacheTable {
        size: Some(Bytes(cache.size_bytes)),
        extents_max: Some(cache.extents_max),
        dram: Some(Bytes(cache.dram_bytes)),
        dram_is_protected: Some(cache.dram_is_protected),
        sequential: Some(Bytes(cache.sequential_bytes)),
        idle: Some(duration(cache.idle_ns)),
        busy_share: Some(cache.busy_share),
        sweep: Some(Bytes(cache.sweep_bytes)),
        sweep_window: Some(cache.sweep_window),
    }
}

fn power(power: &Power) -> PowerTable {
    PowerTable {
        idle_w: None,
        active_w: None,
        electronics_w: Some(power.electronics_w),
        spindle_w: Some(power.spindle_w),
        seek_w: Some(power.seek_w),
        transfer_w: Some(power.transfer_w),
        standby_w: Some(power.standby_w),
        spin_down_j: Some(power.spin_down.joules),
        spin_down: Some(duration(power.spin_down.ns)),
        spin_up_j: Some(power.spin_up.joules),
        spin_up: Some(duration(power.spin_up.ns)),
        idle_timeout: power.idle_timeout_ns.map(duration),
        ambient_celsius: Some(power.ambient_celsius),
        airflow_k_per_w: Some(power.airflow_k_per_w),
    }
}
