//! [`Command`]: commands of the NVM command set, in the format in which Linux accepts them from programs.

use headstack_workload::{Kind, Request};

use super::Geometry;

/// Opcodes of the NVM Command Set Specification 1.0, figure 14.
const FLUSH: u8 = 0x00;
const WRITE: u8 = 0x01;
const READ: u8 = 0x02;
const DATASET_MANAGEMENT: u8 = 0x09;
/// Opcode of the NVM Express Base Specification 2.0, figure 138.
const IDENTIFY: u8 = 0x06;

/// Bit in command dword 12 of a write: the command completes only when its data are on the medium.
const FORCE_UNIT_ACCESS: u32 = 1 << 30;
/// Bit in command dword 11 of dataset management: the ranges are deallocated.
const DEALLOCATE: u32 = 1 << 2;

/// `struct nvme_uring_cmd` and `struct nvme_passthru_cmd` of `linux/nvme_ioctl.h`, which differ only in the meaning of
/// the last field.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Command {
    opcode: u8,
    flags: u8,
    reserved: u16,
    namespace: u32,
    dword2: u32,
    dword3: u32,
    metadata: u64,
    address: u64,
    metadata_bytes: u32,
    data_bytes: u32,
    dword10: u32,
    dword11: u32,
    dword12: u32,
    dword13: u32,
    dword14: u32,
    dword15: u32,
    timeout_ms: u32,
    result: u32,
}

const _: () = assert!(size_of::<Command>() == 72);

/// The range of a trim, which the drive reads from memory. Aligned to its size, so that it never crosses a page.
#[repr(C, align(16))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TrimRange {
    attributes: u32,
    blocks: u32,
    first_block: u64,
}

impl TrimRange {
    /// Returns the range of a trim of whole blocks.
    pub fn new(offset_bytes: u64, length_bytes: u64, geometry: &Geometry) -> TrimRange {
        let blocks = u32::try_from(length_bytes >> geometry.block_shift).unwrap_or(u32::MAX);
        TrimRange { attributes: 0, blocks, first_block: offset_bytes >> geometry.block_shift }
    }
}

impl Command {
    /// Returns the command for the read or write `request` at `offset_bytes` of the namespace, with its data at
    /// `memory`. A write completes only when it is on the medium if the request requires this or `is_durable` is set.
    #[inline]
    pub fn transfer(
        request: &Request,
        offset_bytes: u64,
        geometry: &Geometry,
        memory: u64,
        is_durable: bool,
    ) -> Command {
        let first_block = offset_bytes >> geometry.block_shift;
        let blocks = request.length_bytes >> geometry.block_shift;
        let (opcode, is_forced) = match request.kind {
            Kind::Read => (READ, false),
            _ => (WRITE, request.force_unit_access || is_durable),
        };
        Command {
            opcode,
            namespace: geometry.namespace,
            address: memory,
            data_bytes: request.length_bytes,
            dword10: first_block as u32,
            dword11: (first_block >> 32) as u32,
            // The drive counts blocks from 0.
            dword12: blocks.saturating_sub(1) | if is_forced { FORCE_UNIT_ACCESS } else { 0 },
            ..Command::default()
        }
    }

    /// Returns the same transfer with `count` buffers, listed at `pieces`, for `NVME_URING_CMD_IO_VEC`.
    pub fn scattered(self, pieces: *const libc::iovec, count: usize) -> Command {
        Command { address: pieces as u64, data_bytes: count as u32, ..self }
    }

    /// Returns a flush of the namespace.
    pub fn flush(geometry: &Geometry) -> Command {
        Command { opcode: FLUSH, namespace: geometry.namespace, ..Command::default() }
    }

    /// Returns a trim of `range`, which must not move until the command has completed.
    pub fn trim(range: *const TrimRange, geometry: &Geometry) -> Command {
        Command {
            opcode: DATASET_MANAGEMENT,
            namespace: geometry.namespace,
            address: range as u64,
            data_bytes: size_of::<TrimRange>() as u32,
            // One range, counted from 0.
            dword10: 0,
            dword11: DEALLOCATE,
            ..Command::default()
        }
    }

    /// Returns a command that reads one of the drive's 4096-byte description structures, identified by its CNS,
    /// `structure`.
    pub fn identify(namespace: u32, structure: u32, page: &mut [u8; 4096]) -> Command {
        Command {
            opcode: IDENTIFY,
            namespace,
            address: page.as_mut_ptr() as u64,
            data_bytes: page.len() as u32,
            dword10: structure,
            ..Command::default()
        }
    }

    /// Returns the command as the 80 bytes for which a ring entry has room.
    #[inline]
    pub fn to_bytes(self) -> [u8; 80] {
        let mut bytes = [0; 80];
        // SAFETY: the structure has 72 bytes without padding, all of them numbers.
        bytes[..72].copy_from_slice(unsafe { &*(&raw const self).cast::<[u8; 72]>() });
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GEOMETRY: Geometry =
        Geometry { namespace: 7, block_shift: 12, capacity_bytes: 1 << 40, longest_bytes: 1 << 20 };

    fn request(kind: Kind, length_bytes: u32, force_unit_access: bool) -> Request {
        Request { kind, offset_bytes: 0, length_bytes, force_unit_access, ordered: false }
    }

    fn dword(bytes: &[u8; 80], at: usize) -> u32 {
        u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
    }

    #[test]
    fn a_transfer_encodes_offset_length_and_fua() {
        let (at_bytes, memory) = ((1u64 << 45) + (5 << 12), 0x1234_5678_9000);
        let cases = [
            (request(Kind::Read, 16_384, false), false, READ, 3),
            (request(Kind::Read, 4096, false), true, READ, 0),
            (request(Kind::Write, 16_384, false), false, WRITE, 3),
            (request(Kind::Write, 16_384, true), false, WRITE, 3 | FORCE_UNIT_ACCESS),
            (request(Kind::Write, 4096, false), true, WRITE, FORCE_UNIT_ACCESS),
        ];
        for (asked, is_durable, opcode, dword12) in cases {
            let bytes = Command::transfer(&asked, at_bytes, &GEOMETRY, memory, is_durable).to_bytes();
            assert_eq!(bytes[0], opcode);
            assert_eq!(dword(&bytes, 4), 7, "the namespace");
            assert_eq!(u64::from_le_bytes(bytes[24..32].try_into().unwrap()), memory);
            assert_eq!(dword(&bytes, 36), asked.length_bytes);
            assert_eq!((dword(&bytes, 40), dword(&bytes, 44)), (5, 2), "the block, its lower half first");
            assert_eq!(dword(&bytes, 48), dword12, "{asked:?}");
            assert_eq!(bytes[52..], [0; 28]);
        }
    }

    #[test]
    fn a_trim_has_one_range_that_no_page_divides() {
        let range = TrimRange::new(3 << 12, 8 << 12, &GEOMETRY);
        assert_eq!(range, TrimRange { attributes: 0, blocks: 8, first_block: 3 });
        assert_eq!(&raw const range as usize % size_of::<TrimRange>(), 0);
        let bytes = Command::trim(&raw const range, &GEOMETRY).to_bytes();
        assert_eq!((bytes[0], dword(&bytes, 36)), (DATASET_MANAGEMENT, 16));
        assert_eq!((dword(&bytes, 40), dword(&bytes, 44)), (0, DEALLOCATE));
        let bytes = Command::flush(&GEOMETRY).to_bytes();
        assert_eq!((bytes[0], dword(&bytes, 4), &bytes[8..]), (FLUSH, 7, &[0; 72][..]));
    }
}
