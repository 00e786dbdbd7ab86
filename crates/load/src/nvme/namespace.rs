//! A namespace: what it is, and commands to it one at a time.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, RawFd};

use headstack_workload::{Kind, Request};

use super::{Command, TrimRange, result_of, words_of};

/// `linux/nvme_ioctl.h`: _IO('N', 0x40), _IOWR('N', 0x41, struct nvme_passthru_cmd), _IOWR('N', 0x43, the same).
const NVME_IOCTL_ID: libc::Ioctl = 0x4e40;
const NVME_IOCTL_ADMIN_CMD: libc::Ioctl = 0xc048_4e41_u32 as libc::Ioctl;
const NVME_IOCTL_IO_CMD: libc::Ioctl = 0xc048_4e43_u32 as libc::Ioctl;

/// Structures that Identify tells: of a namespace and of its controller.
const OF_NAMESPACE: u32 = 0;
const OF_CONTROLLER: u32 = 1;

/// Pages that drives count the longest transfer in; controllers that have larger ones alone are not known.
const PAGE_BYTES: u64 = 4096;
/// Blocks of a command are counted in 16 bits, from 0.
const BLOCKS_MAX: u64 = 1 << 16;

/// How a namespace is addressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Its number.
    pub namespace: u32,
    /// A block has two to the power of so many bytes.
    pub block_shift: u32,
    /// All of it.
    pub capacity_bytes: u64,
    /// The longest transfer.
    pub longest_bytes: u32,
}

/// An open namespace.
#[derive(Debug)]
pub struct Namespace {
    file: File,
    geometry: Geometry,
    is_durable: bool,
}

impl Namespace {
    /// The namespace behind an open character device, whose writes are complete on the medium with `is_durable`.
    ///
    /// # Errors
    /// When the kernel or the drive does not say what it is, in words that belong behind its name.
    pub fn new(file: File, is_durable: bool) -> Result<Namespace, String> {
        // SAFETY: takes no argument.
        let id = unsafe { libc::ioctl(file.as_raw_fd(), NVME_IOCTL_ID) };
        let id = u32::try_from(id)
            .map_err(|_| format!("is a character device and no NVMe namespace ({})", io::Error::last_os_error()))?;
        let identified = |structure| {
            let mut page = Box::new([0u8; 4096]);
            let namespace = if structure == OF_NAMESPACE { id } else { 0 };
            let mut command = Command::identify(namespace, structure, &mut page);
            match call(&file, NVME_IOCTL_ADMIN_CMD, &mut command) {
                0 => Ok(page),
                failed => Err(format!("does not say what it is: {}", words_of(-result_of(failed, 0)))),
            }
        };
        let controller = identified(OF_CONTROLLER)?;
        let geometry = geometry_of(id, &*identified(OF_NAMESPACE)?, controller[77])?;
        Ok(Namespace { file, geometry, is_durable })
    }

    /// The same, of which no command is longer than `bytes`.
    pub fn with_longest(mut self, bytes: u32) -> Namespace {
        self.geometry.longest_bytes = self.geometry.longest_bytes.min(bytes);
        self
    }

    /// The open file, to the kernel.
    pub fn fd(&self) -> RawFd {
        self.file.as_raw_fd()
    }

    /// How it is addressed.
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// Whether a write is complete when it is on the medium.
    pub fn is_durable(&self) -> bool {
        self.is_durable
    }

    /// Carries out a request at `offset_bytes` whose data are at `memory`, and waits for its end: bytes transferred, or a
    /// negative number as [`result_of`] makes it.
    ///
    /// # Safety
    /// `memory` is valid for the length of the request until this returns, and its contents matter to nobody else.
    pub unsafe fn carry_out(&self, request: &Request, offset_bytes: u64, memory: *mut u8) -> i32 {
        match request.kind {
            Kind::Read | Kind::Write => {
                let mut command = Command::transfer(request, offset_bytes, &self.geometry, memory, self.is_durable);
                result_of(call(&self.file, NVME_IOCTL_IO_CMD, &mut command), request.length_bytes)
            }
            Kind::Trim => self.trim(offset_bytes, request.length_bytes.into()),
            Kind::Flush => self.flush(),
        }
    }

    /// Trims a range; 0, or a negative number as above.
    pub fn trim(&self, offset_bytes: u64, length_bytes: u64) -> i32 {
        let range = TrimRange::new(offset_bytes, length_bytes, &self.geometry);
        let mut command = Command::trim(&raw const range, &self.geometry);
        result_of(call(&self.file, NVME_IOCTL_IO_CMD, &mut command), 0)
    }

