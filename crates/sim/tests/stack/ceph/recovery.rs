//! Recovery beside clients.

use headstack_sim::stack::description::Recovery;
use headstack_workload::Kind;

use super::*;
use crate::common::request;

/// Each OSD recovers its objects and then stops; bytes are read from other OSDs and written once.
#[test]
fn each_osd_recovers_its_objects() {
    for redundancy in [Redundancy::Copies(3), erasure(2, 1, 4, ErasureAccess::WholeStripes)] {
        let recovery = Some(Recovery { active_max: 3, objects: 7 });
        let description = CephDescription { recovery, ..free(4, 4, redundancy) };
        let mut bench = Bench::new(&ceph(&description, &[ssd()]));
        assert_eq!(bench.system.next_event_ns(), u64::MAX, "it begins with the first request");
        bench.takes_ns(&request(Kind::Read, 0, 4096));
        bench.settle();
        let bytes = 4 * 7 * redundancy.shard_bytes();
        assert_eq!(count(&bench, "osd_recovered_bytes"), bytes);
        assert_eq!(count(&bench, "osd_data_writes"), 4 * 7);
    }
}
