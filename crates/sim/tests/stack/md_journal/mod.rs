//! The write journal of md: what requests take, what is written out and when, data that survive power losses.

mod cases;
mod power;

use headstack_sim::SystemDescription;
use headstack_sim::array::description::{ArrayDescription, Level};
use headstack_sim::device::DeviceDescription;
use headstack_sim::ssd::description::SsdDescription;
use headstack_sim::stack::description::{LayerDescription, MdJournalDescription, MdJournalMode};
use headstack_sim::system::System;

use crate::common::arrays::{UNIT, array, group};
use crate::common::bench::Bench;
use crate::common::flash::small_ssd;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
/// Members, and rows of chunks of each.
const MEMBERS: u32 = 4;
const ROWS: u64 = 1024;

/// SSDs whose cache loses data at a power loss.
fn forgetful() -> SsdDescription {
    let mut ssd = small_ssd();
    ssd.buffer.power_loss_protected = false;
    ssd
}

/// Four SSDs in RAID 5, with chunks of 64 KiB.
fn raid5(ssd: &SsdDescription) -> ArrayDescription {
    let mut rows = group(Level::Raid5, 0..MEMBERS, 1);
    rows.member_bytes = ROWS * UNIT;
    let mut raid5 = array(rows, u64::from(MEMBERS - 1) * ROWS * UNIT);
    raid5.devices[0] = DeviceDescription::Ssd(ssd.clone());
    raid5
}

fn description(mode: MdJournalMode) -> MdJournalDescription {
    MdJournalDescription { mode, stripe_cache: 256, reclaim_bytes: 192 * MIB, flushes: true }
}

/// The array with a journal on one more SSD.
fn journaled(journal: &MdJournalDescription, ssd: &SsdDescription) -> SystemDescription {
    let device = SystemDescription::Drive(DeviceDescription::Ssd(ssd.clone()));
    let below = [SystemDescription::Array(raid5(ssd)), device];
    super::over(LayerDescription::MdJournal(journal.clone()), &below)
}

fn counted(bench: &Bench, name: &str) -> u64 {
    super::counted(&bench.system, name)
}

/// Returns a fill level of the layer itself.
fn level(bench: &Bench, number: usize) -> u64 {
    let System::Stack(stack) = &bench.system else { panic!("it is a stack") };
    stack.levels()[number] - stack.systems().iter().map(|system| system.levels()[number]).sum::<u64>()
}
