//! [`Web`]: a web server whose users fetch pages from a set of files.

use serde::{Deserialize, Serialize};

use super::step::{Facts, Step, StreamSetup, Turn, check_count, check_not_zero, io, mean_ns, per_second, read};
use crate::access::{Complaint, check_percent, check_share};
use crate::quantity::bytes_u32;
use crate::random::{Permutation, Purpose, Random, seed_of};
use crate::span::Span;

/// Most files whose places are kept.
const FILES_MAX: u32 = 1 << 26;

/// Users who fetch random pages, each the next one as soon as the last has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Web {
    /// Concurrent users.
    pub users: u32,
    /// Files in the set; files that do not fit into the range are left out.
    pub files: u32,
    /// The smallest file.
    #[serde(rename = "smallest_file", with = "bytes_u32")]
    pub smallest_bytes: u32,
    /// The mean of all files: sizes are `smallest + (largest - smallest) * u^k` for uniform u, with the k that yields
    /// this mean. Between equal bounds around the middle this is nearly uniform.
    #[serde(rename = "mean_file", with = "bytes_u32")]
    pub mean_bytes: u32,
    /// The largest file.
    #[serde(rename = "largest_file", with = "bytes_u32")]
    pub largest_bytes: u32,
    /// The first files of the set, in percent of their number, are hot.
    pub hot_files_percent: f64,
    /// Share of the pages that are hot files; the rest are any of the others.
    pub hot_pages_percent: f64,
    /// Placement of the files.
    #[serde(default)]
    pub layout: Layout,
    /// Request size in bytes.
    #[serde(default = "default_request", rename = "request", with = "bytes_u32")]
    pub request_bytes: u32,
    /// Reads of a page in flight at a time.
    #[serde(default = "default_read_ahead")]
    pub read_ahead: u32,
}

/// Placement of the files of a set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Layout {
    /// Contiguous from the range's start, the hot files first.
    #[default]
    Contiguous,
    /// In extents of this size, spread over the whole range.
    Scattered {
        /// Size of an extent.
        #[serde(rename = "extent", with = "bytes_u32")]
        extent_bytes: u32,
    },
}

fn default_request() -> u32 {
    256 << 10
}

fn default_read_ahead() -> u32 {
    1
}

impl Web {
    pub(crate) fn validate(&self) -> Result<(), Complaint> {
        check_count("users", self.users)?;
        check_count("read_ahead", self.read_ahead)?;
        if !(1..=FILES_MAX).contains(&self.files) {
            return Err(("files".to_owned(), format!("{} is out of range; 1 to {FILES_MAX} is allowed", self.files)));
        }
        check_not_zero("smallest_file", u64::from(self.smallest_bytes), "a page has content")?;
        check_not_zero("request", u64::from(self.request_bytes), "a read fetches at least one sector")?;
        let (smallest, mean, largest) = (self.smallest_bytes, self.mean_bytes, self.largest_bytes);
        let one_size = smallest == mean && mean == largest;
        if !(one_size || smallest < mean && mean < largest) {
            let message = format!("{mean} bytes is not between the smallest and the largest file");
            return Err(("mean_file".to_owned(), message));
        }
        check_share("hot_files_percent", self.hot_files_percent)?;
        check_percent("hot_pages_percent", self.hot_pages_percent)?;
        match self.layout {
            Layout::Scattered { extent_bytes } => {
                check_not_zero("layout.scattered.extent", u64::from(extent_bytes), "an extent holds data")
            }
            Layout::Contiguous => Ok(()),
        }
    }
}

pub(crate) struct WebRun {
    stream: u32,
    request_bytes: u32,
    read_ahead: u32,
    files: Files,
    hot_files: u64,
    /// Pages that are hot, as a limit for a 32-bit random number.
    hot_below: u64,
    users: Vec<User>,
    pages: u64,
    bytes: u64,
    page_sum_ns: u128,
}

struct User {
    random: Random,
    page: Option<Page>,
}

/// The page that a user is fetching.
struct Page {
    requested_ns: u64,
    length_bytes: u64,
    /// First byte that is still to be read, in the bytes of the file set.
    next_bytes: u64,
    end_bytes: u64,
    transferring: bool,
}

/// Placement of a set of files.
struct Files {
    start_bytes: u64,
    /// Start of each file in the bytes of the set, and the end of the last.
    edges_bytes: Vec<u64>,
    /// Size of an extent, and the place of each; `None` if the set is contiguous.
    extents: Option<(u64, Permutation)>,
}

