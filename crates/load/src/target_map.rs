//! [`TargetMap`]: the files of a job as one address space, concatenated or striped.

use std::os::fd::RawFd;
use std::sync::Arc;

use headstack_workload::Request;

use crate::nbd::Export;
use crate::nvme::Namespace;

/// The files of a job as one address space. The creator must keep the files open as long as the map is used.
#[derive(Clone, Debug)]
pub struct TargetMap {
    pieces: Vec<Piece>,
    capacity_bytes: u64,
    /// Chunk size of striped files, in bytes; `None` for concatenated files.
    stripe_bytes: Option<u64>,
}

/// Destination of requests to a piece.
#[derive(Clone, Debug)]
pub enum TargetHandle {
    /// An open file.
    File(RawFd),
    /// An open block device, which supports trims.
    Device(RawFd),
    /// An NVMe namespace, through its character device.
    Namespace(Arc<Namespace>),
    /// An export of an NBD server.
    Export(Arc<Export>),
    /// A null target, which stores nothing.
    Nowhere,
}

/// The part of the address space that one file provides.
#[derive(Clone, Debug)]
pub struct Piece {
    /// Destination of the requests to this piece.
    pub at: TargetHandle,
    /// Start of the piece in the address space, in bytes.
    pub start_bytes: u64,
    /// Size of the piece, in bytes.
    pub length_bytes: u64,
}

impl Piece {
    /// Returns the descriptor; -1 if there is none.
    #[inline]
    pub fn fd(&self) -> RawFd {
        match &self.at {
            TargetHandle::File(fd) | TargetHandle::Device(fd) => *fd,
            TargetHandle::Namespace(namespace) => namespace.fd(),
            TargetHandle::Export(_) | TargetHandle::Nowhere => -1,
        }
    }

    /// Returns whether the piece is a block device.
    #[inline]
    pub fn is_device(&self) -> bool {
        matches!(self.at, TargetHandle::Device(_))
    }

    /// Returns the NBD export, if the piece is one.
    pub fn export(&self) -> Option<&Arc<Export>> {
        match &self.at {
            TargetHandle::Export(export) => Some(export),
            TargetHandle::File(_) | TargetHandle::Device(_) | TargetHandle::Namespace(_) | TargetHandle::Nowhere => {
                None
            }
        }
    }

    /// Returns the NVMe namespace, if the piece is one.
    #[inline]
    pub fn namespace(&self) -> Option<&Arc<Namespace>> {
        match &self.at {
            TargetHandle::Namespace(namespace) => Some(namespace),
            TargetHandle::File(_) | TargetHandle::Device(_) | TargetHandle::Export(_) | TargetHandle::Nowhere => None,
        }
    }
}

/// Place to which a request goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TargetPlace {
    /// Index of the file.
    pub piece: usize,
    /// Offset within the file, in bytes.
    pub offset_bytes: u64,
}

impl TargetMap {
    /// Concatenates files with these sizes, in bytes.
    pub fn new(files: impl IntoIterator<Item = (TargetHandle, u64)>) -> TargetMap {
        let mut capacity_bytes = 0;
        let piece = |(at, length_bytes)| {
            let start_bytes = capacity_bytes;
            capacity_bytes = u64::saturating_add(capacity_bytes, length_bytes);
            Piece { at, start_bytes, length_bytes }
        };
        let pieces = files.into_iter().map(piece).collect();
        TargetMap { pieces, capacity_bytes, stripe_bytes: None }
    }

    /// Stripes over the same files in chunks of `stripe_bytes`.
    pub fn dealt(self, stripe_bytes: u64) -> TargetMap {
        TargetMap { stripe_bytes: Some(stripe_bytes), ..self }
    }

    /// Returns an address space without files, for a null target.
    pub fn nowhere(capacity_bytes: u64) -> TargetMap {
        TargetMap { pieces: Vec::new(), capacity_bytes, stripe_bytes: None }
    }

    /// Returns the capacity of all files together, in bytes.
    pub fn capacity_bytes(&self) -> u64 {
        self.capacity_bytes
    }

    /// Returns the files, in order.
    pub fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    /// Returns the place of a request within the capacity. A request that would cross into the next file is moved so
    /// that it ends at the end of its own file.
    #[inline]
    pub fn place(&self, request: &Request) -> TargetPlace {
        if self.pieces.len() == 1 {
            return TargetPlace { piece: 0, offset_bytes: request.offset_bytes };
        }
        if let Some(stripe_bytes) = self.stripe_bytes {
            let (stripe, within_bytes) = (request.offset_bytes / stripe_bytes, request.offset_bytes % stripe_bytes);
            let count = self.pieces.len() as u64;
            let offset_bytes = stripe / count * stripe_bytes + within_bytes;
            return TargetPlace { piece: (stripe % count) as usize, offset_bytes };
        }
        let piece = self.pieces.partition_point(|piece| piece.start_bytes <= request.offset_bytes) - 1;
        let Piece { start_bytes, length_bytes, .. } = self.pieces[piece];
        let last_bytes = length_bytes.saturating_sub(u64::from(request.length_bytes));
        TargetPlace { piece, offset_bytes: (request.offset_bytes - start_bytes).min(last_bytes) }
    }
}

#[cfg(test)]
mod tests {
    use headstack_workload::Kind;

    use super::*;

    fn read(offset_bytes: u64, length_bytes: u32) -> Request {
        Request { kind: Kind::Read, offset_bytes, length_bytes, force_unit_access: false, ordered: false }
    }

    #[test]
    fn files_are_concatenated_and_requests_stay_within_one() {
        let map = TargetMap::new([
            (TargetHandle::File(3), 8192),
            (TargetHandle::Device(4), 4096),
            (TargetHandle::File(5), 16_384),
        ]);
        assert_eq!(map.capacity_bytes(), 28_672);
        let place = |offset, length| map.place(&read(offset, length));
        assert_eq!(place(0, 4096), TargetPlace { piece: 0, offset_bytes: 0 });
        assert_eq!(place(4096, 8192), TargetPlace { piece: 0, offset_bytes: 0 });
        assert_eq!(place(8192, 4096), TargetPlace { piece: 1, offset_bytes: 0 });
        assert_eq!(place(12_288, 4096), TargetPlace { piece: 2, offset_bytes: 0 });
        assert_eq!(place(28_671, 1), TargetPlace { piece: 2, offset_bytes: 16_383 });
    }
}
