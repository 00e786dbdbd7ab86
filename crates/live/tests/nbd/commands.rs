//! Requests: what each does, how it is answered, and what is refused.

use headstack_live::nbd::client::{Chunk, Client};
use headstack_live::nbd::wire::{self, Errno, Framing, chunk, command};

use super::served::{Asking, LARGE_BYTES, LATENCIES_NS, SMALL_BYTES, Served, header, pattern};

const MIB: u32 = 1 << 20;

#[test]
fn every_nbd_command_works() {
    for latency_ns in LATENCIES_NS {
        let served = Served::new(latency_ns);
        let mut client = served.client();
        let data = pattern(1, 3 * 4096);
        let write = header(command::WRITE, 0, 1, 8192, 3 * 4096);
        assert_eq!(client.simple(&write, &data), Ok(vec![]));
        assert_eq!(client.simple(&header(command::FLUSH, 0, 2, 0, 0), &[]), Ok(vec![]));
        assert_eq!(client.simple(&header(command::CACHE, 0, 3, 0, 4 * MIB), &[]), Ok(vec![]));
        assert_eq!(client.simple(&header(command::READ, 0, 4, 8192, 3 * 4096), &[]), Ok(data.clone()));
        let zeroing = [(command::TRIM, 0), (command::WRITE_ZEROES, 0), (command::WRITE_ZEROES, command::FLAG_NO_HOLE)];
        for (index, (zeroes, flags)) in zeroing.into_iter().enumerate() {
            assert_eq!(client.simple(&write, &data), Ok(vec![]));
            assert_eq!(client.simple(&header(zeroes, flags, 5, 12288, 4096), &[]), Ok(vec![]));
            let mut expected = data.clone();
            expected[4096..8192].fill(0);
            let read = client.simple(&header(command::READ, 0, 6, 8192, 3 * 4096), &[]);
            assert!(read == Ok(expected), "way {index} to have zeros");
        }
    }
}

#[test]
fn forced_writes_are_taken_by_every_command() {
    let served = Served::new(LATENCIES_NS[1]);
    let mut client = served.client();
    for command in [command::READ, command::WRITE, command::TRIM, command::WRITE_ZEROES, command::CACHE] {
        let payload = if command == command::WRITE { vec![9; 512] } else { vec![] };
        assert!(client.simple(&header(command, command::FLAG_FUA, 1, 0, 512), &payload).is_ok(), "command {command}");
    }
}

/// What is refused: command, flags, offset, length, and the error.
const REFUSED: &[(u16, u16, u64, u32, Errno)] = &[
    (command::READ, 0, 1, 512, Errno::Invalid),
    (command::READ, 0, 0, 513, Errno::Invalid),
    (command::READ, 0, LARGE_BYTES, 512, Errno::Invalid),
    (command::READ, 0, LARGE_BYTES - 512, 1024, Errno::Invalid),
    (command::READ, 0, u64::MAX - 511, 512, Errno::Invalid),
    (command::READ, 0, 0, 32 * MIB + 512, Errno::Invalid),
    (command::READ, 0, 0, u32::MAX, Errno::Invalid),
    (command::READ, 1 << 15, 0, 512, Errno::Invalid),
    (command::READ, command::FLAG_NO_HOLE, 0, 512, Errno::Invalid),
    (command::READ, command::FLAG_REQ_ONE, 0, 512, Errno::Invalid),
    (command::WRITE, command::FLAG_DF, 0, 512, Errno::Invalid),
    (command::WRITE, 0, 256, 512, Errno::Invalid),
    (command::WRITE, 0, 0, 100, Errno::Invalid),
    (command::WRITE, 0, LARGE_BYTES, 512, Errno::NoSpace),
    (command::WRITE, 0, u64::MAX - 511, 1024, Errno::NoSpace),
    (command::WRITE, 0, 0, 32 * MIB + 512, Errno::Invalid),
    (command::WRITE_ZEROES, 0, LARGE_BYTES - 512, 1024, Errno::NoSpace),
    (command::WRITE_ZEROES, 0, 3, 512, Errno::Invalid),
    (command::WRITE_ZEROES, command::FLAG_FAST_ZERO, 0, 512, Errno::NotSupported),
    (command::WRITE_ZEROES, command::FLAG_FAST_ZERO | command::FLAG_NO_HOLE, 0, 512, Errno::NotSupported),
    (command::WRITE_ZEROES, command::FLAG_DF, 0, 512, Errno::Invalid),
    (command::TRIM, 0, LARGE_BYTES, 512, Errno::Invalid),
    (command::TRIM, 0, 5, 512, Errno::Invalid),
    (command::TRIM, command::FLAG_NO_HOLE, 0, 512, Errno::Invalid),
    (command::CACHE, 0, LARGE_BYTES, 512, Errno::Invalid),
    (command::CACHE, 0, 0, 1, Errno::Invalid),
    (command::FLUSH, 0, 512, 0, Errno::Invalid),
    (command::FLUSH, 0, 0, 512, Errno::Invalid),
    (command::BLOCK_STATUS, 0, 0, 0, Errno::Invalid),
    (command::BLOCK_STATUS, 0, LARGE_BYTES, 512, Errno::Invalid),
    (command::BLOCK_STATUS, command::FLAG_DF, 0, 512, Errno::Invalid),
    (8, 0, 0, 512, Errno::Invalid),
    (u16::MAX, 0, 0, 512, Errno::Invalid),
];

