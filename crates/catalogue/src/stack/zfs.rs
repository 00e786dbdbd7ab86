//! Table `[zfs]`: OpenZFS with the defaults of a version.

use headstack_sim::SystemDescription;
use headstack_sim::stack::description::ZfsDescription;
use headstack_workload::InputError;
use headstack_workload::quantity::Bytes;

use super::Completer;
use super::zfs_table::Version;

impl Completer<'_> {
    pub(super) fn zfs(&mut self, pool: &SystemDescription) -> Result<ZfsDescription, InputError> {
        let table = &self.file.zfs;
        let Some(Bytes(memory_bytes)) = table.memory else {
            return Err(self.missing("zfs.memory", "the memory of the host, for example 64GiB"));
        };
        if table.recordsize.is_some() && table.volblocksize.is_some() {
            let message = "with zfs.recordsize; a volume has a volblocksize, a file system a recordsize";
            return Err(self.document.error("zfs.volblocksize", message));
        }
        let version = self.or_default("zfs.version", table.version, Version::V2_3, "the newest in wide use");
        let rule = "default of zfs.version and zfs.memory";
        let defaults = ZfsDescription::new(version.parameters(), memory_bytes, 0);
        let dirty_data_max_bytes =
            self.bytes("zfs.dirty_data_max", table.dirty_data_max, defaults.dirty_data_max_bytes, rule);
        let arc_max_bytes = self.bytes("zfs.arc_max", table.arc_max, defaults.arc_max_bytes, rule);
        let half = pool.capacity_bytes() / (2 << 20) * (1 << 20);
        let capacity_bytes = self.bytes("zfs.size", table.size, half, "half of the pool, which fragments little");
        let record_bytes = match table.volblocksize {
            Some(_) => self.bytes_u32("zfs.volblocksize", table.volblocksize, 0, rule)?,
            None => self.bytes_u32("zfs.recordsize", table.recordsize, 128 << 10, rule)?,
        };
        let ashift = self.or_default("zfs.ashift", table.ashift, 12, "sectors of 4 KiB");
        let sector_bytes = 1_u32.checked_shl(ashift).unwrap_or(0);
        let commit_rule = "fitted to two measured drives; 10 to 110 us by processor";
        let sync_rule = "fitted to one measured pool; 10 to 30 us by processor";
        let mut parameters = defaults.parameters.clone();
        let limit = parameters.scan_vdev_limit_bytes;
        parameters.scan_vdev_limit_bytes =
            self.bytes("zfs.scan_vdev_limit", table.scan_vdev_limit, limit, "default since January 2023");
        let mut next_port = 1..;
        let mut port = |device: &Option<String>| device.as_ref().and_then(|_| next_port.next());
        let (log, cache, special) = (port(&table.log), port(&table.cache), port(&table.special));
        Ok(ZfsDescription {
            capacity_bytes,
            record_bytes,
            is_volume: table.volblocksize.is_some(),
            sector_bytes,
            compression_ratio: self.or_default(
                "zfs.compression_ratio",
                table.compression_ratio,
                1.0,
                "data that do not compress",
            ),
            sync: table.sync.unwrap_or_default(),
            log_bias: table.logbias.unwrap_or_default(),
            primary_cache: table.primarycache.unwrap_or_default(),
            special_small_blocks_bytes: self.bytes_u32(
                "zfs.special_small_blocks",
                table.special_small_blocks,
                0,
                "default of OpenZFS",
            )?,
            log,
            cache,
            special,
            dirty_data_max_bytes,
            arc_max_bytes,
            commit_ns: self.duration("zfs.commit", table.commit, defaults.commit_ns, commit_rule)?,
            sync_record_ns: self.duration("zfs.sync_record", table.sync_record, defaults.sync_record_ns, sync_rule)?,
            parameters,
            sequential_resilver: table.sequential_resilver.unwrap_or(defaults.sequential_resilver),
            cores: self.or_default("zfs.cores", table.cores, defaults.cores, "a common server"),
            ..defaults
        })
    }
}
