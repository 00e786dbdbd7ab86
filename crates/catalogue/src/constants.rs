//! Constants that apply to every drive: their meaning, their sources, and the data that each was fitted to.
//!
//! Everything else about a drive is in its catalogue file or follows from it. Nothing here was fitted to a single drive
//! unless noted, and a fitted constant names its data, so that agreement with those data is not mistaken for a
//! prediction.

use headstack_workload::quantity::{Bytes, DurationNs};

/// Default fixed cost of a command.
///
/// Fitted only to the sixteen Iometer cells of the Cheetah X15-36LP (StorageReview 2001: File Server and Web Server at
/// 1, 4, 16 and 64 outstanding, Iometer and IPEAK). Data sheets that state an overhead give 0.2 ms (Seagate, SAS) or
/// 0.3 ms (Western Digital, ATA).
pub const COMMAND_OVERHEAD: DurationNs = DurationNs(350_000);

/// Fixed cost of a command since 2009: stated by the manuals of Seagate's SAS drives of 2009 and 2010 (Constellation,
/// Constellation.2, Savvio 10K.4). Not fitted.
pub const COMMAND_OVERHEAD_SINCE_2009: DurationNs = DurationNs(200_000);

/// Fixed cost of a command that is served from the buffer or ends in it: no mechanics to set up. The mean of the "read hit
/// after read" overheads extracted from the Cheetah 9LP (0.066 ms), the Atlas 10K (0.184 ms) and the Barracuda 4LP
/// (0.082 ms). Not fitted.
pub const HIT_OVERHEAD: DurationNs = DurationNs(110_000);

/// First year from which SATA drives, and all of more than [`ADVANCED_FORMAT_ABOVE`] bytes, have sectors of 4 KiB on their
/// media; general knowledge, high confidence.
pub const ADVANCED_FORMAT_SINCE: u32 = 2012;

/// Bytes above which SAS drives have sectors of 4 KiB too; medium confidence.
pub const ADVANCED_FORMAT_ABOVE: u64 = 4_100_000_000_000;

/// Media cache of a shingled drive whose file states none: the reported size of the Archive 8 TB's (Tom's Hardware
/// Italy; medium confidence). Nothing is known about other families, nor about the media caches of drives without
/// shingles.
pub const SHINGLED_MEDIA_CACHE: Bytes = Bytes(20_000_000_000);

/// First year from which the firmware of a SATA drive is assumed to choose at each completion among all waiting
/// commands: members of RAID 5 arrays of 2010 (RE4) behave so, and nearline drives since 2017 state rates that need it.
/// Earlier measured drives (2003 to 2007) commit themselves. The year of the change, between 2007 and 2010, is not
/// known.
pub const IDEAL_NCQ_SINCE: u32 = 2009;

/// Largest relative difference between the speed of a disk in an array and its stated speed. Range 0.0001 to 0.00135:
/// motors follow a crystal, which is within 0.01 %, and four drives of one design (Toshiba 3 TB, measured by Henry
/// Wong) turned at 7,200.0 to 7,219.1 rpm, 0.27 % apart. Means of long runs do not depend on it: it determines how fast
/// spindles drift past each other, here within about 10 s at 7,200 rpm. Not fitted.
pub const SPINDLE_SPEED_TOLERANCE: f64 = 0.001;

/// Commands that a parallel SCSI host keeps in a drive: the default of the Adaptec driver (aic7xxx), from a Linux boot
/// log for a Cheetah X15-36LP. Not fitted.
pub const SCSI_HOST_TAGS: u32 = 32;

/// Commands that a SAS or Fibre Channel host keeps in a drive; general knowledge of host adapters, medium confidence.
pub const SERIAL_SCSI_HOST_TAGS: u32 = 64;

/// Tags of native command queueing (Serial ATA II).
pub const NCQ_TAGS: u32 = 32;

/// Default tags of a SCSI, SAS or Fibre Channel drive: as reported by Seagate's drives of 1998 to 2001.
pub const TCQ_TAGS: u32 = 64;

/// Additional settling time of a write if neither averages nor track-to-track times determine it: the sheets of the
/// catalogue state 0.3 to 0.9 ms, the measured drives -0.48 to 0.65 ms; medium confidence.
pub const WRITE_SETTLE: DurationNs = DurationNs(400_000);

/// Ratio of formatted to raw media rate: what servo sectors, gaps, preambles and ECC leave of the "internal transfer
/// rate" of a sheet. The median of the catalogue's drives whose sheets state both rates (0.65 to 0.78).
pub const FORMAT_EFFICIENCY: f64 = 0.76;

/// Zones of a derived layout if the sheet states none; the drives with known tables have 8 to 24.
pub const ZONES: u32 = 16;