    /// Flushes the drive's write cache; 0, or a negative number as above.
    pub fn flush(&self) -> i32 {
        result_of(call(&self.file, NVME_IOCTL_IO_CMD, &mut Command::flush(&self.geometry)), 0)
    }
}

/// Hands a command over and waits: 0, the drive's status above it, or the kernel's error number below.
fn call(file: &File, how: libc::Ioctl, command: &mut Command) -> i32 {
    // SAFETY: the kernel reads and writes a command, and memory that its maker keeps until this returns.
    match unsafe { libc::ioctl(file.as_raw_fd(), how, &raw mut *command) } {
        -1 => -io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO),
        status => status,
    }
}

/// What Identify said: figure 97 of the NVM Command Set Specification 1.0 of the namespace, and the largest transfer of the
/// controller as a power of two of pages, 0 for any.
fn geometry_of(namespace: u32, page: &[u8; 4096], largest: u8) -> Result<Geometry, String> {
    let blocks = u64::from_le_bytes(page[..8].try_into().expect("eight bytes"));
    // Four bits of the format's number, and two more above them where there are many.
    let format = page[26];
    let number = usize::from(format & 0x0f | (format >> 5 & 3) << 4);
    let entry = &page[128 + 4 * number..][..4];
    let (metadata_bytes, shift) = (u16::from_le_bytes([entry[0], entry[1]]), u32::from(entry[2]));
    if !(9..=24).contains(&shift) {
        return Err(format!("says that its blocks are of 2^{shift} bytes; 512 and more are known"));
    }
    if metadata_bytes > 0 {
        return Err(format!(
            "has {metadata_bytes} bytes of metadata to each block, which would have to be written too: measure its block \
             device, or a format without"
        ));
    }
    let capacity_bytes = blocks.checked_mul(1 << shift).ok_or("says that it has more than 2^64 bytes")?;
    let of_drive = if largest == 0 { u64::MAX } else { PAGE_BYTES.saturating_mul(1 << u32::from(largest).min(40)) };
    let longest = of_drive.min(BLOCKS_MAX << shift).min(u64::from(u32::MAX));
    let longest_bytes = (longest >> shift << shift) as u32;
    Ok(Geometry { namespace, block_shift: shift, capacity_bytes, longest_bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A namespace of so many blocks in its third format, with a controller that takes 2^5 pages at once.
    fn page(blocks: u64, format: u8, entry: [u8; 4]) -> Box<[u8; 4096]> {
        let mut page = Box::new([0; 4096]);
        page[..8].copy_from_slice(&blocks.to_le_bytes());
        page[26] = format;
        let number = usize::from(format & 0x0f | (format >> 5 & 3) << 4);
        page[128 + 4 * number..][..4].copy_from_slice(&entry);
        page
    }

    #[test]
    fn a_namespace_is_what_identify_says() {
        let of_4k = geometry_of(3, &page(1000, 2, [0, 0, 12, 0]), 5).unwrap();
        let expected = Geometry { namespace: 3, block_shift: 12, capacity_bytes: 4_096_000, longest_bytes: 131_072 };
        assert_eq!(of_4k, expected);
        // Format 17, whose number has a bit above the four; any length, so that the count of blocks bounds it.
        let of_512 = geometry_of(1, &page(1 << 21, 0x21, [0, 0, 9, 2]), 0).unwrap();
        assert_eq!((of_512.block_shift, of_512.capacity_bytes, of_512.longest_bytes), (9, 1 << 30, 32 << 20));
        let with_metadata = geometry_of(1, &page(8, 1, [8, 0, 9, 0]), 0).unwrap_err();
        assert!(with_metadata.starts_with("has 8 bytes of metadata"), "{with_metadata}");
        let odd = geometry_of(1, &page(8, 0, [0, 0, 3, 0]), 0).unwrap_err();
        assert!(odd.contains("2^3 bytes"), "{odd}");
        assert!(geometry_of(1, &page(u64::MAX, 0, [0, 0, 12, 0]), 0).is_err());
    }

    #[test]
    fn a_character_device_that_is_no_namespace_is_said_to_be_none() {
        let said = Namespace::new(File::open("/dev/null").unwrap(), false).unwrap_err();
        assert!(said.starts_with("is a character device and no NVMe namespace"), "{said}");
    }
}
