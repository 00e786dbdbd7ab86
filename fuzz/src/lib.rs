//! What must hold of a drive that a parser has accepted, whichever parser it was.

use std::collections::BTreeMap;

use headstack_catalogue::{description_to_toml, resolve};
use headstack_sim::drive::check;
use headstack_sim::drive::description::DriveDescription;
use headstack_sim::drive::geometry::Layout;
use headstack_sim::replay;
use headstack_workload::{Document, Kind, ReplayRecord};

/// Asserts that the drive can exist, that its ends are on it, that it serves requests, and that its complete form reads
/// back as the very same drive.
pub fn assert_sound(description: &DriveDescription) {
    check(description).expect("an accepted drive is possible");
    let layout = Layout::new(&description.geometry);
    for block in [0, layout.blocks() - 1] {
        let extent = layout.locate(block, 1);
        assert!(extent.cylinder < description.geometry.cylinders, "block {block} lies on cylinder {}", extent.cylinder);
        assert!(extent.head < description.geometry.heads, "block {block} lies on surface {}", extent.head);
    }
    assert_serves(description);
    let text = description_to_toml(description, &BTreeMap::new());
    let again = resolve(&Document::parse("complete.toml", &text).expect("the complete form is TOML"));
    let again = again.expect("the complete form is accepted");
    assert_eq!(again.description, *description);
    assert_eq!(again.derived, [], "the complete form leaves nothing to derive");
}

/// A read, a write and a read again of the first, the middle and the last block.
fn assert_serves(description: &DriveDescription) {
    let block_bytes = description.geometry.logical_block_bytes;
    let last = description.geometry.logical_blocks - 1;
    let records: Vec<ReplayRecord> = [0, last / 2, last]
        .into_iter()
        .flat_map(|block| [Kind::Read, Kind::Write, Kind::Read].map(|kind| (kind, block)))
        .map(|(kind, block)| ReplayRecord {
            kind,
            offset_bytes: block * u64::from(block_bytes),
            length_bytes: block_bytes,
            think_ns: 0,
        })
        .collect();
    let responses_ns = replay(description, &records).expect("the requests lie on the drive");
    assert_eq!(responses_ns.len(), records.len());
}
