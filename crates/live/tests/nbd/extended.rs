//! Extended headers: lengths of 64 bits, replies that say where they belong, and block status of chosen contexts.

use headstack_live::Contents;
use headstack_live::nbd::client::{Chunk, Client};
use headstack_live::nbd::wire::{self, Errno, Framing, Header, chunk, command, option, reply, transmission};
use headstack_live::nbd::{Limits, Security};

use super::served::{Asking, LATENCIES_NS, PATIENCE, SMALL_BYTES, Served, pattern};

const GIB: u64 = 1 << 30;
/// More than 32 bits can say.
const HUGE_BYTES: u64 = 6 << 40;

fn huge(latency_ns: u64) -> Served {
    let contents = Contents::in_memory(HUGE_BYTES + SMALL_BYTES).expect("memory");
    Served::sized(latency_ns, HUGE_BYTES, contents, Security::None, Limits::default())
}

fn asked(command: u16, flags: u16, offset_bytes: u64, length_bytes: u64) -> Header {
    Header { flags, command, cookie: offset_bytes ^ length_bytes, offset_bytes, length_bytes }
}

/// A request succeeds, and brings nothing.
fn does(client: &mut Client, header: &Header, payload: &[u8]) {
    let told = client.chunks(header, payload);
    assert_eq!((told.len(), told[0].kind, told[0].data.len()), (1, chunk::NONE, 0), "{header:?}");
}

/// Extents as a reply tells them: length and state.
fn extents(told: &[Chunk]) -> Vec<(u64, u64)> {
    assert_eq!((told.len(), told[0].kind), (1, chunk::BLOCK_STATUS_EXT));
    let data = &told[0].data;
    assert_eq!(data[..4], wire::BASE_ALLOCATION_ID.to_be_bytes());
    let count = u32::from_be_bytes(data[4..8].try_into().expect("four bytes")) as usize;
    assert_eq!(data.len(), 8 + 16 * count, "as many extents as are announced");
    let long = |bytes: &[u8]| u64::from_be_bytes(bytes.try_into().expect("eight bytes"));
    data[8..].chunks(16).map(|pair| (long(&pair[..8]), long(&pair[8..]))).collect()
}

#[test]
fn they_are_agreed_on_once_and_there_is_no_way_back() {
    let served = Served::new(0);
    let mut client = served.greeted();
    assert_eq!(client.option(option::EXTENDED_HEADERS, &[]).expect("a reply")[0].kind, reply::ACK);
    let back = client.option(option::STRUCTURED_REPLY, &[]).expect("a reply");
    assert_eq!(back[0].kind, reply::ERR_EXT_HEADER_REQD);
    // Who has agreed to them knows better ways in than the oldest.
    client.send_option(option::EXPORT_NAME, b"large").expect("it is sent");
    assert!(client.receive_bytes(1).is_err());
    let flags = |framing| served.framed("large", framing).flags;
    assert_eq!(flags(Framing::Extended), flags(Framing::Structured) | transmission::BLOCK_STATUS_PAYLOAD);
}

#[test]
fn a_range_of_any_length_is_trimmed_zeroed_and_described() {
    for latency_ns in LATENCIES_NS {
        let served = huge(latency_ns);
        let mut client = served.framed("large", Framing::Extended);
        let status = asked(command::BLOCK_STATUS, 0, 0, HUGE_BYTES);
        assert_eq!(extents(&client.chunks(&status, &[])), [(HUGE_BYTES, 3)]);
        let data = pattern(7, 4096);
        let places = [0, 3 * GIB, 7 * GIB - 4096, 7 * GIB];
        for (command, flags) in [(command::TRIM, 0), (command::WRITE_ZEROES, 0), (command::TRIM, command::FLAG_FUA)] {
            for place in places {
                does(&mut client, &asked(command::WRITE, command::FLAG_PAYLOAD_LEN, place, 4096), &data);
            }
            does(&mut client, &asked(command, flags, 4096, 7 * GIB - 4096), &[]);
            let kept = [(4096, 0), (7 * GIB - 4096, 3), (4096, 0), (HUGE_BYTES - 7 * GIB - 4096, 3)];
            assert_eq!(extents(&client.chunks(&status, &[])), kept, "command {command}");
            let read = client.chunks(&asked(command::READ, command::FLAG_DF, 7 * GIB - 4096, 8192), &[]);
            assert!(read[0].data[8..] == [vec![0; 4096], data.clone()].concat(), "command {command}");
        }
        does(&mut client, &asked(command::CACHE, 0, 512, HUGE_BYTES - 512), &[]);
        does(&mut client, &asked(command::TRIM, 0, 0, HUGE_BYTES), &[]);
        assert_eq!(extents(&client.chunks(&status, &[])), [(HUGE_BYTES, 3)]);
        let beyond = client.chunks(&asked(command::TRIM, 0, 512, HUGE_BYTES), &[]);
        assert_eq!((beyond[0].kind, &beyond[0].data[..4]), (chunk::ERROR, &(Errno::Invalid as u32).to_be_bytes()[..]));
    }
}

