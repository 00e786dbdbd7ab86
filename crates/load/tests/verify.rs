//! Runs whose data are verified: as they are read, and by a pass when all is written.

#[path = "engine/support.rs"]
#[allow(dead_code)]
mod support;

use headstack_load::EngineKind;
use headstack_workload::jobs::Verify;
use support::*;

#[test]
fn what_was_written_is_read_and_found_intact() {
    for engine in [EngineKind::Ring, EngineKind::Psync] {
        for direct in [true, false] {
            let file = TestFile::holes(MIB);
            let target = file.open(direct);
            let mixed = workload(4 * KIB, 50.0, &closed(8));
            let mut job = job(&[target], engine, mixed, requests(4000));
            job.verify = Verify::Stamp;
            let integrity = measure(vec![job]).integrity.expect("it was verified");
            assert_eq!(integrity.faults(), 0, "{integrity:?}");
            assert!(integrity.intact > 1000, "{integrity:?}");
            assert_eq!(integrity.block_bytes, 4096);
        }
    }
}
