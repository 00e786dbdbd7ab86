//! Constants that apply to every drive, with their meaning, their sources and the data to which they were fitted.
//!
//! Everything else about a drive is in its catalogue file or follows from it. No constant was fitted to a single drive
//! unless its comment states otherwise. A fitted constant names its data, so that agreement with that data is not mistaken for a
//! prediction.

use headstack_workload::quantity::{Bytes, DurationNs};

/// Default overhead of a command.
///
/// Fitted only to the sixteen Iometer results of the Cheetah X15-36LP (StorageReview 2001: File Server and Web Server
/// at queue depths 1, 4, 16 and 64, Iometer and IPEAK). Data sheets that state an overhead give 0.2 ms (Seagate, SAS)
/// or 0.3 ms (Western Digital, ATA).
pub const COMMAND_OVERHEAD: DurationNs = DurationNs(350_000);

/// Default overhead of a command since 2009, from the manuals of Seagate's SAS drives of 2009 and 2010 (Constellation,
/// Constellation.2, Savvio 10K.4). Not fitted.
pub const COMMAND_OVERHEAD_SINCE_2009: DurationNs = DurationNs(200_000);

/// Default overhead of a command that the buffer serves without the mechanics. Mean of the "read hit after read"
/// overheads extracted from the Cheetah 9LP (0.066 ms), the Atlas 10K (0.184 ms) and the Barracuda 4LP (0.082 ms). Not
/// fitted.
pub const HIT_OVERHEAD: DurationNs = DurationNs(110_000);

/// First year in which SATA drives, and all drives larger than [`ADVANCED_FORMAT_ABOVE`], have physical sectors of 4
/// KiB; general knowledge, high confidence.
pub const ADVANCED_FORMAT_SINCE: u32 = 2012;

/// Capacity in bytes above which SAS drives also have 4 KiB sectors; medium confidence.
pub const ADVANCED_FORMAT_ABOVE: u64 = 4_100_000_000_000;

/// Default media cache of a shingled drive: the reported size for the Archive 8 TB (Tom's Hardware Italy; medium
/// confidence). No sizes are known for other families or for media caches of drives without shingles.
pub const SHINGLED_MEDIA_CACHE: Bytes = Bytes(20_000_000_000);

/// First year of the firmware of today's SATA drives. Nearline drives choose among all waiting commands at each
/// completion: members of RAID 5 arrays of 2010 (RE4) behave this way, and nearline drives since 2017 state rates that
/// require it. Drives of other families have [`CONSUMER_COMMITTED`], [`CONSUMER_ROTATION_MARGIN`] and
/// [`CONSUMER_AGE_WEIGHT`]. Earlier measured drives (2003 to 2007) fix the order of more commands in advance.
pub const NCQ_BY_FAMILY_SINCE: u32 = 2009;

/// Number of commands whose order the firmware of a SATA drive since 2009 fixes in advance, unless it is a nearline drive.
///
/// This and the next two constants are fitted to two desktop drives: the Toshiba DT01ACA200 of 2012 (median and 95th
/// percentile of random reads at 15 rates of Poisson arrivals, by diskplorer; best fits with 0 or 1 committed command, 1.5
/// to 2 ms and a weight of 0.01 to 0.03 differ by 7 % from the measurement) and the Seagate ST2000DM006 of 2016 (rates of
/// random reads at depths of 1 to 32; 0 or 1, 4 to 5 ms, 0.02 to 0.03; 3 to 4 %). Ideal choice is up to 57 % too fast.
pub const CONSUMER_COMMITTED: f64 = 1.0;

/// Time within which the firmware of these drives assumes that it misses a sector after a seek, so that it counts another
/// revolution. Of values from 2 to 3 ms, the one whose rates at depths of 1 to 32 are halfway between both drives (within 6
/// %); each drive differs by up to 20 % from it.
pub const CONSUMER_ROTATION_MARGIN: DurationNs = DurationNs(2_500_000);

/// Positioning time that is worth as much to this firmware as one unit of waiting time.
pub const CONSUMER_AGE_WEIGHT: f64 = 0.02;

/// First year in which a desktop drive is assumed to seek quietly, with less current than its arm could take.
pub const QUIET_SEEKS_SINCE: u32 = 2010;

