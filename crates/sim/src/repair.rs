//! [`Repair`]: a request of a layer to an array to verify or restore blocks; [`Filling`]: a member that waits for it.

/// Effect of a [`Repair`] on its blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RepairKind {
    /// Reads every copy, or every column with the parities.
    Verify,
    /// Reads what is left of the blocks that members being filled lack, and writes the missing parts to them.
    Restore,
}

/// A run of blocks at equal distances, by the addresses of the array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Repair {
    /// Effect on them.
    pub kind: RepairKind,
    /// First byte of the first block.
    pub offset_bytes: u64,
    /// Bytes from there to the end of the last block's place.
    pub length_bytes: u32,
    /// Bytes from the start of a block to that of the next.
    pub stride_bytes: u32,
    /// Bytes of a block.
    pub block_bytes: u32,
}

/// A member of an array that waits until the layer above has filled it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Filling {
    /// RAID group.
    pub group: u32,
    /// Its slot there.
    pub slot: u32,
    /// Whether distributed spare room is filled rather than a device.
    pub is_distributed: bool,
}