impl Files {
    fn new(web: &Web, span: Span, sector_bytes: u32, seed: u64) -> Files {
        let sector = u64::from(sector_bytes);
        let (room_bytes, extents) = match web.layout {
            Layout::Contiguous => (span.length_bytes, None),
            Layout::Scattered { extent_bytes } => {
                let extent_bytes = u64::from(extent_bytes).next_multiple_of(sector).min(span.length_bytes);
                let count = span.length_bytes / extent_bytes;
                let permutation = Permutation::new(count, &mut Random::new(seed, Purpose::Permutation));
                (count * extent_bytes, Some((extent_bytes, permutation)))
            }
        };
        let (smallest, largest) = (f64::from(web.smallest_bytes), f64::from(web.largest_bytes));
        // The mean of u^k is 1 / (k + 1).
        let exponent = match largest - smallest {
            0.0 => 1.0,
            width => width / (f64::from(web.mean_bytes) - smallest) - 1.0,
        };
        let mut random = Random::new(seed, Purpose::Sizes);
        let mut edges_bytes = vec![0];
        let mut end_bytes = 0u64;
        for _ in 0..web.files {
            let size = smallest + (largest - smallest) * libm::pow(random.unit(), exponent);
            end_bytes += (size.round() as u64).next_multiple_of(sector);
            if end_bytes > room_bytes {
                break;
            }
            edges_bytes.push(end_bytes);
        }
        Files { start_bytes: span.start_bytes, edges_bytes, extents }
    }

    fn count(&self) -> u64 {
        self.edges_bytes.len() as u64 - 1
    }

    /// Returns the place of a byte of the set, and how many follow without a gap.
    fn place(&self, at_bytes: u64) -> (u64, u64) {
        match &self.extents {
            None => (self.start_bytes + at_bytes, u64::MAX),
            Some((extent_bytes, permutation)) => {
                let (extent, offset_bytes) = (at_bytes / extent_bytes, at_bytes % extent_bytes);
                let start_bytes = self.start_bytes + permutation.apply(extent) * extent_bytes;
                (start_bytes + offset_bytes, extent_bytes - offset_bytes)
            }
        }
    }
}

impl WebRun {
    pub(crate) fn new(web: &Web, setup: &StreamSetup) -> Result<WebRun, Complaint> {
        super::step::check_sectors("request", web.request_bytes, setup.sector_bytes)?;
        let files = Files::new(web, setup.span, setup.sector_bytes, setup.seed);
        let count = files.count();
        if count == 0 {
            let message = format!("no file fits into the range of {} bytes", setup.span.length_bytes);
            return Err(("files".to_owned(), message));
        }
        let user = |index| User { random: Random::new(seed_of(setup.seed, "user", index), Purpose::Pages), page: None };
        Ok(WebRun {
            stream: setup.stream,
            request_bytes: web.request_bytes,
            read_ahead: web.read_ahead,
            hot_files: ((count as f64 * web.hot_files_percent / 100.0).round() as u64).clamp(1, count),
            hot_below: (web.hot_pages_percent / 100.0 * (1u64 << 32) as f64).round() as u64,
            files,
            users: (0..web.users).map(user).collect(),
            pages: 0,
            bytes: 0,
            page_sum_ns: 0,
        })
    }

    pub(crate) fn clients(&self) -> u32 {
        self.users.len() as u32
    }

    pub(crate) fn next(&mut self, turn: Turn) -> Step {
        let user = &mut self.users[turn.client as usize];
        if let Some(page) = user.page.take_if(|page| page.transferring) {
            self.pages += 1;
            self.bytes += page.length_bytes;
            self.page_sum_ns += u128::from(turn.now_ns - page.requested_ns);
        }
        let page = user.page.get_or_insert_with(|| {
            let (hot, all) = (self.hot_files, self.files.count());
            let file = if hot == all || user.random.bits() >> 32 < self.hot_below {
                user.random.below(hot)
            } else {
                hot + user.random.below(all - hot)
            };
            let edges = &self.files.edges_bytes[file as usize..];
            Page {
                requested_ns: turn.now_ns,
                length_bytes: edges[1] - edges[0],
                next_bytes: edges[0],
                end_bytes: edges[1],
                transferring: false,
            }
        });
        if page.next_bytes < page.end_bytes && turn.in_flight < self.read_ahead {
            let (offset_bytes, room_bytes) = self.files.place(page.next_bytes);
            let length_bytes =
                u64::from(self.request_bytes).min(page.end_bytes - page.next_bytes).min(room_bytes) as u32;
            page.next_bytes += u64::from(length_bytes);
            return io(self.stream, read(offset_bytes, length_bytes));
        }
        if turn.in_flight > 0 {
            return Step::Await;
        }
        page.transferring = true;
        Step::Transfer { bytes: page.length_bytes }
    }

    pub(crate) fn start_measuring(&mut self) {
        (self.pages, self.bytes, self.page_sum_ns) = (0, 0, 0);
    }

    pub(crate) fn facts(&self, seconds: f64) -> Facts {
        Facts::Pages {
            files: self.files.count(),
            pages: self.pages,
            pages_per_s: per_second(self.pages, seconds),
            bytes: self.bytes,
            mean_page_ns: mean_ns(self.page_sum_ns, self.pages),
        }
    }
}