/// Mean seek time of a quiet desktop drive, in ms. Geometric mean of two drives whose random reads at low load leave 10.65
/// ms (DT01ACA200 of 2012) and 13.0 ms (ST2000DM006 of 2016) after rotation and overhead. With a slower acceleration, the
/// second drive's median and 99th percentile at depth 1 (17.4 and 28.7 ms) agree within 2 %. A drive of a performance
/// line, the Barracuda XT, has 9.6 ms (14 ms a read: MaximumPC 2010). Drives with acoustic management confirm that quiet
/// seeks take longer: full strokes of 27.1 instead of 17.4 ms, and 21.0 instead of 17.3 ms (Wong).
pub const DESKTOP_SEEK: DurationNs = DurationNs(11_750_000);

/// Highest ratio of the mean seek time of a quiet desktop drive to the one of its sheet: [`DESKTOP_SEEK`] against the 8.5
/// ms that sheets state.
pub const DESKTOP_SEEK_RATIO: f64 = 1.38;

/// Maximum relative difference between the actual and the stated speed of a disk in an array. Range 0.0001 to 0.00135:
/// motors follow a crystal, which is within 0.01 %, and four drives of one design (Toshiba 3 TB, measured by Henry
/// Wong) turned at 7,200.0 to 7,219.1 rpm, 0.27 % apart. The value determines how fast spindles drift relative to each
/// other, here within about 10 s at 7,200 rpm. It does not affect means of long runs. Not fitted.
pub const SPINDLE_SPEED_TOLERANCE: f64 = 0.001;

/// Number of commands that a parallel SCSI host queues in a drive: the default of the Adaptec driver (aic7xxx), from a
/// Linux boot log with a Cheetah X15-36LP. Not fitted.
pub const SCSI_HOST_TAGS: u32 = 32;

/// Number of commands that a SAS or Fibre Channel host queues in a drive; general knowledge of host adapters, medium
/// confidence.
pub const SERIAL_SCSI_HOST_TAGS: u32 = 64;

/// Number of tags of native command queueing (Serial ATA II).
pub const NCQ_TAGS: u32 = 32;

/// Default number of tags of a SCSI, SAS or Fibre Channel drive, as reported by Seagate's drives of 1998 to 2001.
pub const TCQ_TAGS: u32 = 64;

/// Default additional settling time of a write, used if neither average nor track-to-track seek times determine it.
/// Data sheets in the catalogue state 0.3 to 0.9 ms, measured drives have -0.48 to 0.65 ms; medium confidence.
pub const WRITE_SETTLE: DurationNs = DurationNs(400_000);

/// Ratio of formatted to raw media rate. Servo sectors, gaps, preambles and ECC use the rest of a data sheet's
/// "internal transfer rate". Median of the catalogue's drives whose sheets state both rates (0.65 to 0.78).
pub const FORMAT_EFFICIENCY: f64 = 0.76;

/// Number of zones of a derived layout if the sheet states none; drives with known tables have 8 to 24.
pub const ZONES: u32 = 16;

/// Number of cylinders in a band, for a drive that fills a band on one surface before it continues on the next; medium
/// confidence.
pub const BAND_CYLINDERS: u32 = 64;

/// First year in which a drive is assumed to lay out blocks surface by surface, to start an access at the first
/// requested sector that passes, and to keep many dirty extents; medium confidence.
pub const MODERN_SINCE: u32 = 2005;

/// Number of dirty extents of a drive since [`MODERN_SINCE`]: the power of two that brings the write curve of the
/// Samsung SpinPoint F1, the only known one, within 10 %; medium confidence.
pub const MODERN_DIRTY_EXTENTS: u32 = 64;

/// Number of dirty extents of an earlier drive, as extracted from the Cheetah 9LP (its contemporaries Atlas 10K and
/// Barracuda 4LP have one). Not fitted.
pub const EARLY_DIRTY_EXTENTS: u32 = 3;