/// Cylinders of a band in a drive that uses one surface before it changes to the next; medium confidence.
pub const BAND_CYLINDERS: u32 = 64;

/// First year from which a drive is assumed to lay blocks out surface by surface, to start accesses at the first wanted
/// sector that passes, and to keep many dirty extents; medium confidence.
pub const MODERN_SINCE: u32 = 2005;

/// Dirty extents of a drive since [`MODERN_SINCE`]. The power of two that brings the write curve of the Samsung
/// SpinPoint F1, the only known one, within 10 %; medium confidence.
pub const MODERN_DIRTY_EXTENTS: u32 = 64;

/// Dirty extents of an earlier drive: as extracted from the Cheetah 9LP (its contemporaries Atlas 10K and Barracuda 4LP
/// have one). Not fitted.
pub const EARLY_DIRTY_EXTENTS: u32 = 3;

/// First year from which the seek curve of a drive below 9,000 rpm follows from constant acceleration
/// ([`crate::resolve`]). Before it the shapes of drives measured in 1996 to 1999 apply, as StorageReview's seven drives
/// of 2001 confirm (3.3 %, and 9.4 % with an earlier form of the later shape); the sheets that agree with the later one
/// are from 2006 on. The year of the change, between 2002 and 2007, is not known. Drives of 10,000 rpm and more keep
/// the older shape, whose ratio of full stroke to average is theirs (1.95; 2.05 in the Savvio 10K.4): with the later
/// one Demartek's OLTP of 2016 is 9 to 20 % high, with the older one 2 %.
pub const ACCELERATED_SINCE: u32 = 2007;

/// Ratio of outer to inner media rate by year: 1.5 in 1997, 2.0 from 2010 on (the sheets of the catalogue; general
/// knowledge).
pub const RATE_RATIO_BY_YEAR: [(f64, f64); 2] = [(1997.0, 1.5), (2010.0, 2.0)];

/// Ratio of bits per inch to tracks per inch by year, derived with [`crate::resolve::cylinders_from_density`] from the
/// drives of the catalogue that state their cylinders: within 15 % in cylinders, except for the Savvio 10K.4 of 450 GB
/// (31 %), which is written less densely than its year allowed.
pub const BIT_ASPECT_BY_YEAR: [(f64, f64); 3] = [(2000.0, 8.5), (2010.0, 3.0), (2023.0, 2.1)];

/// Single-cylinder seek in ms by year if the sheet does not state it: the extracted drives of 1996 to 1999 (0.83 to
/// 1.94 ms), the sheets of 2001 (0.4 to 0.6 ms), those since 2005 (0.2 to 0.3 ms).
pub const SINGLE_CYLINDER_MS_BY_YEAR: [(f64, f64); 4] = [(1992.0, 2.0), (1998.0, 1.0), (2001.0, 0.5), (2005.0, 0.25)];

/// Fill rate of flash in a disk drive, in bytes a second: 5.56 GB in 16 minutes, measured by TweakTown on a 600 GB
/// drive with TurboBoost under 4 KiB random reads on 1 % of its blocks (review 5863; it prints 355 MB/s for the same
/// figures). Not fitted.
pub const FLASH_FILL_BYTES_PER_S: f64 = 5.8e6;

/// Block of such a flash. 4 KiB is too small: 900 reads a second of that size bring less than the measured fill rate.
/// Inferred, low confidence.
pub const FLASH_BLOCK_BYTES: u64 = 16 << 10;

/// Latency of flash to the first byte: a page read of MLC NAND (50 to 100 us) and the controller; general knowledge,
/// medium confidence. Together with [`HIT_OVERHEAD`] it yields 9,100 reads a second, where TweakTown measured 8,800.
/// Not fitted.
pub const FLASH_LATENCY: DurationNs = DurationNs(100_000);

/// Rate of one package of flash of 2012 to 2016; estimate.
pub const FLASH_BYTES_PER_S: f64 = 200e6;

/// Length of a run of requests from which on the caches of a drive treat it as sequential; estimate. Web pages of up to
/// 4 MB over an array gained from TurboBoost (Demartek), so it cannot be much shorter.
pub const SEQUENTIAL_BYTES: u64 = 1 << 20;

/// Bytes of a media cache for each extent of its map; estimate: a small write each.
pub const MEDIA_CACHE_EXTENT_BYTES: u64 = 4096;

/// Idle time after which a drive cleans its media cache; estimate.
pub const MEDIA_CACHE_IDLE: DurationNs = DurationNs(500_000_000);

/// Share of a media cache in use above which it is cleaned while the host waits; estimate.
pub const MEDIA_CACHE_BUSY_SHARE: f64 = 0.9;

