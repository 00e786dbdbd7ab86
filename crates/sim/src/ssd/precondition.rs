//! Preconditioning ([`precondition`]): the steady state of random overwrites, reached in no virtual time.

use headstack_workload::{Purpose, Random};

use super::ftl::{Ftl, Task};

/// Random overwrites are made in windows of 1/4 of the capacity.
const WINDOWS_PER_CAPACITY: u32 = 4;
/// Windows that must agree, and most windows: the SNIA's Solid State Storage Performance Test Specification requires 5
/// rounds and gives up after 25.
const WINDOWS_THAT_AGREE: usize = 5;
const WINDOWS_MAX: usize = 25;

/// Rows between two calls of `goes_on`: some milliseconds.
const ROWS_PER_REPORT: u64 = 1 << 12;

/// Counts rows and reports the share of the fewest needed that is done: one pass over the drive, and the windows that
/// must agree.
struct PreconditionProgress<'a> {
    rows: u64,
    least: u64,
    goes_on: &'a mut dyn FnMut(f64) -> bool,
}

impl PreconditionProgress<'_> {
    /// Whether to continue after another row.
    #[inline]
    fn row(&mut self) -> bool {
        self.rows += 1;
        !self.rows.is_multiple_of(ROWS_PER_REPORT) || (self.goes_on)((self.rows as f64 / self.least as f64).min(0.99))
    }
}

/// Writes every unit in order, then random ones until the write amplification is steady. Returns that of each window;
/// `None` if `goes_on`, which is called with the share done, stopped it.
pub fn precondition(ftl: &mut Ftl, seed: u64, goes_on: &mut dyn FnMut(f64) -> bool) -> Option<Vec<f64>> {
    let units = ftl.logical_units();
    let all_rows = u64::from(units.div_ceil(ftl.layout.units_per_row));
    let least = all_rows + all_rows * WINDOWS_THAT_AGREE as u64 / u64::from(WINDOWS_PER_CAPACITY);
    let mut course = PreconditionProgress { rows: 0, least: least.max(1), goes_on };
    let mut row = Vec::with_capacity(ftl.layout.units_per_row as usize);
    let mut next = 0;
    while next < units {
        row.clear();
        row.extend(next..units.min(next.saturating_add(ftl.layout.units_per_row)));
        next += row.len() as u32;
        write_row(ftl, &row);
        if !course.row() {
            return None;
        }
    }
    let mut random = Random::new(seed, Purpose::Preconditioning);
    let window_rows = (units / WINDOWS_PER_CAPACITY).div_ceil(ftl.layout.units_per_row).max(1);
    let mut amplifications = Vec::with_capacity(WINDOWS_MAX);
    while amplifications.len() < WINDOWS_MAX && !is_steady(&amplifications) {
        let moved = ftl.moved_units;
        for _ in 0..window_rows {
            row.clear();
            row.extend((0..ftl.layout.units_per_row).map(|_| random.below(u64::from(units)) as u32));
            write_row(ftl, &row);
            if !course.row() {
                return None;
            }
        }
        let written = u64::from(window_rows) * u64::from(ftl.layout.units_per_row);
        amplifications.push(1.0 + (ftl.moved_units - moved) as f64 / written as f64);
    }
    for die in 0..ftl.layout.dies {
        while let Some(task) = ftl.next_task(die, false) {
            carry_out(ftl, die, task);
        }
    }
    Some(amplifications)
}

fn write_row(ftl: &mut Ftl, row: &[u32]) {
    let die = ftl.choose_die(row.len() as u32);
    loop {
        match ftl.next_task(die, true).expect("a die that is asked to program has something to do") {
            Task::ProgramHost => break,
            task @ (Task::ProgramMoved | Task::Move { .. } | Task::Erase) => carry_out(ftl, die, task),
        }
    }
    let start = ftl.finish_host_row(die, row.len() as u32);
    for (place, &unit) in (start..).zip(row) {
        ftl.settle(unit, place);
    }
}

fn carry_out(ftl: &mut Ftl, die: u32, task: Task) {
    match task {
        Task::Erase => ftl.finish_erase(die),
        // The moves are counted already.
        Task::Move { .. } | Task::ProgramMoved | Task::ProgramHost => {}
    }
}