#[test]
fn invalid_requests_are_refused_without_effect() {
    for latency_ns in LATENCIES_NS {
        let served = Served::new(latency_ns);
        let (mut simple, mut structured) = (served.client(), served.structured("large"));
        let mut extended = served.framed("large", Framing::Extended);
        for (number, &(command, flags, offset, length, errno)) in REFUSED.iter().enumerate() {
            let payload = if command == command::WRITE { vec![1; length as usize] } else { vec![] };
            let request = header(command, flags, number as u64, offset, length);
            assert_eq!(simple.simple(&request, &payload), Err(errno as u32), "{request:?}");
            let told = structured.chunks(&request, &payload);
            assert_eq!((told.len(), told[0].kind), (1, chunk::ERROR), "{request:?}");
            assert_eq!(told[0].data, [&(errno as u32).to_be_bytes()[..], &[0, 0]].concat(), "{request:?}");
            assert_eq!(extended.chunks(&request, &payload), told, "{request:?}");
        }
        // Extents and single chunks are to be had by agreement alone.
        for (command, flags) in [(command::BLOCK_STATUS, 0), (command::READ, command::FLAG_DF)] {
            assert_eq!(simple.simple(&header(command, flags, 1, 0, 512), &[]), Err(Errno::Invalid as u32));
        }
        assert!(served.device.contents.is_hole(0, LARGE_BYTES + SMALL_BYTES), "something was written");
        assert_eq!(simple.simple(&header(command::READ, 0, 1, 0, 512), &[]), Ok(vec![0; 512]), "it is in step");
    }
}

#[test]
fn nothing_is_answered_at_once() {
    for latency_ns in LATENCIES_NS {
        let served = Served::new(latency_ns);
        let (mut simple, mut structured) = (served.client(), served.structured("large"));
        for command in [command::READ, command::WRITE, command::TRIM, command::CACHE, command::WRITE_ZEROES] {
            for offset in [0, 512, LARGE_BYTES] {
                let request = header(command, 0, 3, offset, 0);
                assert_eq!(simple.simple(&request, &[]), Ok(vec![]), "{request:?}");
                let told = structured.chunks(&request, &[]);
                assert_eq!((told.len(), told[0].kind, told[0].data.len()), (1, chunk::NONE, 0), "{request:?}");
            }
        }
    }
}

#[test]
fn the_longest_payloads_go_both_ways() {
    let longest = wire::PAYLOAD_BYTES_MAX;
    let data = pattern(2, longest as usize);
    for latency_ns in LATENCIES_NS {
        let served = Served::new(latency_ns);
        let mut client = served.client();
        assert_eq!(client.simple(&header(command::WRITE, 0, 1, 512, longest), &data), Ok(vec![]));
        assert!(client.simple(&header(command::READ, 0, 2, 512, longest), &[]).as_ref() == Ok(&data));
        let mut client = served.structured("large");
        let told = client.chunks(&header(command::READ, 0, 3, 512, longest), &[]);
        let told: Vec<u8> = told.into_iter().flat_map(|chunk| chunk.data[8..].to_vec()).collect();
        assert!(told == data, "in chunks");
    }
}

#[test]
fn structured_reads_distinguish_data_and_holes() {
    let served = Served::new(0);
    let mut client = served.structured("large");
    let data = pattern(3, 4096);
    client.chunks(&header(command::WRITE, 0, 1, u64::from(MIB), 4096), &data);
    let read = client.chunks(&header(command::READ, 0, 2, u64::from(MIB), 4096), &[]);
    let offset = u64::from(MIB).to_be_bytes();
    assert_eq!((read.len(), read[0].kind), (1, chunk::OFFSET_DATA));
    assert_eq!(read[0].data, [&offset[..], &data].concat());
    let hole = client.chunks(&header(command::READ, 0, 3, 2 * u64::from(MIB), MIB), &[]);
    assert_eq!((hole.len(), hole[0].kind), (1, chunk::OFFSET_HOLE));
    assert_eq!(hole[0].data, [&(2 * u64::from(MIB)).to_be_bytes()[..], &MIB.to_be_bytes()].concat());
    // In one piece where the client wants no fragments.
    let whole = client.chunks(&header(command::READ, command::FLAG_DF, 4, 2 * u64::from(MIB), MIB), &[]);
    assert_eq!((whole.len(), whole[0].kind, whole[0].data.len()), (1, chunk::OFFSET_DATA, 8 + MIB as usize));
}

