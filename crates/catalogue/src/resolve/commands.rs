//! Derives the queue, buffer, overheads and interface.

use headstack_sim::drive::description::{
    AfterReadWrite, BackgroundScan, Buffer, Disconnect, ExtraDisconnect, Interface, InterfaceKind, Overheads, Policy,
    Queue, ReadAhead, Recalibration, Retries, SlowProcesses, WriteCache,
};
use headstack_workload::InputError;
use headstack_workload::quantity::{DurationNs, LineCoding};

use super::{Resolver, ns};
use crate::constants::{
    COMMAND_OVERHEAD, COMMAND_OVERHEAD_SINCE_2009, CONSUMER_AGE_WEIGHT, CONSUMER_COMMITTED, CONSUMER_ROTATION_MARGIN,
    EARLY_DIRTY_EXTENTS, HIT_OVERHEAD, MODERN_DIRTY_EXTENTS, MODERN_SINCE, NCQ_BY_FAMILY_SINCE, NCQ_TAGS,
    SCSI_HOST_TAGS, SERIAL_SCSI_HOST_TAGS, TCQ_TAGS,
};
use crate::family::Family;
use crate::file::{AfterTable, DisconnectTable, DriveFile};
use crate::hosts::HostProfile;

impl Resolver<'_> {
    /// Returns the interface to the host.
    ///
    /// A host without command queueing (parallel ATA) sends one command at a time to the drive and sorts the others by
    /// ascending block address. Other hosts send commands in order of arrival, up to their number of tags.
    pub(super) fn interface(&mut self) -> Result<Interface, InputError> {
        let table = &self.file.interface;
        let Some(kind) = table.kind else {
            return self.missing("interface.kind", "allowed: scsi, ata, sata, sas, fc");
        };
        let (read_ns_per_byte, write_ns_per_byte) = match (table.rate, table.read_ns_per_byte, table.write_ns_per_byte)
        {
            (Some(rate), None, None) => {
                let coding = match kind {
                    InterfaceKind::Scsi | InterfaceKind::Ata => LineCoding::EightBits,
                    InterfaceKind::Sata | InterfaceKind::Sas | InterfaceKind::Fc => LineCoding::TenBits,
                };
                let ns_per_byte = 1e9 / rate.data(coding).0;
                (ns_per_byte, ns_per_byte)
            }
            (None, Some(read), Some(write)) => (read, write),
            _ => {
                let message =
                    "give the interface's rate, such as \"160MB/s\", or read_ns_per_byte and write_ns_per_byte";
                return self.missing("interface.rate", message);
            }
        };
        let (tags, tags_rule) = match kind {
            InterfaceKind::Scsi => (SCSI_HOST_TAGS, "default of the aic7xxx driver"),
            InterfaceKind::Ata => (1, "no command queueing"),
            InterfaceKind::Sata => (NCQ_TAGS, "native command queueing"),
            InterfaceKind::Sas | InterfaceKind::Fc => (SERIAL_SCSI_HOST_TAGS, "usual host adapter (medium confidence)"),
        };
        let (elevator, elevator_rule) = match (table.host.and_then(HostProfile::elevator), kind) {
            (Some(elevator), _) => (elevator, "set by the host"),
            (None, InterfaceKind::Ata) => (Policy::CLook, "the operating system sorts what the drive cannot queue"),
            (None, InterfaceKind::Scsi | InterfaceKind::Sata | InterfaceKind::Sas | InterfaceKind::Fc) => {
                (Policy::Fcfs, "the host leaves the order to the drive")
            }
        };
        Ok(Interface {
            kind,
            read_ns_per_byte,
            write_ns_per_byte,
            host_tags: self.given_or(table.host_tags, "interface.host_tags", tags_rule, |_| Ok(tags))?,
            host_elevator: self
                .given_or(table.host_elevator, "interface.host_elevator", elevator_rule, |_| Ok(elevator))?,
            host: table.host.and_then(HostProfile::adapter),
            disconnect: table.disconnect.as_ref().map(disconnect),
        })
    }

    /// Returns the drive's queue. With SCSI tags it serves the shortest positioning time first. With SATA tags it does
    /// the same after a few commands whose order is fixed. Parallel ATA has no queue.
    pub(super) fn queue(&mut self, kind: InterfaceKind) -> Result<Queue, InputError> {
        let table = &self.file.queue;
        let firmware = match (kind, table.reordering_strength) {
            // Older files describe their firmware with this figure only.
            (InterfaceKind::Sata, Some(_)) => Firmware { depth: NCQ_TAGS, ..Firmware::IDEAL },
            (InterfaceKind::Sata, None) => Firmware::of_sata(self.family(), self.year()?),
            (InterfaceKind::Ata, _) => Firmware::ATA,
            (InterfaceKind::Scsi | InterfaceKind::Sas | InterfaceKind::Fc, _) => Firmware::IDEAL,
        };
        let rule = firmware.rule;
        let depth = self.given_or(table.depth, "queue.depth", rule, |_| Ok(firmware.depth))?;
        let policy = self.given_or(table.policy, "queue.policy", rule, |_| Ok(firmware.policy))?;
        Ok(Queue {
            depth,
            policy,
            ageing_ns: table.ageing.map(ns),
            reordering_strength: self
                .given_or(table.reordering_strength, "queue.reordering_strength", rule, |_| Ok(1.0))?,
            committed: self.given_or(table.committed, "queue.committed", rule, |_| Ok(firmware.committed))?,
            rotation_margin_ns: ns(
                self.given_or(table.rotation_margin, "queue.rotation_margin", rule, |_| Ok(firmware.rotation_margin))?
            ),
            age_weight: self.given_or(table.age_weight, "queue.age_weight", rule, |_| Ok(firmware.age_weight))?,
        })
    }

    /// Returns the buffer: the sheet's size in equal segments, read-ahead up to the end of the read's segment, and a
    /// write cache that may use half of the buffer.
    pub(super) fn buffer(
        &mut self,
        kind: InterfaceKind,
        physical_sector_bytes: u32,
        on_arrival: bool,
    ) -> Result<Buffer, InputError> {
        let table = &self.file.buffer;
        let segments =
            self.given_or(table.segments, "buffer.segments", "usual for interface and year", |resolver| {
                Ok(match (kind, resolver.year()?) {
                    (InterfaceKind::Sata, _) => 32,
                    (_, 2000..) => 16,
                    _ => 3,
                })
            })?;
        let size_sectors = table.size.map(|size| (size.0 / u64::from(physical_sector_bytes)) as u32);
        let by_size = |resolver: &Self, share: u32| match size_sectors {
            Some(sectors) => Ok(sectors / share.max(1)),
            None => resolver.missing("buffer.size", "give the size of the buffer, such as \"8MiB\""),
        };
        let segment_sectors = self.given_or(
            table.segment_sectors,
            "buffer.segment_sectors",
            "buffer size divided by number of segments",
            |resolver| by_size(resolver, segments),
        )?;
        let dirty_sectors_max =
            self.given_or(table.dirty_sectors_max, "buffer.dirty_sectors_max", "half the buffer", |resolver| {
                by_size(resolver, 2)
            })?;
        let cache_rule = "shipped on, but off in SAS and Fibre Channel drives";
        let write_cache = self.given_or(table.write_cache, "buffer.write_cache", cache_rule, |_| {
            Ok(if !matches!(kind, InterfaceKind::Sas | InterfaceKind::Fc) { WriteCache::On } else { WriteCache::Off })
        })?;
        let extents_rule = "three in drives before 2005 (as in the Cheetah 9LP), more in later ones";
        let dirty_extents_max =
            self.given_or(table.dirty_extents_max, "buffer.dirty_extents_max", extents_rule, |resolver| {
                Ok(if resolver.year()? < MODERN_SINCE { EARLY_DIRTY_EXTENTS } else { MODERN_DIRTY_EXTENTS })
            })?;
        let ahead = ReadAhead::Segment;
        let rule = "usual";
        Ok(Buffer {
            segments,
            segment_sectors,
            read_ahead: self.given_or(table.read_ahead, "buffer.read_ahead", rule, |_| Ok(ahead))?,
            read_ahead_max_sectors: self.given_or(
                table.read_ahead_max_sectors,
                "buffer.read_ahead_max_sectors",
                "a segment",
                |_| Ok(segment_sectors),
            )?,
            read_ahead_min_sectors: self.given_or(
                table.read_ahead_min_sectors,
                "buffer.read_ahead_min_sectors",
                rule,
                |_| Ok(0),
            )?,
            read_ahead_on_hit: self
                .given_or(table.read_ahead_on_hit, "buffer.read_ahead_on_hit", rule, |_| Ok(true))?,
            keep_passing_sectors: self.given_or(
                table.keep_passing_sectors,
                "buffer.keep_passing_sectors",
                "if reads start on arrival",
                |_| Ok(on_arrival),
            )?,
            read_hits_on_arriving: self.given_or(
                table.read_hits_on_arriving,
                "buffer.read_hits_on_arriving",
                rule,
                |_| Ok(true),
            )?,
            read_hits_on_writes: self.given_or(
                table.read_hits_on_writes,
                "buffer.read_hits_on_writes",
                rule,
                |_| Ok(true),
            )?,
            write_cache,
            dirty_extents_max,
            dirty_sectors_max,
            separate_write_segment: self.given_or(
                table.separate_write_segment,
                "buffer.separate_write_segment",
                rule,
                |_| Ok(false),
            )?,
            read_watermark: self.given_or(table.read_watermark, "buffer.read_watermark", rule, |_| Ok(0.0))?,
            write_watermark: self
                .given_or(table.write_watermark, "buffer.write_watermark", rule, |_| Ok(Buffer::whole_write()))?,
        })
    }

    /// Returns the overheads. Unless the file states the four kinds separately, commands that access the media have one
    /// overhead, and commands served by the buffer have a smaller one. There is no overhead after a command.
    pub(super) fn overheads(&mut self) -> Overheads {
        let table = &self.file.overheads;
        let command = match table.command {
            None if table.read_miss.is_none() || table.write_miss.is_none() => {
                let (overhead, rule) = match self.file.year {
                    Some(2009..) => (COMMAND_OVERHEAD_SINCE_2009, "as Seagate's manuals of 2009 and 2010 state"),
                    _ => (COMMAND_OVERHEAD, "fitted to the Cheetah X15-36LP (S0.37, S0.39, S0.41)"),
                };
                self.record("overheads.command", overhead, rule)
            }
            given => given.unwrap_or_default(),
        };
        let hit = if table.read_hit.is_none() || table.write_hit.is_none() {
            self.record(
                "overheads.read_hit, write_hit",
                HIT_OVERHEAD.min(table.command.unwrap_or(HIT_OVERHEAD)),
                "as measured on three drives",
            )
        } else {
            DurationNs::default()
        };
        let same = |overhead| AfterTable { after_read: overhead, after_write: overhead };
        let read_hit_ns = after(table.read_hit.unwrap_or(same(hit)));
        let write_hit_ns = after(table.write_hit.unwrap_or(same(hit)));
        let read_miss_ns = after(table.read_miss.unwrap_or(same(command)));
        let write_miss_ns = after(table.write_miss.unwrap_or(same(command)));
        let or_zero = |duration: Option<DurationNs>| duration.map_or(0, ns);
        Overheads {
            read_hit_ns,
            read_miss_ns,
            write_hit_ns,
            write_miss_ns,
            read_completion_ns: or_zero(table.read_completion),
            write_completion_ns: or_zero(table.write_completion),
            data_preparation_ns: or_zero(table.data_preparation),
            minimum_seek_delay_ns: or_zero(table.minimum_seek_delay),
            read_settled_min_ns: table.read_settled_min.map_or(AfterReadWrite::default(), after),
        }
    }
}

