//! SCSI operation codes in block traces.

use crate::record::Operation;

/// Operation of a command's code (SBC-3, table 10; the 6, 10, 12 and 16-byte forms).
pub(super) fn operation(opcode: u8) -> Operation {
    match opcode {
        0x08 | 0x28 | 0xa8 | 0x88 => Operation::Read,
        0x0a | 0x2a | 0xaa | 0x8a => Operation::Write,
        // With verification, which transfers and stores the same.
        0x2e | 0xae | 0x8e => Operation::Write,
        WRITE_SAME_10 | WRITE_SAME_16 => Operation::Write,
        0x35 | 0x91 => Operation::Flush,
        UNMAP => Operation::Trim,
        _ => Operation::Other,
    }
}

/// Whether the command transfers one block and fills many with it, so that its recorded length is not the length
/// written.
pub(super) fn is_write_same(opcode: u8) -> bool {
    matches!(opcode, WRITE_SAME_10 | WRITE_SAME_16)
}

/// Name under which commands with [`is_write_same`] are counted.
pub(super) const WRITE_SAME: &str = "write same";
pub(super) const WRITE_SAME_NOTE: &str = "a WRITE SAME counts the bytes transferred, not the bytes filled";
pub(super) const UNMAP_NOTE: &str = "an UNMAP counts the bytes of its list, not of its ranges";

const WRITE_SAME_10: u8 = 0x41;
const WRITE_SAME_16: u8 = 0x93;
const UNMAP: u8 = 0x42;