/// Bytes that one sweep over the drive moves home: a small part of the buffer; estimate.
pub const MEDIA_CACHE_SWEEP_BYTES: u64 = 4 << 20;

/// Accesses of a sweep that are queued at once. Two keep the arm busy and the order ascending; estimate.
pub const MEDIA_CACHE_SWEEP_WINDOW: u32 = 2;

/// Bytes that one entry of a map covers; general knowledge, high confidence.
pub const SSD_MAPPING_UNIT: Bytes = Bytes(4096);

/// Part of the flash of a drive with capacitors that holds no data: parity over dies, spare blocks, the map. Derived
/// from the ratio of sequential to steady random writes: the median over Intel's P5500 and Samsung's PM9A3 and PM1743
/// (none to 0.07); KIOXIA's and Micron's drives were held out.
pub const SSD_PARITY_SHARE: f64 = 0.048;

/// Maximum write rate of the flash of a drive with capacitors behind NVMe, as a share of the link: it is limited by
/// power. The median of the sequential writes of the same three sheets (0.46 to 0.60).
pub const SSD_NVME_FLASH_SHARE: f64 = 0.5;

/// Maximum write rate of the flash behind SATA in bytes a second, regardless of its dies: controllers and power are
/// designed for twice the link. Steady writes of the sheets of Intel and Samsung amount to 0.7 to 1.3 GB/s with
/// [`SSD_PARITY_SHARE`] (S4500, S4610, PM883); Micron's drives were held out. Medium confidence.
pub const SSD_SERIAL_FLASH_BYTES_PER_S: f64 = 1.1e9;

/// Least over-provisioning that steady random writes are fitted with: below it, bad blocks would use it up; estimate.
pub const SSD_OVER_PROVISIONING_MIN: f64 = 0.04;

/// Free blocks of a die below which it collects: one kept for collection, one being erased, one to continue with;
/// estimate.
pub const SSD_FREE_BLOCKS: u32 = 3;

/// Most reads that a die serves while other work waits for them: about two milliseconds; estimate.
pub const SSD_READS_AHEAD: u32 = 32;

/// Rows for each die that the write buffer holds: one is programmed while the next fills; estimate.
pub const SSD_BUFFER_ROWS_PER_DIE: u64 = 2;

/// Time from the arrival of a command to its first action, over SATA and SAS: what the specification of Intel's S4500
/// leaves of a random read of 110 us after flash, channel and link (75, 10 and 7 us).
pub const SSD_COMMAND_SERIAL: DurationNs = DurationNs(18_000);

/// Time from the arrival of a command to its first action, over NVMe: NVMeVirt was fitted to 21.5 us for a Samsung 970
/// PRO and 20 us for a WD ZN540; the sheets of Intel's P5510 and P5520 leave 28 and 21 us after the flash. Range 11 to
/// 28 us.
pub const SSD_COMMAND_NVME: DurationNs = DurationNs(20_000);

/// Time from the arrival of a write to its first action, over SATA and SAS: 25 to 28 us in total by the sheets of
/// Samsung's 850 and 870 EVO, 52 us by that of Intel's S4500; the link takes 7 us.
pub const SSD_WRITE_COMMAND_SERIAL: DurationNs = DurationNs(20_000);

/// Time from the arrival of a write to its first action, over NVMe: sheets state 13 to 20 us in total (P4500, P5520),
/// NVMeVirt's fits 4 to 6 us.
pub const SSD_WRITE_COMMAND_NVME: DurationNs = DurationNs(12_000);

/// Least of both command times that a sheet's latency may leave; below it the flash is assumed to be faster.
pub const SSD_COMMAND_LEAST: DurationNs = DurationNs(3_000);

/// Small-request IOPS of a drive on SATA: stated by sheets of 2014 to 2023 (72,000 to 98,000).
pub const SSD_SERIAL_ATA_IOPS: f64 = 97_000.0;

/// Maximum random read IOPS of a drive on SAS of 12 Gb/s; general knowledge, medium confidence.
pub const SSD_SAS_IOPS: f64 = 200_000.0;

/// Small-read IOPS by generation of PCI Express: medians of the sheets of Intel, Solidigm and Samsung (3: 427,000 to
/// 638,000; 4: 800,000 to 1,450,000; 5: 2,500,000). KIOXIA's and Micron's drives were held out.
pub const SSD_NVME_IOPS: [f64; 5] = [220e3, 450e3, 600e3, 1e6, 2.5e6];

/// Rate of a controller by generation of PCI Express if the sheet does not state it, as a share of the link's payload:
/// sheets of drives with four lanes state 3.2 of 3.6, 6.5 to 7.1 of 7.2 and 13 to 14 of 14.4 GB/s.
pub const SSD_CONTROLLER_SHARE: f64 = 0.95;