/// Default rule by which the firmware of a family of drives chooses the next command.
struct Firmware {
    depth: u32,
    policy: Policy,
    committed: f64,
    rotation_margin: DurationNs,
    age_weight: f64,
    /// Name of the family and the evidence for the rule.
    rule: &'static str,
}

impl Firmware {
    /// Tagged command queueing since 1996: the drive makes the ideal choice at each completion. StorageReview's depth
    /// curves of seven drives of 2001 confirm this.
    const IDEAL: Firmware = Firmware {
        depth: TCQ_TAGS,
        policy: Policy::Sptf,
        committed: 0.0,
        rotation_margin: DurationNs(0),
        age_weight: 0.0,
        rule: "tagged command queueing",
    };

    /// Parallel ATA has no command queueing.
    const ATA: Firmware = Firmware { depth: 1, policy: Policy::Fcfs, rule: "no command queueing", ..Firmware::IDEAL };

    /// SATA drives before [`NCQ_BY_FAMILY_SINCE`]: medians of three measured drives (fio, random reads at depths 1 to
    /// 32). SpinPoint F1, Travelstar 7K100 and Raptor WD740GD have 5, 1 and 2 committed commands and margins of 1.7,
    /// 2.5 and 1.75 ms.
    const EARLY_NCQ: Firmware = Firmware {
        depth: NCQ_TAGS,
        committed: 2.0,
        rotation_margin: DurationNs(1_750_000),
        rule: "SATA firmware before 2009: the median of three measured drives",
        ..Firmware::IDEAL
    };

