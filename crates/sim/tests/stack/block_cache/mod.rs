//! Block caches: where data go and what that takes, write-back, data that survive cuts.

mod cases;
mod copying;
mod power;

use headstack_sim::SystemDescription;
use headstack_sim::array::description::CachePolicy;
use headstack_sim::device::DeviceDescription;
use headstack_sim::ssd::description::SsdDescription;
use headstack_sim::stack::description::{
    BcacheRules, BlockCacheDescription, CacheMode, CacheSoftware, DmCacheRules, DmWritecacheRules, LayerDescription,
    WhenFull,
};
use headstack_sim::system::System;

use crate::common::MS;
use crate::common::bench::Bench;
use crate::common::flash::small_ssd;

const SECOND: u64 = 1_000_000_000;
const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

fn drive(ssd: SsdDescription) -> SystemDescription {
    SystemDescription::Drive(DeviceDescription::Ssd(ssd))
}

/// A slow origin, and a cache device: SSDs that differ in the time of a command.
fn devices() -> [SystemDescription; 2] {
    let mut origin = small_ssd();
    origin.controller.command_ns *= 20;
    origin.controller.write_command_ns *= 20;
    [drive(origin), drive(small_ssd())]
}

/// The same devices with caches that lose data at a power cut.
fn forgetful() -> [SystemDescription; 2] {
    devices().map(|device| match device {
        SystemDescription::Drive(DeviceDescription::Ssd(mut ssd)) => {
            ssd.buffer.power_loss_protected = false;
            drive(ssd)
        }
        other => other,
    })
}

fn bcache_rules() -> BcacheRules {
    BcacheRules {
        sequential_bytes: 4 * MIB,
        congested_read_ns: 2 * MS,
        congested_write_ns: 20 * MS,
        writeback_percent: 10,
        writeback_delay_ns: 30 * SECOND,
        update_interval_ns: 5 * SECOND,
        minimum_sectors_per_s: 8,
        cutoff_percent: 40,
        cutoff_sync_percent: 70,
        synchronous_writes: true,
    }
}

/// A cache with `space_bytes` for data and no processor time.
fn cache(software: CacheSoftware, mode: CacheMode, space_bytes: u64) -> BlockCacheDescription {
    let (policy, bucket_bytes, commit_interval_ns) = match software {
        CacheSoftware::Bcache(_) => (CachePolicy::Lru, 512 * KIB, 100 * MS),
        CacheSoftware::DmCache(_) => (CachePolicy::Slru, 64 * KIB, SECOND),
        CacheSoftware::DmWritecache(_) => (CachePolicy::Fifo, 4 * KIB, SECOND),
    };
    // The rest of the cache device is metadata, which only bounds the space.
    let metadata_bytes = (768 * MIB) - space_bytes;
    BlockCacheDescription {
        mode,
        policy,
        bucket_bytes,
        metadata_bytes,
        request_ns: 0,
        cores: 1,
        commit_interval_ns,
        software,
    }
}

fn bcache(mode: CacheMode) -> BlockCacheDescription {
    cache(CacheSoftware::Bcache(bcache_rules()), mode, 64 * MIB)
}

fn dm_cache(mode: CacheMode) -> BlockCacheDescription {
    let rules = DmCacheRules { migration_bytes: MIB, promote_after: 2, idle_ns: SECOND };
    cache(CacheSoftware::DmCache(rules), mode, 16 * MIB)
}

fn writecache(when_full: WhenFull) -> BlockCacheDescription {
    let rules = DmWritecacheRules {
        high_percent: 50,
        low_percent: 45,
        autocommit_blocks: 65_536,
        writeback_jobs: 256,
        when_full,
    };
    cache(CacheSoftware::DmWritecache(rules), CacheMode::Writeback, 4 * MIB)
}

fn cached(cache: &BlockCacheDescription, devices: &[SystemDescription]) -> SystemDescription {
    super::over(LayerDescription::BlockCache(Box::new(cache.clone())), devices)
}

/// Returns a fill level of the layer itself.
fn level(bench: &Bench, number: usize) -> u64 {
    let System::Stack(stack) = &bench.system else { panic!("it is a stack") };
    stack.levels()[number] - stack.systems().iter().map(|system| system.levels()[number]).sum::<u64>()
}

/// Returns the dirty bytes of the layer.
fn dirty(bench: &Bench) -> u64 {
    level(bench, 0)
}

/// Returns its bytes that the origin has as well.
fn clean(bench: &Bench) -> u64 {
    level(bench, 2)
}
