//! The complete TOML form of any description reads back exactly.

use std::collections::BTreeMap;

use headstack_catalogue::{description_to_toml, load_drive, resolve};
use headstack_sim::drive::description::{
    AfterReadWrite, BackgroundScan, BlockOrder, Disconnect, DriveDescription, ExtraDisconnect, FlashCache,
    InterfaceKind, MediaCache, Policy, Power, ReadAhead, Recalibration, Retries, SeekCurve, Shingles, Sparing,
    SpinChange, WriteCache,
};
use headstack_workload::Document;
use proptest::prelude::*;

fn cost() -> impl Strategy<Value = AfterReadWrite> {
    (0u64..10_000_000, 0u64..10_000_000)
        .prop_map(|(after_read, after_write)| AfterReadWrite { after_read, after_write })
}

fn curve() -> impl Strategy<Value = SeekCurve> {
    prop_oneof![
        prop::collection::btree_map(1u32..20_000, 1u64..20_000_000, 1..20)
            .prop_map(|points| SeekCurve::Points(points.into_iter().collect())),
        (1u32..1000, prop::array::uniform4(0.0f64..1e7), prop::collection::vec(0u64..5_000_000, 0..10)).prop_map(
            |(boundary_cylinders, [short_ns, short_ns_per_sqrt, long_ns, long_ns_per_cylinder], first_ns)| {
                SeekCurve::TwoPiece {
                    boundary_cylinders,
                    short_ns,
                    short_ns_per_sqrt,
                    long_ns,
                    long_ns_per_cylinder,
                    first_ns,
                }
            }
        ),
        prop::array::uniform3(0u64..20_000_000).prop_map(|mut times| {
            times.sort_unstable();
            let [minimum_ns, average_ns, maximum_ns] = times;
            SeekCurve::ThreeParameter { minimum_ns, average_ns, maximum_ns }
        }),
        (0u64..20_000_000).prop_map(SeekCurve::Constant),
    ]
}

fn disconnect() -> impl Strategy<Value = Disconnect> {
    let extra = prop::option::of(prop::array::uniform5(0u64..1_000_000).prop_map(
        |[command_ns, disconnect_ns, between_ns, second_disconnect_ns, seek_delta_ns]| ExtraDisconnect {
            command_ns,
            disconnect_ns,
            between_ns,
            second_disconnect_ns,
            seek_delta_ns,
        },
    ));
    (cost(), prop::array::uniform3(0u64..1_000_000), extra).prop_map(
        |(read_ns, [write_ns, first_reselect_ns, other_reselect_ns], extra)| Disconnect {
            read_ns,
            write_ns,
            first_reselect_ns,
            other_reselect_ns,
            extra,
        },
    )
}

fn flash_cache() -> impl Strategy<Value = FlashCache> {
    let sizes = (1u64..100_000, 1u32..128, 1u64..1 << 28, 0u64..1 << 30, any::<[bool; 2]>());
    (sizes, 0u64..1_000_000, 0.0f64..100.0, 1.0f64..1e9).prop_map(
        |(sizes, latency_ns, ns_per_byte, fill_bytes_per_s)| {
            let (blocks, block_sectors, history_blocks, sequential_bytes, [on_first_read, keeps_written]) = sizes;
            FlashCache {
                size_bytes: blocks * u64::from(block_sectors) * 512,
                block_bytes: block_sectors * 512,
                latency_ns,
                ns_per_byte,
                fill_bytes_per_s,
                history_blocks,
                on_first_read,
                keeps_written,
                sequential_bytes,
            }
        },
    )
}

fn media_cache() -> impl Strategy<Value = MediaCache> {
    let sizes = (64u64..1_000_000, 0u64..1 << 30, 0u64..1 << 30, 1u64..64);
    (sizes, 16u32..1 << 28, any::<bool>(), 0u64..1 << 40, 0.01f64..1.0, 1u32..4096).prop_map(
        |((sectors, dram_bytes, sequential_bytes, part), extents_max, protected, idle_ns, busy_share, window)| {
            MediaCache {
                size_bytes: sectors * 512,
                extents_max,
                dram_bytes,
                dram_is_protected: protected,
                sequential_bytes,
                idle_ns,
                busy_share,
                sweep_bytes: sectors / part * 512,
                sweep_window: window,
            }
        },
    )
}

