//! Negotiation of options, one by one, and the ways to choose an export.

use headstack_live::nbd::client::Client;
use headstack_live::nbd::wire::{self, command, info, option, reply, transmission};

use super::served::{Asking, LARGE_BYTES, SMALL_BYTES, Served, contexts, header};

/// Returns the data of INFO and GO: an export, and the requested items.
fn items(export: &str, wanted: &[u16]) -> Vec<u8> {
    let mut rest = (wanted.len() as u16).to_be_bytes().to_vec();
    wanted.iter().for_each(|item| rest.extend(item.to_be_bytes()));
    wire::named(export, &rest)
}

#[test]
fn what_cannot_be_is_refused_and_the_next_option_heard() {
    let long = vec![0; wire::OPTION_BYTES_MAX as usize + 1];
    let name = "n".repeat(wire::NAME_BYTES_MAX + 1);
    let [info, set] = [option::INFO, option::SET_META_CONTEXT];
    let rows: &[(u32, Vec<u8>, u32)] = &[
        (4, vec![], reply::ERR_UNSUP),
        (12, vec![], reply::ERR_UNSUP),
        (u32::MAX, vec![1, 2, 3], reply::ERR_UNSUP),
        (option::LIST, vec![0], reply::ERR_INVALID),
        (option::LIST, long.clone(), reply::ERR_TOO_BIG),
        (99, long, reply::ERR_TOO_BIG),
        (option::STARTTLS, vec![], reply::ERR_UNSUP),
        (option::STRUCTURED_REPLY, vec![0], reply::ERR_INVALID),
        (option::EXTENDED_HEADERS, vec![0], reply::ERR_INVALID),
        (info, vec![], reply::ERR_INVALID),
        (info, wire::named("large", &[]), reply::ERR_INVALID),
        (info, wire::named("large", &[0, 1]), reply::ERR_INVALID),
        (info, wire::named("large", &[0, 0, 0]), reply::ERR_INVALID),
        (info, vec![255; 6], reply::ERR_INVALID),
        (info, vec![0, 0, 0, 1, 0xff, 0, 0], reply::ERR_INVALID),
        (info, items(&name, &[]), reply::ERR_INVALID),
        (info, items("none", &[]), reply::ERR_UNKNOWN),
        (option::GO, items("none", &[]), reply::ERR_UNKNOWN),
        // Structured replies must be negotiated first.
        (set, contexts("large", &[wire::BASE_ALLOCATION]), reply::ERR_INVALID),
        (set, vec![], reply::ERR_INVALID),
    ];
    let served = Served::new(0);
    let mut client = served.greeted();
    for (option, data, error) in rows {
        let told = client.option(*option, data).expect("the server replies");
        assert_eq!(told.len(), 1);
        assert_eq!(told[0].kind, *error, "option {option} with {} bytes", data.len());
        assert!(std::str::from_utf8(&told[0].data).is_ok_and(|why| !why.is_empty()), "option {option}: why");
    }
    client.go("large").expect("the handshake still works");
}

#[test]
fn exports_are_listed_and_described() {
    let served = Served::new(0);
    let mut client = served.greeted();
    let listed = client.option(option::LIST, &[]).expect("replies");
    let texts: Vec<_> = listed.iter().map(|told| (told.kind, told.data.clone())).collect();
    let server = |name: &str| (reply::SERVER, wire::named(name, format!("the {name} one").as_bytes()));
    assert_eq!(texts, [server("large"), server("small"), (reply::ACK, vec![])]);

    let told = client.option(option::INFO, &items("small", &[info::NAME, info::DESCRIPTION, info::BLOCK_SIZE, 77]));
    let mut facts: Vec<_> = told.expect("replies").into_iter().map(|told| (told.kind, told.data)).collect();
    assert_eq!(facts.pop(), Some((reply::ACK, vec![])));
    let item = |item: u16, data: &[u8]| (reply::INFO, [&item.to_be_bytes(), data].concat());
    let sizes: Vec<u8> = [4096u32, 4096, 32 << 20].iter().flat_map(|bytes| bytes.to_be_bytes()).collect();
    let (mut export, name) = (SMALL_BYTES.to_be_bytes().to_vec(), item(info::NAME, b"small"));
    use transmission::*;
    let flags = HAS_FLAGS | SEND_FLUSH | SEND_FUA | ROTATIONAL | SEND_TRIM | SEND_WRITE_ZEROES;
    let flags = flags | CAN_MULTI_CONN | SEND_CACHE | SEND_FAST_ZERO;
    export.extend(flags.to_be_bytes());
    let description = item(info::DESCRIPTION, b"the small one");
    assert_eq!(facts, [item(info::EXPORT, &export), item(info::BLOCK_SIZE, &sizes), name, description]);

    // INFO does not select an export; the empty name is the first export.
    client.go("").expect("the server has a default export");
    assert_eq!(client.capacity_bytes, LARGE_BYTES);
    assert_eq!(client.flags & (ROTATIONAL | SEND_DF), 0);
    assert_eq!(served.structured("small").flags, flags | SEND_DF);
}

