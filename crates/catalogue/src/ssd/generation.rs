//! [`GenerationFigures`]: geometry and timing of each flash generation, used for values that a drive's file does not
//! state.
//!
//! A program time is the time to program one page on each plane: the mean over the pages of a block, which equals the
//! time per page of a one-shot program of all bits of a cell. `MB/s per die` below is the size of a row divided by that
//! time.

use headstack_sim::ssd::description::Medium;
use headstack_workload::quantity::{Bytes, DurationNs, Rate};

use super::file::{Cells, Generation};

/// Geometry and timing of a generation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GenerationFigures {
    /// Memory: flash, or what is overwritten in place.
    pub medium: Medium,
    /// Number of bits per cell.
    pub bits: u32,
    /// Number of planes per die.
    pub planes_per_die: u32,
    /// Whether planes read independently, so that a die serves one small read per plane at once.
    pub independent_planes: bool,
    /// Number of pages per block.
    pub pages_per_block: u32,
    /// Data size of a page.
    pub page: Bytes,
    /// Read time (tR).
    pub read: DurationNs,
    /// Time to program one page on each plane (tPROG).
    pub program: DurationNs,
    /// Erase time (tBERS).
    pub erase: DurationNs,
    /// Transfer rate of a channel.
    pub channel_rate: Rate,
    /// Time after which a read suspends a program or erase; `None` if the read waits.
    pub suspend: Option<DurationNs>,
    /// Capacity of a die.
    pub die: Bytes,
    /// Source of the figures.
    pub source: &'static str,
}

/// Read time (tR) of multi-bit flash in one-bit mode; 25 to 40 us, general knowledge, medium confidence.
pub const SLC_MODE_READ: DurationNs = DurationNs(30_000);
/// Program time (tPROG) of a row in one-bit mode; 150 to 300 us, general knowledge, medium confidence.
pub const SLC_MODE_PROGRAM: DurationNs = DurationNs(200_000);

const KIB: u64 = 1 << 10;
const GIB: u64 = 1 << 30;

const fn us(us: i64) -> DurationNs {
    DurationNs(us * 1000)
}

/// Returns the figures of three-bit cells since 64 layers, including the values common to all. Erase times are not
/// published; the value is from HP's white paper on earlier flash.
const fn tlc(planes: u32, read_us: i64, program_us: i64, channel: f64, die: u64) -> GenerationFigures {
    GenerationFigures {
        medium: Medium::Flash,
        bits: 3,
        planes_per_die: planes,
        independent_planes: false,
        pages_per_block: 1152,
        page: Bytes(16 * KIB),
        read: us(read_us),
        program: us(program_us),
        erase: us(4_500),
        channel_rate: Rate(channel * 1e6),
        suspend: Some(us(15)),
        die: Bytes(die * GIB),
        source: "C usual for its generation (generation.rs)",
    }
}

const fn qlc(read_us: i64, program_us: i64, channel: f64, die: u64) -> GenerationFigures {
    GenerationFigures { bits: 4, pages_per_block: 1536, erase: us(6_000), ..tlc(4, read_us, program_us, channel, die) }
}

/// Returns the figures of 3D XPoint, which accesses 4 KiB at once in the model, and writes as fast as it reads. The
/// drive spreads a unit over its seven channels of about 400 MB/s each (AnandTech 11953), so a unit takes the time of
/// all of them; the pace of the controller limits the total. The medium's part of a read is an estimate, below half of
/// the latency of the drive.
const fn xpoint(read_us: i64, die: u64) -> GenerationFigures {
    GenerationFigures {
        medium: Medium::XPoint,
        bits: 1,
        planes_per_die: 1,
        independent_planes: false,
        pages_per_block: 256,
        page: Bytes(4 * KIB),
        read: us(read_us),
        program: us(read_us),
        erase: us(0),
        channel_rate: Rate(2_800e6),
        suspend: None,
        die: Bytes(die * GIB),
        source: "D usual for 3D XPoint (generation.rs)",
    }
}

const fn independent(figures: GenerationFigures) -> GenerationFigures {
    GenerationFigures { independent_planes: true, ..figures }
}