/// First year in which the seek curve of a drive below 9,000 rpm follows from constant acceleration
/// ([`crate::resolve`]). Earlier drives have the shapes measured on drives of 1996 to 1999. StorageReview's seven
/// drives of 2001 confirm those shapes (3.3 % error, compared with 9.4 % for an earlier form of the later shape). The
/// sheets that agree with the later shape are from 2006 on, so the change happened between 2002 and 2007. Drives of
/// 10,000 rpm and more keep the older shape, because their ratio of full-stroke to average seek time matches it (1.95;
/// 2.05 in the Savvio 10K.4). With the later shape, Demartek's OLTP result of 2016 is 9 to 20 % high; with the older
/// shape, it is 2 % high.
pub const ACCELERATED_SINCE: u32 = 2007;

/// Ratio of outer to inner media rate by year: 1.5 in 1997, 2.0 from 2010 on (data sheets of the catalogue; general
/// knowledge).
pub const RATE_RATIO_BY_YEAR: [(f64, f64); 2] = [(1997.0, 1.5), (2010.0, 2.0)];

/// Ratio of bits per inch to tracks per inch by year, derived with [`crate::resolve::cylinders_from_density`] from the
/// catalogue's drives that state their cylinders. The number of cylinders is within 15 %, except for the Savvio 10K.4
/// of 450 GB (31 %), which has a lower density than usual in its year.
pub const BIT_ASPECT_BY_YEAR: [(f64, f64); 3] = [(2000.0, 8.5), (2010.0, 3.0), (2023.0, 2.1)];

/// Default single-cylinder seek time in ms by year, from the extracted drives of 1996 to 1999 (0.83 to 1.94 ms), the
/// sheets of 2001 (0.4 to 0.6 ms) and those since 2005 (0.2 to 0.3 ms).
pub const SINGLE_CYLINDER_MS_BY_YEAR: [(f64, f64); 4] = [(1992.0, 2.0), (1998.0, 1.0), (2001.0, 0.5), (2005.0, 0.25)];

/// Fill rate of the flash in a disk drive, in bytes per second: 5.56 GB in 16 minutes, measured by TweakTown on a 600
/// GB drive with TurboBoost under 4 KiB random reads on 1 % of its blocks (review 5863, which prints 355 MB/s for the
/// same figures). Not fitted.
pub const FLASH_FILL_BYTES_PER_S: f64 = 5.8e6;

/// Block size of such flash. 4 KiB is too small: 900 reads per second of that size fill less than the measured rate.
/// Inferred, low confidence.
pub const FLASH_BLOCK_BYTES: u64 = 16 << 10;

/// Latency of such flash to the first byte: a page read of MLC NAND (50 to 100 us) and the controller; general
/// knowledge, medium confidence. With [`HIT_OVERHEAD`] it yields 9,100 reads per second; TweakTown measured 8,800. Not
/// fitted.
pub const FLASH_LATENCY: DurationNs = DurationNs(100_000);

/// Transfer rate of one flash package of 2012 to 2016, in bytes per second; an estimate.
pub const FLASH_BYTES_PER_S: f64 = 200e6;

/// Length from which a drive's caches treat a run of requests as sequential; an estimate. It cannot be much shorter:
/// web pages of up to 4 MB on an array benefited from TurboBoost (Demartek).
pub const SEQUENTIAL_BYTES: u64 = 1 << 20;

/// Bytes of a media cache per extent of its map, as for small writes; an estimate.
pub const MEDIA_CACHE_EXTENT_BYTES: u64 = 4096;

/// Idle time after which a drive cleans its media cache; an estimate.
pub const MEDIA_CACHE_IDLE: DurationNs = DurationNs(500_000_000);

/// Used fraction of a media cache above which it is cleaned while the host waits; an estimate.
pub const MEDIA_CACHE_BUSY_SHARE: f64 = 0.9;

/// Number of bytes that one sweep over the drive moves to their final location, a small part of the buffer; an
/// estimate.
pub const MEDIA_CACHE_SWEEP_BYTES: u64 = 4 << 20;

/// Number of accesses of a sweep that are queued at once. Two keep the arm busy and the order ascending; an estimate.
pub const MEDIA_CACHE_SWEEP_WINDOW: u32 = 2;

/// Number of bytes covered by one entry of an SSD's map; general knowledge, high confidence.
pub const SSD_MAPPING_UNIT: Bytes = Bytes(4096);