/// Generates a catalogue drive in which all parts that the derivation never produces are replaced.
fn description() -> impl Strategy<Value = DriveDescription> {
    let places = (
        prop::sample::select(BlockOrder::ALL.to_vec()),
        prop::sample::select(vec![
            Sparing::TracksAtZoneEnd,
            Sparing::CylinderEndSlipsApart,
            Sparing::RangeEnd { cylinders: 6 },
            Sparing::ZoneEndSlipsApart,
        ]),
        prop::collection::btree_set(0u64..1000, 0..5),
        prop::array::uniform3(-1.0f64..1.0),
    );
    let electronics = (
        prop::sample::select(Policy::ALL.to_vec()),
        prop::sample::select(ReadAhead::ALL.to_vec()),
        prop::sample::select(WriteCache::ALL.to_vec()),
        prop::sample::select(InterfaceKind::ALL.to_vec()),
        prop::option::of(1u64..10_000_000_000),
        0.0f64..=1.0,
        0.0f64..1000.0,
        any::<[bool; 4]>(),
    );
    let slow = (0.0f64..0.5, 1u64..1000, any::<[bool; 3]>());
    let assists = (prop::option::of(flash_cache()), prop::option::of(media_cache()), prop::option::of(1u64..10_000));
    (
        places,
        curve(),
        -1_000_000i64..1_000_000,
        electronics,
        prop::array::uniform4(cost()),
        prop::option::of(disconnect()),
        slow,
        assists,
    )
        .prop_map(|(places, seek, settle_ns, electronics, costs, disconnect, slow, assists)| {
            let mut drive = load_drive("cheetah-x15-36lp").unwrap().description;
            let (order, sparing, slips, [offset, track, cylinder]) = places;
            (drive.geometry.order, drive.geometry.sparing) = (order, sparing);
            drive.geometry.logical_blocks /= 2;
            let zone = &mut drive.geometry.zones[3];
            (zone.spares, zone.reserved_sectors) = (4, 77);
            zone.remaps = slips.iter().map(|&slip| (slip, 2000 - slip)).collect();
            zone.slips = slips.into_iter().collect();
            (zone.offset_turns, zone.track_skew_turns, zone.cylinder_skew_turns) = (offset, track, cylinder);
            drive.mechanics.seek = seek;
            (drive.mechanics.read_settle_ns, drive.mechanics.write_settle_ns) = (settle_ns, -settle_ns);
            let (policy, ahead, cache, kind, ageing_ns, share, ns_per_byte, flags) = electronics;
            (drive.queue.policy, drive.queue.ageing_ns, drive.queue.reordering_strength) = (policy, ageing_ns, share);
            (drive.buffer.read_ahead, drive.buffer.write_cache) = (ahead, cache);
            drive.buffer.read_watermark = share;
            (drive.buffer.separate_write_segment, drive.buffer.read_hits_on_arriving) = (flags[0], flags[1]);
            (drive.mechanics.read_on_arrival, drive.mechanics.write_on_arrival) = (flags[2], flags[3]);
            [
                drive.overheads.read_hit_ns,
                drive.overheads.read_miss_ns,
                drive.overheads.write_hit_ns,
                drive.overheads.write_miss_ns,
            ] = costs;
            drive.overheads.read_settled_min_ns = costs[3];
            drive.overheads.minimum_seek_delay_ns = costs[0].after_read;
            drive.overheads.data_preparation_ns = costs[1].after_read;
            drive.overheads.read_completion_ns = costs[2].after_read;
            drive.overheads.write_completion_ns = costs[3].after_read;
            drive.interface.kind = kind;
            (drive.interface.read_ns_per_byte, drive.interface.write_ns_per_byte) = (ns_per_byte, share);
            (drive.interface.host_elevator, drive.interface.disconnect) = (policy, disconnect);
            let (probability, amount, on) = slow;
            drive.slow.retries = on[0].then_some(Retries { probability, passes_max: amount as u32 });
            drive.slow.recalibration =
                on[1].then_some(Recalibration { interval_ns: amount * 1_000_001, duration_ns: amount });
            drive.power = (!on[0]).then_some(Power {
                electronics_w: share,
                spindle_w: probability,
                seek_w: ns_per_byte,
                transfer_w: 0.1 * ns_per_byte,
                standby_w: share * probability,
                spin_down: SpinChange { joules: ns_per_byte, ns: amount },
                spin_up: SpinChange { joules: 3.0 * ns_per_byte, ns: 7 * amount },
                idle_timeout_ns: on[1].then_some(amount),
                ambient_celsius: -share,
                airflow_k_per_w: probability,
            });
            drive.slow.scan = on[2].then_some(BackgroundScan { idle_ns: amount, step_sectors: amount as u32 });
            (drive.flash_cache, drive.media_cache) = (assists.0, assists.1);
            let band = assists.2.filter(|_| drive.media_cache.is_some());
            drive.shingles = band.map(|sectors| Shingles { band_bytes: sectors * 512 });
            if drive.flash_cache.is_none() && drive.media_cache.is_none() && drive.geometry.heads.is_multiple_of(2) {
                drive.actuators = 2;
                if let Some(power) = &mut drive.power {
                    power.idle_timeout_ns = None;
                }
                drive.geometry.logical_blocks &= !1;
            }
            drive
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]
    #[test]
    fn reads_back_exactly(description in description()) {
        let text = description_to_toml(&description, &BTreeMap::new());
        let resolved = resolve(&Document::parse("complete.toml", &text).unwrap());
        let resolved = resolved.map_err(|error| TestCaseError::fail(format!("{error}\n{text}")))?;
        prop_assert_eq!(resolved.description, description);
        prop_assert_eq!(resolved.derived, []);
    }
}