impl Generation {
    /// Returns the figures of the generation. SLC, MLC and 32-layer TLC: middle of the ranges in HP's white paper
    /// "Solid State Drive technology" of 2013 (A), means over the pages of a block; sizes and channels are general
    /// knowledge of chips of the time (C). Later generations: tR, MB/s per die and interface from AnandTech's tables of
    /// ISSCC 2018 to 2021 (article 16491; B); other values are between those and general knowledge (C). No figure was
    /// fitted to a drive.
    pub fn figures(self) -> GenerationFigures {
        match self {
            Generation::Slc => GenerationFigures {
                medium: Medium::Flash,
                bits: 1,
                planes_per_die: 2,
                independent_planes: false,
                pages_per_block: 128,
                page: Bytes(4 * KIB),
                read: us(25),
                program: us(250),
                erase: us(1_750),
                channel_rate: Rate(133e6),
                suspend: None,
                die: Bytes(GIB),
                source: "C usual for SLC (generation.rs)",
            },
            Generation::Mlc => GenerationFigures {
                medium: Medium::Flash,
                bits: 2,
                planes_per_die: 2,
                independent_planes: false,
                pages_per_block: 256,
                page: Bytes(8 * KIB),
                read: us(50),
                program: us(750),
                erase: us(3_000),
                channel_rate: Rate(200e6),
                suspend: None,
                die: Bytes(8 * GIB),
                source: "C usual for MLC (generation.rs)",
            },
            // 36 us in the 970 PRO according to the fit of NVMeVirt (MIT license).
            Generation::Mlc64 => GenerationFigures { bits: 2, ..tlc(2, 40, 400, 533.0, 32) },
            Generation::Tlc32 => GenerationFigures {
                pages_per_block: 768,
                source: "C usual for TLC (generation.rs)",
                ..tlc(2, 75, 1_125, 400.0, 32)
            },
            // 50 MB/s per die.
            Generation::Tlc64 => GenerationFigures { pages_per_block: 768, ..tlc(2, 60, 655, 533.0, 32) },
            // Kioxia 2018: 58 us, 57 MB/s, 533 MT/s.
            Generation::Tlc96 => independent(tlc(2, 58, 575, 667.0, 64)),
            // Kioxia 2019: 56 us, 132 MB/s, 1,066 MT/s, four planes; Samsung 2019: 45 us, 82 MB/s, 1,200 MT/s, two.
            Generation::Tlc128 => independent(tlc(4, 50, 612, 1_200.0, 64)),
            // SK hynix 2021: 50 us, 168 MB/s, 1,600 MT/s; Kioxia 2021: 50 us, 160 MB/s.
            Generation::Tlc176 => independent(tlc(4, 50, 400, 1_600.0, 64)),
            // Micron B58R: six planes, 2,000 and later 2,400 MT/s. 200 MB/s per die: C.
            Generation::Tlc232 => independent(tlc(6, 45, 490, 2_000.0, 128)),
            // Micron G9: six planes, 3,600 MT/s.
            Generation::Tlc276 => independent(tlc(6, 40, 450, 3_600.0, 128)),
            // 15 MB/s per die: write rate of the 64 dies of a P4320 (1 GB/s according to computerbase).
            Generation::Qlc64 => qlc(120, 4_370, 533.0, 128),
            // SK hynix 2020: 30 MB/s per die.
            Generation::Qlc96 => independent(qlc(110, 2_180, 800.0, 128)),
            Generation::Qlc144 => independent(qlc(90, 1_640, 1_200.0, 128)),
            Generation::Qlc192 => independent(qlc(85, 1_300, 1_600.0, 128)),
            // Kioxia BiCS8: 2 Tbit, 3,600 MT/s.
            Generation::Qlc232 => independent(qlc(80, 1_100, 2_400.0, 256)),
            // 128 Gbit dies (AnandTech 11209). A P4800X reads 4 KiB in 8.9 us (measured there), of which the medium is
            // less than half.
            Generation::Xpoint => xpoint(4, 16),
            // 256 Gbit dies, and 5 us for 4 KiB.
            Generation::Xpoint2 => xpoint(2, 32),
        }
    }

    /// Returns the usual generation of drives of a year. Without a year, returns the usual generation when the cell
    /// type was new.
    pub fn of(cells: Cells, year: Option<u32>) -> Generation {
        match (cells, year.unwrap_or(0)) {
            (Cells::Slc, _) => Generation::Slc,
            (Cells::Mlc, ..=2015) => Generation::Mlc,
            (Cells::Mlc, _) => Generation::Mlc64,
            (Cells::Tlc, ..=2016) => Generation::Tlc32,
            (Cells::Tlc, 2017..=2018) => Generation::Tlc64,
            (Cells::Tlc, 2019) => Generation::Tlc96,
            (Cells::Tlc, 2020..=2021) => Generation::Tlc128,
            (Cells::Tlc, 2022) => Generation::Tlc176,
            (Cells::Tlc, 2023..=2024) => Generation::Tlc232,
            (Cells::Tlc, _) => Generation::Tlc276,
            (Cells::Qlc, ..=2019) => Generation::Qlc64,
            (Cells::Qlc, 2020) => Generation::Qlc96,
            (Cells::Qlc, 2021..=2022) => Generation::Qlc144,
            (Cells::Qlc, 2023) => Generation::Qlc192,
            (Cells::Qlc, _) => Generation::Qlc232,
            (Cells::Xpoint, ..=2019) => Generation::Xpoint,
            (Cells::Xpoint, _) => Generation::Xpoint2,
        }
    }

    /// Returns the cell type of the generation.
    pub fn cells(self) -> Cells {
        match (self.figures().medium, self.figures().bits) {
            (Medium::XPoint, _) => Cells::Xpoint,
            (Medium::Flash, 1) => Cells::Slc,
            (Medium::Flash, 2) => Cells::Mlc,
            (Medium::Flash, 3) => Cells::Tlc,
            (Medium::Flash, _) => Cells::Qlc,
        }
    }
}

/// Returns the raw flash capacity of a drive in bytes if nothing else determines it. Dies have capacities that are
/// powers of two, and so does their total.
pub fn usual_raw(logical_bytes: u64) -> u64 {
    let gib = logical_bytes.div_ceil(1 << 30).next_power_of_two() << 30;
    // Totals of 75 % of a power of two also exist (DC S4500: 24 dies).
    let three_quarters = gib / 4 * 3;
    if three_quarters as f64 >= 1.04 * logical_bytes as f64 { three_quarters } else { gib }
}