/// Cost of moving a unit during garbage collection as a fraction of the cost of programming it: mean of the steady rates
/// of a Micron 7450 PRO (0.65), a 7450 MAX (0.75) and a Solidigm P5520 (0.27), measured at several capacities (Haas et
/// al., SSD-iq, PVLDB 18(11), 2025). Not fitted to data sheets.
pub const SSD_MOVE_COST: f64 = 0.55;

/// Maximum write rate of the flash behind SATA in bytes per second, regardless of the number of dies: controllers and
/// power are designed for about twice the link rate. With [`SSD_MOVE_COST`], the steady writes of Intel's, Samsung's and
/// Micron's sheets (S4500, S4610, PM883, PM893, 5300, 5400) amount to 0.6 to 1.1 GB/s. Medium confidence.
pub const SSD_SERIAL_FLASH_BYTES_PER_S: f64 = 0.9e9;

/// Minimum over-provisioning to which steady random writes are fitted; with less, bad blocks would use it up. An
/// estimate.
pub const SSD_OVER_PROVISIONING_MIN: f64 = 0.04;

/// Number of free blocks below which a die starts garbage collection: one reserved for collection, one being erased,
/// and one for new writes; an estimate.
pub const SSD_FREE_BLOCKS: u32 = 3;

/// Maximum number of reads that a die serves while other work waits, which takes about two milliseconds; an estimate.
pub const SSD_READS_AHEAD: u32 = 32;

/// Programs per die that the write buffer holds: one is programmed while the next fills; an estimate.
pub const SSD_BUFFER_PROGRAMS_PER_DIE: u64 = 2;
/// Program of the map after flushes. Three SATA drives without capacitors alternate between flushes of 0.27 to 0.36 ms
/// and of 1.27 to 1.4 ms (TheJJ/ceph-diskbench, CC0). Over 24 consumer drives the median is 910 synchronous writes a
/// second, with a factor of 2 for one standard deviation.
pub const SSD_MAP_UPDATE: DurationNs = DurationNs(1_000_000);
/// Number of flushes for each program of the map, as those drives alternate.
pub const SSD_FLUSHES_PER_MAP_UPDATE: u32 = 2;
/// Flush of a protected drive that reports a volatile write cache: 1,600 to 12,000 a second on four drives.
pub const SSD_PROTECTED_FLUSH: DurationNs = DurationNs(200_000);

/// Time from the arrival of a command to its first action, over SATA and SAS: the specification of Intel's S4500 states
/// 110 us for a random read, less 75, 10 and 7 us for flash, channel and link.
pub const SSD_COMMAND_SERIAL: DurationNs = DurationNs(18_000);

/// Time from the arrival of a command to its first action, over NVMe. NVMeVirt was fitted to 21.5 us for a Samsung 970
/// PRO and 20 us for a WD ZN540; the sheets of Intel's P5510 and P5520 leave 28 and 21 us after the flash. Range 11 to
/// 28 us.
pub const SSD_COMMAND_NVME: DurationNs = DurationNs(20_000);

/// Time from the arrival of a write to its first action, over SATA and SAS. The sheets of Samsung's 850 and 870 EVO
/// state 25 to 28 us in total, Intel's S4500 52 us; the link takes 7 us.
pub const SSD_WRITE_COMMAND_SERIAL: DurationNs = DurationNs(20_000);

/// Time from the arrival of a write to its first action, over NVMe. Sheets state 13 to 20 us in total (P4500, P5520);
/// NVMeVirt was fitted to 4 to 6 us.
pub const SSD_WRITE_COMMAND_NVME: DurationNs = DurationNs(12_000);

/// Minimum of both command times that a sheet's latency may leave; if less remains, the flash is assumed to be faster.
pub const SSD_COMMAND_LEAST: DurationNs = DurationNs(3_000);

/// Maximum small-request IOPS of a SATA drive; sheets of 2014 to 2023 state 72,000 to 98,000.
pub const SSD_SERIAL_ATA_IOPS: f64 = 97_000.0;

/// Maximum random read IOPS of a SAS drive at 12 Gb/s; general knowledge, medium confidence.
pub const SSD_SAS_IOPS: f64 = 200_000.0;

