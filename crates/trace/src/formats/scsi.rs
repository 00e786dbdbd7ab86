//! SCSI's operation codes, as block traces hold them.

use crate::record::Operation;

/// What a command does, by its operation code (SBC-3, table 10; the 6, 10, 12 and 16-byte forms).
pub(crate) fn operation(opcode: u8) -> Operation {
    match opcode {
        0x08 | 0x28 | 0xa8 | 0x88 => Operation::Read,
        // Plain, and with verification.
        0x0a | 0x2a | 0xaa | 0x8a | 0x2e | 0xae | 0x8e => Operation::Write,
        0x35 | 0x91 => Operation::Flush,
        0x42 => Operation::Trim,
        _ => Operation::Other,
    }
}
