//! [`Libblkid`]: signatures on a device as found by libblkid, in addition to headstack's own table.
//!
//! The library is loaded when a device is to be written, if the machine has it. It reads through the open descriptor,
//! so no other program and no further privileges are needed.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr::{null, null_mut};
use std::sync::OnceLock;

/// Name of the library, which has never changed.
const NAME: &CStr = c"libblkid.so.1";
/// Limit of the number of signatures. libblkid knows about eighty formats, so it cannot find as many.
const MOST: usize = 256;
/// Flags of `blkid/blkid.h`: report names and offsets of superblocks, including those with wrong checksums, and offsets
/// of partition tables, including a GPT without its boot sector.
const SUPERBLOCKS: c_int = 1 << 5 | 1 << 9 | 1 << 10;
const PARTITIONS: c_int = 1 << 1 | 1 << 3;

type Probe = *mut c_void;

/// The library's functions that are used.
pub(super) struct Libblkid {
    new_probe: unsafe extern "C" fn() -> Probe,
    free_probe: unsafe extern "C" fn(Probe),
    set_device: unsafe extern "C" fn(Probe, c_int, i64, i64) -> c_int,
    settings: [(unsafe extern "C" fn(Probe, c_int) -> c_int, c_int); 4],
    do_probe: unsafe extern "C" fn(Probe) -> c_int,
    lookup_value: unsafe extern "C" fn(Probe, *const c_char, *mut *const c_char, *mut usize) -> c_int,
}

/// A signature, with libblkid's name for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LibblkidSignature {
    pub name: String,
    /// Offset from the start of the searched range, in bytes.
    pub at_bytes: u64,
}

impl Libblkid {
    /// Returns the machine's library; `None` if it has none.
    pub(super) fn here() -> Option<&'static Libblkid> {
        static HERE: OnceLock<Option<Libblkid>> = OnceLock::new();
        HERE.get_or_init(|| Libblkid::load(NAME)).as_ref()
    }

    /// Loads the library for the lifetime of the process.
    fn load(name: &CStr) -> Option<Libblkid> {
        // SAFETY: passes a C string; libblkid has no constructors that could do harm.
        let library = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if library.is_null() {
            return None;
        }
        /// # Safety
        /// `F` must be the type of the function.
        unsafe fn function<F>(library: *mut c_void, name: &CStr) -> Option<F> {
            // SAFETY: passes a loaded library and a C string.
            let address = unsafe { libc::dlsym(library, name.as_ptr()) };
            // SAFETY: a non-null address is that of a function of type F, as the caller guarantees.
            (!address.is_null()).then(|| unsafe { std::mem::transmute_copy::<*mut c_void, F>(&address) })
        }
        // SAFETY: the types are those of `blkid/blkid.h`, which are the same in all versions of libblkid.so.1.
        unsafe {
            Some(Libblkid {
                new_probe: function(library, c"blkid_new_probe")?,
                free_probe: function(library, c"blkid_free_probe")?,
                set_device: function(library, c"blkid_probe_set_device")?,
                settings: [
                    (function(library, c"blkid_probe_enable_superblocks")?, 1),
                    (function(library, c"blkid_probe_set_superblocks_flags")?, SUPERBLOCKS),
                    (function(library, c"blkid_probe_enable_partitions")?, 1),
                    (function(library, c"blkid_probe_set_partitions_flags")?, PARTITIONS),
                ],
                do_probe: function(library, c"blkid_do_probe")?,
                lookup_value: function(library, c"blkid_probe_lookup_value")?,
            })
        }
    }

    /// Returns all signatures in `length_bytes` of a device from `from_bytes` on.
    ///
    /// # Errors
    /// Returns an error if the device cannot be read.
    pub(super) fn probe(
        &self,
        device: &File,
        from_bytes: u64,
        length_bytes: u64,
    ) -> io::Result<Vec<LibblkidSignature>> {
        let failed = || io::Error::other("libblkid cannot read it");
        let (Ok(from), Ok(length)) = (i64::try_from(from_bytes), i64::try_from(length_bytes)) else {
            return Err(failed());
        };
        // libblkid takes a length of 0 to mean the whole device.
        if length == 0 {
            return Ok(Vec::new());
        }
        // SAFETY: takes no argument.
        let probe = Owned { library: self, probe: unsafe { (self.new_probe)() } };
        // SAFETY: passes a live probe, the descriptor of a file that outlives it, and numbers.
        let is_ready = !probe.probe.is_null()
            && unsafe { (self.set_device)(probe.probe, device.as_raw_fd(), from, length) } == 0
            // SAFETY: as above.
            && self.settings.iter().all(|(set, value)| unsafe { set(probe.probe, *value) } == 0);
        if !is_ready {
            return Err(failed());
        }
        let mut signatures = Vec::new();
        for _ in 0..MOST {
            // SAFETY: passes a live probe that has a device.
            match unsafe { (self.do_probe)(probe.probe) } {
                0 => {}
                1 => break,
                _ => return Err(failed()),
            }
            for (name, place) in [(c"TYPE", c"SBMAGIC_OFFSET"), (c"PTTYPE", c"PTMAGIC_OFFSET")] {
                if let Some(name) = probe.value(name) {
                    let at_bytes = probe.value(place).and_then(|text| text.parse().ok()).unwrap_or(0);
                    signatures.push(LibblkidSignature { name, at_bytes });
                }
            }
        }
        Ok(signatures)
    }
}