    const NEARLINE_NCQ: Firmware =
        Firmware { depth: NCQ_TAGS, rule: "native command queueing of nearline drives since 2009", ..Firmware::IDEAL };

    const CONSUMER_NCQ: Firmware = Firmware {
        depth: NCQ_TAGS,
        committed: CONSUMER_COMMITTED,
        rotation_margin: CONSUMER_ROTATION_MARGIN,
        age_weight: CONSUMER_AGE_WEIGHT,
        rule: "SATA firmware since 2009, except of nearline drives: between two measured desktop drives",
        ..Firmware::IDEAL
    };

    fn of_sata(family: Family, year: u32) -> Firmware {
        match (year, family.commits()) {
            (..NCQ_BY_FAMILY_SINCE, _) => Firmware::EARLY_NCQ,
            (NCQ_BY_FAMILY_SINCE.., true) => Firmware::CONSUMER_NCQ,
            (NCQ_BY_FAMILY_SINCE.., false) => Firmware::NEARLINE_NCQ,
        }
    }
}

fn after(table: AfterTable) -> AfterReadWrite {
    AfterReadWrite { after_read: ns(table.after_read), after_write: ns(table.after_write) }
}

fn disconnect(table: &DisconnectTable) -> Disconnect {
    Disconnect {
        read_ns: after(table.read),
        write_ns: ns(table.write),
        first_reselect_ns: ns(table.first_reselect),
        other_reselect_ns: ns(table.other_reselect),
        extra: table.extra.as_ref().map(|extra| ExtraDisconnect {
            command_ns: ns(extra.command),
            disconnect_ns: ns(extra.disconnect),
            between_ns: ns(extra.between),
            second_disconnect_ns: ns(extra.second_disconnect),
            seek_delta_ns: ns(extra.seek_delta),
        }),
    }
}

/// Returns the slow processes that the file names.
pub(super) fn slow(file: &DriveFile) -> SlowProcesses {
    let table = &file.slow;
    SlowProcesses {
        retries: table
            .retries
            .as_ref()
            .map(|retries| Retries { probability: retries.probability, passes_max: retries.passes_max }),
        recalibration: table.recalibration.as_ref().map(|recalibration| Recalibration {
            interval_ns: ns(recalibration.interval),
            duration_ns: ns(recalibration.duration),
        }),
        scan: table
            .scan
            .as_ref()
            .map(|scan| BackgroundScan { idle_ns: ns(scan.idle), step_sectors: scan.step_sectors }),
        write_verify: table.write_verify.unwrap_or(false),
    }
}