/// Raw capacities in bytes from which more dies serve no more random reads, for drives without and with capacitors;
/// from the data sheets of families with several capacities (PM9A3, SN861, PS1010, CD9P-R, SN8100, SN7100).
pub const SSD_READS_CAPACITY: [f64; 2] = [2.1e12, 4.4e12];
/// Exponent by which random reads grow with the capacity up to that; 0.15 to 0.9 in these families.
pub const SSD_READS_EXPONENT: f64 = 0.3;

/// Ends of product names that name the endurance class: the same drive with more or less spare flash. Micron's and
/// KIOXIA's read-intensive and mixed-use drives.
pub const SSD_ENDURANCE_CLASSES: [&str; 4] = [" PRO", " MAX", "-R", "-V"];

/// Default rate of a controller as a fraction of the PCI Express payload rate. Sheets of drives with four lanes state
/// 3.2 of 3.6, 6.5 to 7.1 of 7.2 and 13 to 14 of 14.4 GB/s.
pub const SSD_CONTROLLER_SHARE: f64 = 0.95;

/// Maximum number of concurrent commands in an NVMe drive, more than its dies can use; an estimate.
pub const SSD_NVME_DEPTH: u32 = 1024;

/// Idle time after which a drive folds its SLC cache; an estimate. Reviewers report that some drives start immediately
/// and others not within minutes (660p, P41 Plus).
pub const SSD_SLC_IDLE: DurationNs = DurationNs(5_000_000_000);

/// Maximum number of concurrent commands in a SAS SSD; general knowledge, medium confidence.
pub const SSD_SAS_TAGS: u32 = 128;
/// A stack of disks on a spindle.
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
    /// Spindle and disks of the drive.
    pub spindle: Spindle,
    /// Idle power with the spindle turning, in W.
    pub idle_w: f64,
    /// Power with the spindle stopped, in W.
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

/// IBM Ultrastar 36Z15, the standard drive in the literature on disk power (Carrera, Pinheiro and Bianchini 2003; A/B),
/// with six disks (A heise online) of 70 mm (C).
pub const POWER_ANCHOR: PowerAnchor = PowerAnchor {
    spindle: Spindle { rpm: 15_000.0, media_diameter_mm: 70.0, platters: 6.0 },
    idle_w: 10.2,
    standby_w: 2.5,
    spin_down_j: 13.0,
    spin_down: DurationNs(1_500_000_000),
    spin_up_j: 135.0,
    spin_up: DurationNs(10_900_000_000),
};

/// Default power of the electronics, in W: the median of idle power minus spindle power over the catalogue's sheets
/// that state idle power (0.4 to 8.4 W); medium confidence.
pub const ELECTRONICS_W: f64 = 4.0;

/// Default difference between active and idle power, in W: the median over the catalogue's sheets that state both (0.5
/// to 5.0 W).
pub const ACTIVE_OVER_IDLE_W: f64 = 2.2;

/// Minimum number of disks in a helium drive; in air, a drive holds at most six.
pub const HELIUM_PLATTERS: u32 = 7;

/// Year of the first drive in helium (HGST Ultrastar He6).
pub const HELIUM_SINCE: u32 = 2013;

/// Ratio of the drag in helium to the drag in air. Turbulent friction is proportional to density^0.8 viscosity^0.2;
/// helium has 0.138 times the density and 1.08 times the viscosity of air.
pub const HELIUM_DRAG: f64 = 0.21;

/// Temperature of the air around a drive, in °C, in a cool room; an estimate. Sheets measure power at 25 °C.
pub const AMBIENT_CELSIUS: f64 = 25.0;

/// Temperature rise of the case of a 3.5-inch drive above the air, in K/W. Fitted only to one observation: the Atlas
/// 10K III is 3 degrees cooler than the Cheetah X15-36LP (StorageReview 2001, top plates). Their power midway between
/// idle and active is 11.0 and 12.5 W.
pub const AIRFLOW_K_PER_W: f64 = 2.0;

/// Interpolates linearly in a table of (x, y) with ascending x. Outside the table, returns the nearest y.
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
