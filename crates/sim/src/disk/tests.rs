//! Compares the media cache and the flash with a model that remembers every version, to test where the newest data are.

use std::collections::HashMap;

use proptest::prelude::*;

use super::cleaning::{Cleaning, CleaningStep, Shape};
use super::flash::Flash;
use super::log::{Log, LogPlace, Piece};
use crate::description::drive::FlashCache;

const HOME: usize = 400;
const LOG: u64 = 96;
const BAND: u64 = 50;
const SHAPE: Shape = Shape { home_block: LOG, home_sectors: HOME as u64, step_sectors: 7 };

/// A drive whose sectors hold version numbers: 0 is the initial one.
struct Model {
    log: Log,
    cleaning: Cleaning,
    shingled: bool,
    newest: Vec<u32>,
    media: Vec<u32>,
    /// Versions by place of the log, in the buffer now or earlier.
    written: HashMap<u64, u32>,
    /// Versions that the cleaning has read from the media, by the sector of home that they are for.
    read: HashMap<u64, u32>,
    from_log: HashMap<u64, u64>,
    version: u32,
}

impl Model {
    fn new(shingled: bool) -> Self {
        Model {
            log: Log::new(LOG, 24),
            cleaning: Cleaning::default(),
            shingled,
            newest: vec![0; HOME],
            media: vec![0; LOG as usize + HOME],
            written: HashMap::new(),
            read: HashMap::new(),
            from_log: HashMap::new(),
            version: 0,
        }
    }

    fn write(&mut self, home: u64, sectors: u32) {
        self.version += 1;
        self.log.write(home, sectors);
        for sector in 0..u64::from(sectors) {
            self.newest[(home + sector) as usize] = self.version;
            let at = self.log.head() - u64::from(sectors) + sector;
            self.written.insert(at, self.version);
        }
    }

    fn append(&mut self) -> bool {
        let Some(batch) = self.log.next_batch(16) else {
            return false;
        };
        // Places of a batch are consecutive: the last one is where the log's durable part ends afterwards.
        self.log.appended(&batch);
        let first = self.log.durable() - u64::from(batch.sectors);
        assert_eq!(self.log.block(first), batch.block);
        for at in first..self.log.durable() {
            self.media[self.log.block(at) as usize] = self.written[&at];
        }
        true
    }

    fn clean_step(&mut self) -> bool {
        if self.cleaning.is_over() {
            let extents = if self.shingled {
                self.cleaning.band(&self.log, BAND, &SHAPE)
            } else {
                self.cleaning.sweep(&self.log, 40, &SHAPE)
            };
            self.read.clear();
            let durable = |cached: &super::log::Cached| cached.at < self.log.durable();
            let places = self.log.cached(0, HOME as u64).filter(durable);
            self.from_log = places
                .flat_map(|cached| (0..u64::from(cached.sectors)).map(move |i| (cached.home + i, cached.at + i)))
                .collect();
            if extents == 0 {
                return false;
            }
        }
        let step = self.cleaning.next_step(1).expect("a cleaning that is not over has a step");
        let CleaningStep { write, block, sectors } = step;
        for sector in block..block + u64::from(sectors) {
            if write {
                self.media[sector as usize] = self.to_bring_home(sector);
            } else {
                self.read.insert(sector, self.media[sector as usize]);
            }
        }
        if self.cleaning.step_done() {
            self.cleaning.finish(&mut self.log);
        }
        true
    }

    fn to_bring_home(&self, sector: u64) -> u32 {
        match self.from_log.get(&(sector - LOG)) {
            Some(&at) => self.read[&self.log.block(at)],
            None => self.read[&sector],
        }
    }

    fn check(&self) {
        let mut pieces: Vec<Piece> = Vec::new();
        self.log.pieces(0, HOME as u64, &mut pieces);
        let mut next = 0;
        for piece in pieces {
            assert_eq!(piece.home, next, "pieces leave nothing out");
            next += u64::from(piece.sectors);
            let mut cached = self.log.cached(piece.home, next);
            for sector in 0..u64::from(piece.sectors) {
                let found = match piece.place {
                    LogPlace::Home => self.media[(LOG + piece.home + sector) as usize],
                    LogPlace::Log(block) => self.media[(block + sector) as usize],
                    LogPlace::Buffer => self.written[&(cached.next().unwrap().at)],
                };
                assert_eq!(found, self.newest[(piece.home + sector) as usize], "sector {}", piece.home + sector);
                if piece.place == LogPlace::Buffer {
                    cached = self.log.cached(piece.home + sector + 1, next.max(piece.home + sector + 1));
                }
            }
        }
        assert_eq!(next, HOME as u64);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    /// After any sequence of writes, appends and cleanings every sector's newest version is where the map says, and at
    /// home once everything is clean.
    #[test]
    fn the_media_cache_never_loses_nor_ages_data(
        shingled in any::<bool>(),
        commands in prop::collection::vec((0u8..10, 0u64..HOME as u64 - 12, 1u32..=12, any::<bool>()), 1..200),
    ) {
        let mut model = Model::new(shingled);
        for (kind, home, sectors, close) in commands {
            match kind {
                0..4 => model.write(if close { home % 40 } else { home }, sectors),
                4..7 => { model.append(); }
                _ => { model.clean_step(); }
            }
            model.check();
        }
        for round in 0.. {
            prop_assert!(round < 10_000, "it never becomes clean");
            let appended = model.append();
            if !model.clean_step() && !appended {
                break;
            }
            model.check();
        }
        prop_assert!(model.log.is_clean() && model.log.is_durable());
        prop_assert_eq!(&model.media[LOG as usize..], &model.newest[..]);
    }

    /// Every block in flash was read after it was last written.
    #[test]
    fn flash_cache_never_serves_stale_data(
        commands in prop::collection::vec((0u8..3, 0u64..40, 1u64..4, 0u64..20_000_000), 1..400),
    ) {
        let mut flash = Flash::new(&FlashCache {
            size_bytes: 12 * 4096,
            block_bytes: 4096,
            latency_ns: 0,
            ns_per_byte: 0.0,
            fill_bytes_per_s: 1e6,
            history_blocks: 64,
            on_first_read: false,
            keeps_written: false,
            sequential_bytes: 1 << 40,
        });
        let mut fresh = [false; 64];
        let mut now_ns = 0;
        for (kind, block, blocks, gap_ns) in commands {
            now_ns += gap_ns;
            let (start, length) = (block * 4096, blocks * 4096);
            let range = block as usize..(block + blocks) as usize;
            match kind {
                0 => {
                    flash.was_written(start, length);
                    fresh[range].fill(false);
                }
                1 => {
                    flash.was_read(now_ns, start, length);
                    fresh[range].fill(true);
                }
                _ => prop_assert!(!flash.holds(now_ns, start, length) || fresh[range].iter().all(|&fresh| fresh)),
            }
        }
    }
}