#[test]
fn sparse_reads_leave_their_zeros_out() {
    for latency_ns in LATENCIES_NS {
        let served = Served::new(latency_ns);
        let mut client = served.structured("large");
        let data = pattern(4, 4096);
        for page in [3u64, 4, 200] {
            client.chunks(&header(command::WRITE, 0, 1, page * 4096, 4096), &data);
        }
        let read = client.chunks(&header(command::READ, 0, 2, 0, MIB), &[]);
        let sent: usize = read.iter().map(|chunk| chunk.data.len()).sum();
        assert!(sent < 4 * 4096, "{sent} B are sent for three pages");
        let place = |chunk: &Chunk| u64::from_be_bytes(chunk.data[..8].try_into().expect("a place"));
        let told: Vec<_> = read.iter().map(|chunk| (chunk.kind, place(chunk) / 4096)).collect();
        let (hole, kept) = (chunk::OFFSET_HOLE, chunk::OFFSET_DATA);
        assert_eq!(told, [(hole, 0), (kept, 3), (hole, 5), (kept, 200), (hole, 201)]);
        // Simple replies have no way to say it.
        let mut simple = served.client();
        let whole = simple.simple(&header(command::READ, 0, 3, 0, MIB), &[]).expect("a read");
        assert!(whole[3 * 4096..4 * 4096] == data && whole[5 * 4096..200 * 4096].iter().all(|&byte| byte == 0));
    }
}

/// Extents as a reply tells them: length and state.
fn extents(client: &mut Client, flags: u16, offset: u64, length: u32) -> Vec<(u32, u32)> {
    let told = client.chunks(&header(command::BLOCK_STATUS, flags, 9, offset, length), &[]);
    assert_eq!((told.len(), told[0].kind), (1, chunk::BLOCK_STATUS));
    let words: Vec<u32> =
        told[0].data.chunks(4).map(|word| u32::from_be_bytes(word.try_into().expect("whole words"))).collect();
    assert_eq!(words[0], wire::BASE_ALLOCATION_ID);
    words[1..].chunks(2).map(|pair| (pair[0], pair[1])).collect()
}

#[test]
fn block_status_reports_written_extents() {
    let served = Served::new(LATENCIES_NS[1]);
    let mut client = served.structured("small");
    let all = SMALL_BYTES as u32;
    assert_eq!(extents(&mut client, 0, 0, all), [(all, 3)]);
    client.chunks(&header(command::WRITE, 0, 1, 65536, 8192), &[7; 8192]);
    assert_eq!(extents(&mut client, 0, 0, all), [(65536, 3), (8192, 0), (all - 73728, 3)]);
    assert_eq!(extents(&mut client, command::FLAG_REQ_ONE, 0, all), [(65536, 3)]);
    assert_eq!(extents(&mut client, 0, 69632, 4096), [(4096, 0)]);
    client.chunks(&header(command::TRIM, 0, 2, 65536, 4096), &[]);
    assert_eq!(extents(&mut client, 0, 65536, 8192), [(4096, 3), (4096, 0)]);
    client.chunks(&header(command::WRITE_ZEROES, command::FLAG_NO_HOLE, 3, 0, 4096), &[]);
    assert_eq!(extents(&mut client, 0, 0, 8192), [(4096, 0), (4096, 3)], "zeros that take their place");
}

#[test]
fn replies_are_sent_when_due_in_any_order() {
    // A drive that never answers while the test looks.
    let served = Served::new(3_600_000_000_000);
    let mut client = served.structured("large");
    client.send(&header(command::READ, 0, 1, 0, 4096), &[]).expect("it is sent");
    for cookie in 2..100 {
        let status = client.chunks(&header(command::BLOCK_STATUS, 0, cookie, 0, 4096), &[]);
        assert_eq!(status[0].kind, chunk::BLOCK_STATUS);
    }
}

#[test]
fn many_under_way_are_each_answered_once() {
    for latency_ns in LATENCIES_NS {
        let served = Served::new(latency_ns);
        let mut client = served.client();
        let mut expected = vec![Vec::new(); 500];
        for cookie in 0..500u64 {
            let data = pattern(cookie, 4096);
            client.send(&header(command::WRITE, 0, 1000 + cookie, cookie * 4096, 4096), &data).expect("it is sent");
            client.send(&header(command::READ, 0, cookie, cookie * 4096, 4096), &[]).expect("it is sent");
            expected[cookie as usize] = data;
        }
        let mut answered = vec![0; 1500];
        let (mut data, mut nothing) = (vec![0; 4096], []);
        for _ in 0..1000 {
            let (cookie, error) =
                client.receive(|cookie| if cookie < 500 { &mut data[..] } else { &mut nothing[..] }).expect("a reply");
            assert_eq!(error, 0);
            answered[cookie as usize] += 1;
            assert!(cookie >= 500 || data == expected[cookie as usize], "block {cookie}");
        }
        assert_eq!(answered.iter().sum::<i32>(), 1000);
        assert!(answered.iter().all(|times| *times <= 1));
    }
}