/// Whether values are steady by the SNIA's rule: over the last windows they stay within 20 % of their mean, and the
/// line fitted to them rises or falls by at most 10 % of it.
fn is_steady(values: &[f64]) -> bool {
    let Some(last) = values.last_chunk::<WINDOWS_THAT_AGREE>() else {
        return false;
    };
    let count = WINDOWS_THAT_AGREE as f64;
    let mean = last.iter().sum::<f64>() / count;
    let (least, most) = last.iter().fold((f64::MAX, f64::MIN), |(least, most), &x| (least.min(x), most.max(x)));
    let middle = (count - 1.0) / 2.0;
    let places = || (0..WINDOWS_THAT_AGREE).map(|place| place as f64 - middle);
    let slope = places().zip(last).map(|(place, x)| place * x).sum::<f64>() / places().map(|x| x * x).sum::<f64>();
    most - least <= 0.2 * mean && slope.abs() * (count - 1.0) <= 0.1 * mean
}

#[cfg(test)]
mod tests {
    use super::super::ftl::FlashPlace;
    use super::*;
    use crate::description::ssd::{
        Capacity, Collection, Controller, Flash, Interface, SsdDescription, Timing, WriteBuffer,
    };

    /// Returns an SSD of 3 dies of 20 blocks of 8 rows of 4 units, 60 % exported.
    fn tiny() -> SsdDescription {
        SsdDescription {
            name: "tiny".to_owned(),
            filled: false,
            capacity: Capacity {
                logical_bytes: 3 * 12 * 8 * 4 * 4096,
                logical_block_bytes: 512,
                mapping_unit_bytes: 4096,
            },
            flash: Flash {
                channels: 3,
                dies_per_channel: 1,
                planes_per_die: 2,
                blocks_per_plane: 20,
                pages_per_block: 8,
                page_bytes: 8192,
            },
            timing: Timing {
                read_ns: 1,
                program_ns: 1,
                erase_ns: 1,
                channel_ns_per_byte: 0.0,
                suspend_ns: None,
                resume_ns: 0,
                suspensions_max: u32::MAX,
                reads_ahead_max: 1,
            },
            slc_cache: None,
            buffer: WriteBuffer { bytes: 1 << 15, power_loss_protected: true, write_through: false },
            collection: Collection { free_blocks_min: 2 },
            controller: Controller::default(),
            interface: Interface {
                read_ns_per_byte: 0.0,
                write_ns_per_byte: 0.0,
                full_duplex: true,
                queue_depth: 1,
                host: None,
            },
            preconditioned: false,
            power: None,
        }
    }

    #[test]
    fn every_unit_has_one_place_and_every_block_counts_right() {
        let mut ftl = Ftl::new(&tiny());
        ftl.check_consistency();
        let amplifications = precondition(&mut ftl, 1, &mut |_| true).expect("nothing stops it");
        ftl.check_consistency();
        assert!(amplifications.len() >= WINDOWS_THAT_AGREE && ftl.erases > 0 && ftl.moved_units > 0);
        assert!((0..ftl.logical_units()).all(|unit| matches!(ftl.place(unit), FlashPlace::Flash(_))), "all is written");
        // Partial rows and trims, at random.
        let mut random = Random::new(2, Purpose::Preconditioning);
        for _ in 0..2_000 {
            let row: Vec<u32> = (0..1 + random.below(4)).map(|_| random.below(1152) as u32).collect();
            write_row(&mut ftl, &row);
            ftl.set_place(random.below(1152) as u32, FlashPlace::Nowhere);
        }
        ftl.check_consistency();
    }

    #[test]
    fn preconditioning_reports_progress_and_stops_on_request() {
        let mut shares = Vec::new();
        let mut goes_on = |share: f64| {
            shares.push(share);
            shares.len() < 3
        };
        let mut course = PreconditionProgress { rows: 0, least: 8 * ROWS_PER_REPORT, goes_on: &mut goes_on };
        let rows = (0..10 * ROWS_PER_REPORT).take_while(|_| course.row()).count() as u64;
        assert_eq!((rows + 1, &shares[..]), (3 * ROWS_PER_REPORT, &[0.125, 0.25, 0.375][..]));
    }

    #[test]
    fn steady_is_flat_and_narrow() {
        assert!(!is_steady(&[3.0; 4]), "too few");
        assert!(is_steady(&[1.0, 3.0, 3.0, 3.0, 3.0, 3.0]), "only the last five count");
        assert!(is_steady(&[3.0, 3.2, 2.9, 3.2, 3.0]));
        assert!(!is_steady(&[3.0, 3.7, 3.0, 3.0, 3.0]), "too wide");
        assert!(!is_steady(&[3.0, 3.1, 3.2, 3.3, 3.4]), "still rising");
    }
}