/// Commands that an NVMe drive works on at once: more than the dies keep busy; estimate.
pub const SSD_NVME_DEPTH: u32 = 1024;

/// Idle time after which a drive folds its one-bit cells; estimate. Reviewers see some start at once and others not
/// within minutes (660p, P41 Plus).
pub const SSD_SLC_IDLE: DurationNs = DurationNs(5_000_000_000);

/// Commands that a SAS SSD works on at once; general knowledge, medium confidence.
pub const SSD_SAS_TAGS: u32 = 128;
/// A stack of disks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spindle {
    /// Spindle speed, in revolutions per minute.
    pub rpm: f64,
    /// Diameter of a disk, in mm.
    pub media_diameter_mm: f64,
    /// Number of disks.
    pub platters: f64,
}

/// A drive whose power is known in every state.
pub struct PowerAnchor {
    /// Its disks.
    pub spindle: Spindle,
    /// Power of an idle drive whose spindle turns, in W.
    pub idle_w: f64,
    /// Power with the spindle at rest, in W.
    pub standby_w: f64,
    /// Energy of a spin-down, in J.
    pub spin_down_j: f64,
    /// Duration of a spin-down.
    pub spin_down: DurationNs,
    /// Energy of a spin-up, in J.
    pub spin_up_j: f64,
    /// Duration of a spin-up.
    pub spin_up: DurationNs,
}

/// IBM Ultrastar 36Z15, the drive of the literature on disk power (Carrera, Pinheiro and Bianchini 2003; A/B); six
/// disks (A heise online), of 70 mm (C).
pub const POWER_ANCHOR: PowerAnchor = PowerAnchor {
    spindle: Spindle { rpm: 15_000.0, media_diameter_mm: 70.0, platters: 6.0 },
    idle_w: 10.2,
    standby_w: 2.5,
    spin_down_j: 13.0,
    spin_down: DurationNs(1_500_000_000),
    spin_up_j: 135.0,
    spin_up: DurationNs(10_900_000_000),
};

/// Power of the electronics if the sheet states no idle power: the median of idle power minus spindle power over the
/// sheets of the catalogue that state it (0.4 to 8.4 W); medium confidence.
pub const ELECTRONICS_W: f64 = 4.0;

/// Active minus idle power if the sheet does not state both: the median of those of the catalogue that do (0.5 to 5.0
/// W).
pub const ACTIVE_OVER_IDLE_W: f64 = 2.2;

/// Fewest disks of a stack that is in helium: air leaves room for six.
pub const HELIUM_PLATTERS: u32 = 7;

/// Year of the first drive in helium (HGST Ultrastar He6).
pub const HELIUM_SINCE: u32 = 2013;

/// Ratio of the drag in helium to that in air: turbulent friction is proportional to density^0.8 viscosity^0.2, and
/// helium has 0.138 of the density of air and 1.08 of its viscosity.
pub const HELIUM_DRAG: f64 = 0.21;

/// Temperature of the air around a drive, in °C: a cool room; estimate. Sheets measure power at 25 °C.
pub const AMBIENT_CELSIUS: f64 = 25.0;

/// Temperature rise of the case of a 3.5-inch drive above the air, in K/W: makes the Atlas 10K III 3 degrees cooler
/// than the Cheetah X15-36LP (StorageReview 2001, top plates) at the middle between idle and active power, 11.0
/// compared with 12.5 W. Fitted only to that.
pub const AIRFLOW_K_PER_W: f64 = 2.0;

/// Interpolates linearly in a table of (x, y) with ascending x; constant outside its ends.
pub(crate) fn interpolate(table: &[(f64, f64)], x: f64) -> f64 {
    let after = table.partition_point(|&(at, _)| at < x);
    match (after.checked_sub(1).map(|i| table[i]), table.get(after)) {
        (Some((x0, y0)), Some(&(x1, y1))) => y0 + (y1 - y0) * (x - x0) / (x1 - x0),
        (Some((_, y)), None) | (None, Some(&(_, y))) => y,
        (None, None) => panic!("an empty table"),
    }
}

#[cfg(test)]
mod tests {
    use super::interpolate;

    #[test]
    fn interpolation_is_linear_inside_and_constant_outside() {
        let table = [(1.0, 10.0), (3.0, 30.0), (4.0, 0.0)];
        let at = |x| interpolate(&table, x);
        assert_eq!([at(0.0), at(1.0), at(2.0), at(3.5), at(9.0)], [10.0, 10.0, 20.0, 15.0, 0.0]);
    }
}
