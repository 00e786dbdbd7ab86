//! Numbers and structures of `linux/ublk_cmd.h`, as bytes in native order.

/// An ioctl number of the control device or a disk's character device: direction, size, 'u', number.
const fn command(direction: u32, size: u32, number: u32) -> u32 {
    direction << 30 | size << 16 | (b'u' as u32) << 8 | number
}

const READ: u32 = 2;
const READ_WRITE: u32 = 3;
/// Bytes of `struct ublksrv_ctrl_cmd`.
pub const CONTROL_BYTES: usize = 32;
/// Bytes of `struct ublksrv_io_cmd`.
const IO_BYTES: u32 = 16;

pub const ADD_DEV: u32 = command(READ_WRITE, CONTROL_BYTES as u32, 0x04);
pub const DEL_DEV: u32 = command(READ_WRITE, CONTROL_BYTES as u32, 0x05);
pub const START_DEV: u32 = command(READ_WRITE, CONTROL_BYTES as u32, 0x06);
pub const STOP_DEV: u32 = command(READ_WRITE, CONTROL_BYTES as u32, 0x07);
pub const SET_PARAMS: u32 = command(READ_WRITE, CONTROL_BYTES as u32, 0x08);
/// Deletes the device without waiting for its last user (Linux 6.9).
pub const DEL_DEV_ASYNC: u32 = command(READ, CONTROL_BYTES as u32, 0x14);
pub const GET_FEATURES: u32 = command(READ, CONTROL_BYTES as u32, 0x13);
pub const FETCH: u32 = command(READ_WRITE, IO_BYTES, 0x20);
pub const COMMIT_AND_FETCH: u32 = command(READ_WRITE, IO_BYTES, 0x21);

/// `UBLK_F_CMD_IOCTL_ENCODE` and `UBLK_F_USER_COPY`.
pub const IOCTL_ENCODE: u64 = 1 << 6;
pub const USER_COPY: u64 = 1 << 7;

/// Any number that is free, for a device that is added.
pub const ANY_DEVICE: u32 = u32::MAX;
/// Size of `struct ublksrv_ctrl_dev_info`, and the offset of the device's number in it.
pub const INFO_BYTES: usize = 64;
pub const INFO_ID: usize = 12;
/// Bytes of `struct ublk_params` up to its `discard`.
pub const PARAMS_BYTES: usize = 60;
/// Bytes of `struct ublksrv_io_desc`.
pub const DESCRIPTION_BYTES: usize = 24;
/// Unit of addresses and lengths, independent of a device's block size.
pub const SECTOR_BYTES: u64 = 512;

/// Offset of a request's data in the character device.
pub const fn data_offset(tag: u16) -> u64 {
    const START: u64 = 0x8000_0000;
    const TAG_SHIFT: u32 = 25;
    START + ((tag as u64) << TAG_SHIFT)
}

mod attribute {
    pub const READ_ONLY: u32 = 1;
    pub const ROTATIONAL: u32 = 1 << 1;
    pub const VOLATILE_CACHE: u32 = 1 << 2;
    pub const FUA: u32 = 1 << 3;
}

/// Bytes, field after field.
struct Bytes(Vec<u8>);

impl Bytes {
    fn u8(mut self, value: u8) -> Self {
        self.0.push(value);
        self
    }

    fn u16(mut self, value: u16) -> Self {
        self.0.extend_from_slice(&value.to_ne_bytes());
        self
    }

    fn u32(mut self, value: u32) -> Self {
        self.0.extend_from_slice(&value.to_ne_bytes());
        self
    }

    fn u64(mut self, value: u64) -> Self {
        self.0.extend_from_slice(&value.to_ne_bytes());
        self
    }

    fn whole<const N: usize>(self) -> [u8; N] {
        self.0.try_into().expect("every field")
    }
}

/// `struct ublksrv_ctrl_cmd`, padded as a ring's long entry has it.
pub fn control(device: u32, buffer: (u64, u16), data: u64) -> [u8; 80] {
    const NO_QUEUE: u16 = u16::MAX;
    let (address, length) = buffer;
    let bytes = Bytes(Vec::new()).u32(device).u16(NO_QUEUE).u16(length).u64(address).u64(data).u64(0);
    let command: [u8; CONTROL_BYTES] = bytes.whole();
    let mut padded = [0; 80];
    padded[..CONTROL_BYTES].copy_from_slice(&command);
    padded
}

/// `struct ublksrv_ctrl_dev_info` of a device with one queue.
pub fn info(depth: u16, longest_bytes: u32) -> [u8; INFO_BYTES] {
    let queues = Bytes(Vec::new()).u16(1).u16(depth).u16(0).u16(0);
    let ours = queues.u32(longest_bytes).u32(ANY_DEVICE).u32(0).u32(0).u64(IOCTL_ENCODE | USER_COPY);
    ours.u64(0).u32(0).u32(0).u64(0).u64(0).whole()
}