#[test]
fn sparse_and_reordered_replies_carry_their_offset() {
    let served = Served::new(LATENCIES_NS[1]);
    let client = served.framed("large", Framing::Extended);
    let stream = client.stream();
    let mut message = asked(command::WRITE, command::FLAG_PAYLOAD_LEN, 8192, 4096).to_bytes(Framing::Extended);
    message.extend_from_slice(&[5; 4096]);
    message.extend(asked(command::READ, 0, 4096, 65536).to_bytes(Framing::Extended));
    stream.write_all(&message).expect("it is sent");
    // Each chunk repeats the request's own offset, whatever part of it it brings.
    let mut read = vec![0; 32 + 3 * 32 + 12 + 8 + 4096 + 12];
    let mut filled = 0;
    while filled < read.len() {
        filled += stream.read_by(&mut read[filled..], Some(std::time::Instant::now() + PATIENCE)).expect("replies");
    }
    let offset_of = |at: usize| u64::from_be_bytes(read[at + 16..at + 24].try_into().expect("eight bytes"));
    let magic = |at: usize| u32::from_be_bytes(read[at..at + 4].try_into().expect("four bytes"));
    let places = [0, 32, 32 + 44, 32 + 44 + 40 + 4096];
    assert_eq!(places.map(magic), [wire::EXTENDED_REPLY_MAGIC; 4]);
    assert_eq!(places.map(offset_of), [8192, 4096, 4096, 4096]);
}

#[test]
fn a_block_status_payload_selects_contexts() {
    for latency_ns in LATENCIES_NS {
        let served = Served::new(latency_ns);
        let mut client = served.framed("large", Framing::Extended);
        let mut ask = |length: u64, ids: &[u32]| {
            let ids: Vec<u8> = ids.iter().flat_map(|id| id.to_be_bytes()).collect();
            let payload = [&length.to_be_bytes()[..], &ids].concat();
            let header = asked(command::BLOCK_STATUS, command::FLAG_PAYLOAD_LEN, 4096, payload.len() as u64);
            client.chunks(&header, &payload)
        };
        assert_eq!(extents(&ask(65536, &[wire::BASE_ALLOCATION_ID])), [(65536, 3)]);
        // None, one that was not agreed on, one twice, too many to be meant.
        let id = wire::BASE_ALLOCATION_ID;
        for ids in [&[][..], &[id + 1], &[id, id], &[id; 1000]] {
            let told = ask(65536, ids);
            let invalid = (Errno::Invalid as u32).to_be_bytes();
            assert_eq!((told[0].kind, &told[0].data[..4]), (chunk::ERROR, &invalid[..]), "{} ids", ids.len());
        }
        assert_eq!(extents(&ask(512, &[id])), [(512, 3)], "it is in step");
    }
}

#[test]
fn payloads_of_others_are_read_past_and_such_as_cannot_come_end_it() {
    let served = Served::new(0);
    let mut client = served.framed("large", Framing::Extended);
    for command in [command::READ, command::TRIM, command::FLUSH, command::CACHE, command::WRITE_ZEROES, 77] {
        let told = client.chunks(&asked(command, command::FLAG_PAYLOAD_LEN, 0, 512), &[1; 512]);
        assert_eq!((told.len(), told[0].kind), (1, chunk::ERROR), "command {command}");
    }
    // A write without the flag brings its payload all the same.
    does(&mut client, &asked(command::WRITE, 0, 0, 512), &[1; 512]);
    does(&mut client, &asked(command::FLUSH, 0, 0, 0), &[]);
    client.send(&asked(command::WRITE, command::FLAG_PAYLOAD_LEN, 0, 1 << 40), &[]).expect("it is sent");
    assert!(client.receive_bytes(1).is_err(), "nobody waits for a tebibyte");
    served.await_empty();
}