#[test]
fn the_oldest_way_in_works_with_zeros_and_without() {
    let served = Served::new(0);
    for (flags, zeros) in [(1, 124), (3, 0)] {
        let mut client = Client::greet(served.stream(), flags).expect("the server sends a greeting");
        client.send_option(option::EXPORT_NAME, b"small").expect("sending succeeds");
        let facts = client.receive_bytes(10 + zeros).expect("facts");
        assert_eq!(facts[..8], SMALL_BYTES.to_be_bytes());
        assert!(facts[10..].iter().all(|byte| *byte == 0));
        let read = client.simple(&header(command::READ, 0, 7, 0, 4096), &[]);
        assert_eq!(read, Ok(vec![0; 4096]), "requests follow immediately");
    }
}

#[test]
fn a_client_that_cannot_be_answered_is_disconnected() {
    let served = Served::new(0);
    let ended = |mut client: Client| assert!(client.receive_bytes(1).is_err_and(|error| is_end(&error)));
    for name in [&b"none"[..], &[0xff], &vec![b'x'; 70_000]] {
        let mut client = served.greeted();
        client.send_option(option::EXPORT_NAME, name).expect("sending succeeds");
        ended(client);
    }
    ended(Client::greet(served.stream(), 4).expect("the server sends a greeting"));
    let client = served.greeted();
    client.stream().write_all(&[0; 16]).expect("sending succeeds");
    ended(client);
    let client = served.client();
    client.stream().write_all(&[0; wire::REQUEST_BYTES_MAX]).expect("sending succeeds");
    ended(client);
    let mut client = served.greeted();
    let told = client.option(option::ABORT, &[]).expect("the server replies");
    assert_eq!((told.len(), told[0].kind), (1, reply::ACK));
    ended(client);
    client = served.client();
    client.send(&header(command::DISC, 0, 0, 0, 0), &[]).expect("sending succeeds");
    ended(client);
    served.await_empty();
}

/// Whether the peer has closed the connection, with or without unread data.
fn is_end(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::UnexpectedEof | std::io::ErrorKind::ConnectionReset)
}

#[test]
fn contexts_are_those_of_one_export_and_the_last_word_counts() {
    let served = Served::new(0);
    let may_ask = |sets: &[(&str, &[&str])], export: &str| {
        let mut client = served.greeted();
        client.option(option::STRUCTURED_REPLY, &[]).expect("the server replies");
        for (of, queries) in sets {
            client.option(option::SET_META_CONTEXT, &contexts(of, queries)).expect("replies");
        }
        client.go(export).expect("the server has the export");
        let told = client.chunks(&header(command::BLOCK_STATUS, 0, 1, 0, 4096), &[]);
        told[0].kind == wire::chunk::BLOCK_STATUS
    };
    let base: &[&str] = &["qemu:dirty-bitmap:x", wire::BASE_ALLOCATION];
    assert!(may_ask(&[("large", base)], "large"));
    assert!(may_ask(&[("", base)], "large"), "the empty name is the first export");
    assert!(!may_ask(&[("large", base)], "small"), "a context of another export");
    assert!(!may_ask(&[], "large"));
    assert!(!may_ask(&[("large", &["base:"])], "large"), "a name space is not a context");
    assert!(!may_ask(&[("large", base), ("large", &[])], "large"), "the last selection is empty");
    assert!(!may_ask(&[("large", base), ("none", base)], "large"), "a failed selection clears the previous one");
}

#[test]
fn contexts_are_listed() {
    let served = Served::new(0);
    let mut client = served.greeted();
    client.option(option::STRUCTURED_REPLY, &[]).expect("the server replies");
    let rows: &[(&[&str], bool)] =
        &[(&[], true), (&["base:"], true), (&["base:allocation"], true), (&["base:other"], false), (&["x-y:z"], false)];
    for (queries, told) in rows {
        let listed = client.option(option::LIST_META_CONTEXT, &contexts("small", queries)).expect("replies");
        assert_eq!(listed.len(), if *told { 2 } else { 1 }, "{queries:?}");
        if *told {
            assert_eq!(listed[0].kind, reply::META_CONTEXT);
            assert_eq!(listed[0].data[4..], *b"base:allocation");
        }
    }
    let none = client.option(option::LIST_META_CONTEXT, &contexts("none", &[])).expect("replies");
    assert_eq!(none[0].kind, reply::ERR_UNKNOWN);
}
