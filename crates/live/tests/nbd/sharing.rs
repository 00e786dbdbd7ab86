//! Several clients at once.

use std::thread;

use headstack_live::Contents;
use headstack_live::nbd::Security;
use headstack_live::nbd::wire::{Errno, chunk, command};

use super::served::{Asking, Folder, LARGE_BYTES, LATENCIES_NS, PATIENCE, SMALL_BYTES, Served, header, pattern};

#[test]
fn clients_of_one_export_share_contents() {
    for latency_ns in LATENCIES_NS {
        let served = Served::new(latency_ns);
        let mut clients = [served.client(), served.client()];
        for turn in 0..20u64 {
            let data = pattern(turn, 8192);
            let [writer, reader] = [turn as usize % 2, (turn as usize + 1) % 2];
            assert_eq!(clients[writer].simple(&header(command::WRITE, 0, 1, turn * 4096, 8192), &data), Ok(vec![]));
            assert_eq!(clients[reader].simple(&header(command::READ, 0, 2, turn * 4096, 8192), &[]), Ok(data));
        }
    }
}

#[test]
fn exports_are_apart() {
    let served = Served::new(0);
    let (mut large, mut small) = (served.client(), served.structured("small"));
    let data = pattern(5, 4096);
    small.chunks(&header(command::WRITE, 0, 1, 0, 4096), &data);
    assert_eq!(large.simple(&header(command::READ, 0, 2, 0, 4096), &[]), Ok(vec![0; 4096]));
    let beyond = small.chunks(&header(command::WRITE, 0, 3, SMALL_BYTES, 4096), &data);
    assert_eq!(beyond[0].kind, chunk::ERROR);
    let unaligned = small.chunks(&header(command::READ, 0, 4, 512, 512), &[]);
    assert_eq!(unaligned[0].kind, chunk::ERROR, "its blocks have 4 KiB");
    assert_eq!(large.simple(&header(command::READ, 0, 5, LARGE_BYTES - 4096, 4096), &[]), Ok(vec![0; 4096]));
}

#[test]
fn a_server_stops_during_active_requests() {
    for latency_ns in LATENCIES_NS {
        let mut served = Served::new(latency_ns);
        thread::scope(|scope| {
            let clients: Vec<_> = (0..8).map(|_| served.client()).collect();
            for (number, mut client) in clients.into_iter().enumerate() {
                scope.spawn(move || {
                    let mut data = vec![number as u8; 65536];
                    let request = header(command::WRITE, 0, 1, 65536 * number as u64, 65536);
                    // Its end comes as an end; who is not cut off goes on for ever.
                    while client.send(&request, &data).and_then(|()| client.receive(|_| &mut data[..0])).is_ok() {}
                });
            }
            // Every client has been served.
            for number in 0..8 {
                let begun = std::time::Instant::now();
                while served.device.contents.is_hole(65536 * number, 65536) {
                    assert!(begun.elapsed() < PATIENCE, "client {number} is not served");
                    thread::yield_now();
                }
            }
            served.stop();
            assert!(!served.socket.exists(), "its socket stays");
        });
    }
}

#[test]
fn a_full_disk_is_reported_and_survived() {
    let folder = Folder::new();
    let mounted = std::process::Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=1m", "tmpfs"])
        .arg(folder.path())
        .output()
        .is_ok_and(|done| done.status.success());
    if !mounted {
        headstack_needs::lacks(headstack_needs::Need::Root, "only root can mount a small file system");
        return;
    }
    let contents = Contents::in_file(&folder.path().join("contents"), LARGE_BYTES + SMALL_BYTES).expect("a file");
    {
        let served = Served::with(LATENCIES_NS[1], contents, Security::None);
        let (mut simple, mut structured) = (served.client(), served.structured("large"));
        let data = vec![3; 512 << 10];
        let write = |megabytes: u64| header(command::WRITE, 0, 1, megabytes << 20, 512 << 10);
        assert_eq!(simple.simple(&write(0), &data), Ok(vec![]));
        assert_eq!(
            simple.simple(&write(1), &data).and_then(|_| simple.simple(&write(2), &data)),
            Err(Errno::NoSpace as u32)
        );
        let zeros = header(command::WRITE_ZEROES, command::FLAG_NO_HOLE, 2, 8 << 20, 4 << 20);
        assert_eq!(structured.chunks(&zeros, &[])[0].data[..4], (Errno::NoSpace as u32).to_be_bytes());
        // What was there is, and room that was made is room.
        assert!(simple.simple(&header(command::READ, 0, 3, 0, 512 << 10), &[]).as_ref() == Ok(&data));
        assert_eq!(simple.simple(&header(command::TRIM, 0, 4, 1 << 20, 128 << 20), &[]), Ok(vec![]));
        assert_eq!(simple.simple(&header(command::WRITE, 0, 5, 4 << 20, 4096), &data[..4096]), Ok(vec![]));
    }
    let unmounted = std::process::Command::new("umount").arg(folder.path()).status().expect("umount");
    assert!(unmounted.success(), "contents are still open");
}