/// A probe that is freed on drop.
struct Owned<'a> {
    library: &'a Libblkid,
    probe: Probe,
}

impl Owned<'_> {
    /// Returns a value of the last signature found.
    fn value(&self, name: &CStr) -> Option<String> {
        let mut data = null();
        // SAFETY: passes a live probe, a C string, and room for an address; no length is requested.
        let result = unsafe { (self.library.lookup_value)(self.probe, name.as_ptr(), &raw mut data, null_mut()) };
        if result != 0 || data.is_null() {
            return None;
        }
        // SAFETY: values of these names are C strings, and stay valid until the next probe.
        Some(unsafe { CStr::from_ptr(data) }.to_string_lossy().into_owned())
    }
}

impl Drop for Owned<'_> {
    fn drop(&mut self) {
        if !self.probe.is_null() {
            // SAFETY: the probe was made by the same library and is freed once.
            unsafe { (self.library.free_probe)(self.probe) };
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use super::super::signatures;
    use super::*;

    #[test]
    fn a_machine_without_the_library_has_no_second_opinion() {
        assert!(Libblkid::load(c"libblkid.so.none").is_none());
        // A library without libblkid's functions is rejected.
        assert!(Libblkid::load(c"libc.so.6").is_none());
    }

    /// Checks formats that both detect only by magic number, so names and offsets must agree.
    #[test]
    fn the_second_opinion_has_the_same_names_for_the_same_places() {
        let Some(library) = Libblkid::here() else {
            return headstack_needs::lacks(headstack_needs::Need::Programs, "libblkid.so.1");
        };
        let length_bytes = (64 << 20) + 63 * 512;
        let cases: &[(&str, &[u8], u64)] = &[
            ("bfs", b"\xce\xfa\xad\x1b", 0),
            ("DM_snapshot_cow", b"SnAp", 0),
            ("DM_integrity", b"integrt\0\x01", 0),
            ("DM_verity_hash", b"verity\0\0\x01\0\0\0", 0),
            ("LVM1_member", b"HM\x01\0", 0),
            ("ubi", b"UBI#", 0),
            ("zonefs", b"SFOZ", 0),
            ("ufs", b"\x19\x01\x54\x19", (64 << 10) + 0x55c),
            ("vxfs", b"\xf5\xfc\x01\xa5", 1024),
            ("promise_fasttrack_raid_member", b"Promise Technology, Inc.", length_bytes - 63 * 512),
            ("lsi_mega_raid_member", b"$XIDE$", length_bytes - 512),
        ];
        for &(name, magic, at_bytes) in cases {
            let file = signatures::image(length_bytes);
            file.write_all_at(magic, at_bytes).unwrap();
            let theirs = library.probe(&file, 0, length_bytes).unwrap();
            assert_eq!(theirs, [LibblkidSignature { name: name.into(), at_bytes }]);
            let ours = signatures::probe(&file, 0, length_bytes).unwrap();
            assert_eq!(ours.iter().map(|one| (one.name, one.at_bytes)).collect::<Vec<_>>(), [(name, at_bytes)]);
            // Signatures outside the searched range are not found.
            assert_eq!(library.probe(&file, 1 << 20, 1 << 20).unwrap(), []);
        }
    }
}