/// `struct ublk_params`: the properties of the disk.
pub fn params(shape: &crate::shape::Shape) -> [u8; PARAMS_BYTES] {
    const BASIC_AND_DISCARD: u32 = 1 | 1 << 1;
    let when = |is: bool, attribute: u32| if is { attribute } else { 0 };
    let attributes = attribute::VOLATILE_CACHE
        | attribute::FUA
        | when(shape.is_rotational, attribute::ROTATIONAL)
        | when(shape.is_read_only, attribute::READ_ONLY);
    let block_shift = shape.block_bytes.trailing_zeros() as u8;
    let sectors = |bytes: u32| bytes / SECTOR_BYTES as u32;
    let basic = Bytes(Vec::new()).u32(PARAMS_BYTES as u32).u32(BASIC_AND_DISCARD).u32(attributes);
    let basic = basic.u8(block_shift).u8(block_shift).u8(block_shift).u8(block_shift);
    let basic = basic.u32(sectors(shape.longest_bytes)).u32(0).u64(shape.capacity_bytes / SECTOR_BYTES).u64(0);
    let longest = sectors(shape.longest_cleared_bytes);
    // Alignment, granularity, the longest discard and write of zeros, and ranges of a discard.
    basic.u32(0).u32(shape.block_bytes).u32(longest).u32(longest).u16(1).u16(0).whole()
}

/// `struct ublksrv_io_cmd`: the result of a request, with which the next one of its tag is fetched.
pub fn io(tag: u16, result: i32) -> [u8; 16] {
    Bytes(Vec::new()).u16(0).u16(tag).u32(result as u32).u64(0).whole()
}

/// An operation that the kernel requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Data from the device.
    Read,
    /// Data to the device.
    Write,
    /// Makes completed writes durable.
    Flush,
    /// Discards data that are no longer needed.
    Discard,
    /// Zeros; they stay allocated if the flag is set.
    WriteZeroes {
        /// They keep their place.
        keeps_place: bool,
    },
}

/// Decodes the kernel's description of a request: operation, whether it is forced to the media, first byte and length.
/// `None` for an operation that was never offered.
pub fn described(bytes: &[u8; DESCRIPTION_BYTES]) -> Option<(Operation, bool, u64, u64)> {
    const FUA: u32 = 1 << 13;
    const KEEPS_PLACE: u32 = 1 << 15;
    let (flags, rest) = bytes.split_first_chunk::<4>()?;
    let (sectors, rest) = rest.split_first_chunk::<4>()?;
    let (start, _) = rest.split_first_chunk::<8>()?;
    let flags = u32::from_ne_bytes(*flags);
    let operation = match flags & 0xff {
        0 => Operation::Read,
        1 => Operation::Write,
        2 => Operation::Flush,
        3 => Operation::Discard,
        5 => Operation::WriteZeroes { keeps_place: flags & KEEPS_PLACE != 0 },
        _ => return None,
    };
    let is_forced = flags & FUA != 0;
    if operation == Operation::Flush {
        // A flush concerns the whole device; its start sector is meaningless (-1).
        return Some((operation, is_forced, 0, 0));
    }
    let length_bytes = u64::from(u32::from_ne_bytes(*sectors)) * SECTOR_BYTES;
    Some((operation, is_forced, u64::from_ne_bytes(*start) * SECTOR_BYTES, length_bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares the commands with the numbers that `gcc` computes from `linux/ublk_cmd.h`.
    #[test]
    fn commands_are_those_of_the_header() {
        assert_eq!([ADD_DEV, DEL_DEV, START_DEV, STOP_DEV], [0xc020_7504, 0xc020_7505, 0xc020_7506, 0xc020_7507]);
        assert_eq!([SET_PARAMS, GET_FEATURES, DEL_DEV_ASYNC], [0xc020_7508, 0x8020_7513, 0x8020_7514]);
        assert_eq!([FETCH, COMMIT_AND_FETCH], [0xc010_7520, 0xc010_7521]);
        assert_eq!(data_offset(3), 0x8000_0000 + (3 << 25));
    }

    #[test]
    fn field_offsets_match_the_kernel_header() {
        let info = info(128, 1 << 20);
        assert_eq!(info[INFO_ID..INFO_ID + 4], ANY_DEVICE.to_ne_bytes());
        assert_eq!(info[24..32], (IOCTL_ENCODE | USER_COPY).to_ne_bytes());
        let shape = crate::shape::Shape {
            capacity_bytes: 1 << 30,
            block_bytes: 4096,
            is_rotational: true,
            is_read_only: true,
            depth: 128,
            longest_bytes: 1 << 20,
            longest_cleared_bytes: 1 << 30,
        };
        let params = params(&shape);
        assert_eq!(params[8..12], 0b1111_u32.to_ne_bytes(), "read-only, rotational, a volatile cache, FUA");
        assert_eq!(params[12..16], [12; 4], "blocks of 4 KiB");
        assert_eq!(params[16..20], 2048_u32.to_ne_bytes());
        assert_eq!(params[24..32], (1_u64 << 21).to_ne_bytes());
        assert_eq!(params[44..48], 4096_u32.to_ne_bytes());
        assert_eq!(params[48..52], (1_u32 << 21).to_ne_bytes());
    }

    #[test]
    fn a_request_decodes_its_descriptor() {
        let of = |flags: u32, sectors: u32, start: u64| {
            let bytes = Bytes(Vec::new()).u32(flags).u32(sectors).u64(start).u64(0);
            described(&bytes.whole())
        };
        assert_eq!(of(1 | 1 << 13, 8, 2), Some((Operation::Write, true, 1024, 4096)));
        assert_eq!(of(1 << 8, 8, 0), Some((Operation::Read, false, 0, 4096)));
        assert_eq!(of(5 | 1 << 15, 1, 0), Some((Operation::WriteZeroes { keeps_place: true }, false, 0, 512)));
        assert_eq!(of(5, u32::MAX, 0).unwrap().3, u64::from(u32::MAX) * 512);
        assert_eq!(of(2, 0, u64::MAX), Some((Operation::Flush, false, 0, 0)));
        assert_eq!(of(4, 8, 0), None, "write same was never offered");
    }
}
