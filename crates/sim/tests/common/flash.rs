//! An SSD for tests.

use headstack_sim::ssd::description::{
    Capacity, Collection, Controller, Flash, FlashState, Interface, Medium, SsdDescription, Timing, WriteBuffer,
};

use super::{MS, US};

pub const UNIT: u64 = 4096;
pub const PAGE: u64 = 16384;
pub const PLANES: u64 = 2;
pub const ROW: u64 = PAGE * PLANES;
pub const DIES: u64 = 8;
pub const COMMAND_NS: u64 = 5 * US;
pub const READ_NS: u64 = 50 * US;
pub const PROGRAM_NS: u64 = 600 * US;
/// A channel carries 1 GB/s, the interface 4 GB/s.
pub const CHANNEL_NS_PER_BYTE: f64 = 1.0;
pub const INTERFACE_NS_PER_BYTE: f64 = 0.25;

/// Returns an SSD with 1 GiB of flash (4 channels, 8 dies, 2 planes, 64 blocks of 64 pages of 16 KiB), 75 % of it
/// exported.
pub fn small_ssd() -> SsdDescription {
    SsdDescription {
        name: "test drive".to_owned(),
        medium: Medium::Flash,
        capacity: Capacity { logical_bytes: 768 << 20, logical_block_bytes: 512, mapping_unit_bytes: UNIT as u32 },
        flash: Flash {
            channels: 4,
            dies_per_channel: 2,
            planes_per_die: PLANES as u32,
            blocks_per_plane: 64,
            pages_per_block: 64,
            page_bytes: PAGE as u32,
            pages_per_program: 1,
        },
        timing: Timing {
            read_ns: READ_NS,
            program_ns: PROGRAM_NS,
            erase_ns: 3 * MS,
            channel_ns_per_byte: CHANNEL_NS_PER_BYTE,
            suspend_ns: None,
            suspend_spread_ns: 0,
            writes_urgent_when_full: false,
            resume_ns: 0,
            suspensions_max: u32::MAX,
            reads_ahead_max: 16,
        },
        slc_cache: None,
        buffer: WriteBuffer {
            bytes: 2 << 20,
            power_loss_protected: true,
            flush_ns: 0,
            map_update_ns: 0,
            flushes_per_map_update: 1,
            write_through: false,
        },
        collection: Collection { free_blocks_min: 3 },
        controller: Controller { command_ns: COMMAND_NS, write_command_ns: COMMAND_NS, ..Controller::default() },
        interface: Interface {
            read_ns_per_byte: INTERFACE_NS_PER_BYTE,
            write_ns_per_byte: INTERFACE_NS_PER_BYTE,
            full_duplex: true,
            queue_depth: 1024,
            host: None,
        },
        state: FlashState::Fresh,
        power: None,
    }
}
