//! Clients that break off, do not read, or send anything.

use std::time::{Duration, Instant};

use headstack_live::nbd::client::Client;
use headstack_live::nbd::wire::{self, Framing, command, option};
use proptest::prelude::*;

use super::served::{Asking, LARGE_BYTES, LATENCIES_NS, Served, contexts, header, pattern};

#[test]
fn a_truncated_request_has_no_effect() {
    for latency_ns in LATENCIES_NS {
        let served = Served::new(latency_ns);
        let write = header(command::WRITE, 0, 1, 0, 1 << 20).to_bytes(Framing::Simple);
        let whole = [&write[..], &pattern(1, 1 << 20)].concat();
        for sent in [1, 27, 28, 29, 28 + 4096, whole.len() - 1] {
            let client = served.client();
            client.stream().write_all(&whole[..sent]).expect("it is sent");
            drop(client);
            served.await_empty();
            assert!(served.device.contents.is_hole(0, LARGE_BYTES), "{sent} bytes were sent, and some written");
        }
        // The same, all of it.
        let client = served.client();
        client.stream().write_all(&whole).expect("it is sent");
        drop(client);
        served.await_empty();
        assert!(!served.device.contents.is_hole(0, 1 << 20));
    }
}

#[test]
fn a_client_goes_with_replies_under_way() {
    let served = Served::new(20_000_000);
    for kilobytes in [4, 1024] {
        let mut client = served.client();
        for cookie in 0..32 {
            client.send(&header(command::READ, 0, cookie, 0, kilobytes << 10), &[]).expect("it is sent");
        }
        drop(client);
    }
    served.await_empty();
    assert_eq!(served.client().simple(&header(command::READ, 0, 1, 0, 512), &[]), Ok(vec![0; 512]));
}

/// Requests of a client that waits for replies where it cannot send.
struct Unsent(Vec<u8>);

impl Unsent {
    /// Sends what there is room for.
    fn send_some(&mut self, client: &Client) {
        while !self.0.is_empty() {
            match client.stream().write_at_once(&self.0).expect("the server lives") {
                0 => return,
                sent => drop(self.0.drain(..sent)),
            }
        }
    }
}

#[test]
fn a_client_that_does_not_read_blocks_no_other_and_buffers_little() {
    for latency_ns in LATENCIES_NS {
        let served = Served::new(latency_ns);
        let mut greedy = served.client();
        let (replies, length) = (512u64, 1u32 << 20);
        let requests =
            (0..replies).flat_map(|cookie| header(command::READ, 0, cookie, 0, length).to_bytes(Framing::Simple));
        let mut requests = Unsent(requests.collect());
        // The server stops reading at some point, and then there is no room for the rest.
        requests.send_some(&greedy);
        assert!(requests.0.len() < replies as usize * Framing::Simple.request_bytes(), "none is taken");
        let mut other = served.client();
        let before = resident_bytes();
        for cookie in 0..200 {
            requests.send_some(&greedy);
            assert_eq!(other.simple(&header(command::READ, 0, cookie, 0, 512), &[]), Ok(vec![0; 512]));
        }
        // Half a gigabyte was asked for; other tests of this process take some, too.
        assert!(resident_bytes() < before + (256 << 20), "memory grows with what a client does not read");
        // It was only slow: all of it comes in the end, and nothing is lost.
        let mut data = vec![1; length as usize];
        let mut answered = vec![false; replies as usize];
        for _ in 0..replies {
            requests.send_some(&greedy);
            let (cookie, error) = greedy.receive(|_| &mut data).expect("a reply");
            assert_eq!(error, 0);
            assert!(!std::mem::replace(&mut answered[cookie as usize], true), "reply {cookie} comes twice");
        }
    }
}

#[test]
fn who_reads_no_acknowledgements_is_owed_a_bounded_number() {
    for latency_ns in LATENCIES_NS {
        let served = Served::new(latency_ns);
        let mut greedy = served.client();
        let request = header(command::TRIM, 0, 1, 0, 0).to_bytes(Framing::Simple);
        let many: Vec<u8> = std::iter::repeat_n(request, 4096).flatten().collect();
        rustix::net::sockopt::set_socket_timeout(
            greedy.stream().ends().0,
            rustix::net::sockopt::Timeout::Send,
            Some(Duration::from_millis(300)),
        )
        .expect("a socket has timeouts");
        let mut sent = 0;
        // The server stops reading at some point: the client cannot get rid of more.
        while greedy.stream().write_all(&many).is_ok() {
            sent += 4096;
            assert!(sent < 20_000_000, "{sent} requests are taken, and no reply of them read");
        }
        assert_eq!(served.client().simple(&header(command::READ, 0, 1, 0, 512), &[]), Ok(vec![0; 512]));
        assert_eq!(greedy.receive(|_| &mut []).expect("a reply"), (1, 0));
        drop(greedy);
        served.await_empty();
    }
}

fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/statm").expect("Linux");
    let pages: u64 = status.split(' ').nth(1).expect("its second field").parse().expect("a number");
    pages * 4096
}

/// What a client sends in a whole session: options, then requests.
fn session() -> Vec<u8> {
    let mut sent = 3u32.to_be_bytes().to_vec();
    let mut option = |number: u32, data: &[u8]| {
        sent.extend(wire::OPTION_MAGIC.to_be_bytes());
        sent.extend(number.to_be_bytes());
        sent.extend((data.len() as u32).to_be_bytes());
        sent.extend(data);
    };
    option(option::LIST, &[]);
    option(77, b"what");
    option(option::STRUCTURED_REPLY, &[]);
    option(option::LIST_META_CONTEXT, &contexts("small", &["base:"]));
    option(option::SET_META_CONTEXT, &contexts("large", &[wire::BASE_ALLOCATION]));
    option(option::INFO, &wire::named("small", &[0, 1, 0, 3]));
    option(option::GO, &wire::named("large", &[0, 0]));
    let requests = [
        (command::WRITE, 0, 4096, 1024),
        (command::READ, command::FLAG_DF, 4096, 1024),
        (command::READ, 0, 1 << 20, 1 << 17),
        (command::BLOCK_STATUS, command::FLAG_REQ_ONE, 0, 65536),
        (command::WRITE_ZEROES, command::FLAG_NO_HOLE, 0, 8192),
        (command::TRIM, command::FLAG_FUA, 0, 8192),
        (command::CACHE, 0, 0, 8192),
        (command::FLUSH, 0, 0, 0),
        (command::DISC, 0, 0, 0),
    ];
    for (cookie, (command, flags, offset, length)) in requests.into_iter().enumerate() {
        sent.extend(header(command, flags, cookie as u64, offset, length).to_bytes(Framing::Simple));
        if command == command::WRITE {
            sent.extend(pattern(9, length as usize));
        }
    }
    sent
}

/// Reads to the end of the server, who comes to it by himself or by the end of what he is sent.
fn heard(served: &Served, sent: &[u8]) -> Vec<u8> {
    let stream = served.stream();
    // A server that has hung up is told nothing more.
    let _ = stream.write_all(sent);
    stream.shut_writing();
    let (mut heard, mut part) = (Vec::new(), vec![0; 1 << 16]);
    loop {
        match stream.read(&mut part) {
            Ok(0) => return heard,
            Ok(length) => heard.extend(&part[..length]),
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => return heard,
            Err(error) => panic!("the server hangs: {error}"),
        }
    }
}

#[test]
fn a_whole_session_is_answered_at_once() {
    let served = Served::new(0);
    let whole = heard(&served, &session());
    let read = pattern(9, 1024);
    assert!(whole.windows(1024).any(|part| part == read), "what was written is read");
    assert_eq!(whole[whole.len() - 20..][..4], wire::STRUCTURED_REPLY_MAGIC.to_be_bytes(), "the flush is answered");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    /// Bytes of a session are replaced, dropped and doubled: the server answers or hangs up, and serves the next.
    #[test]
    fn anything_may_be_sent(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0u8..4), 1..8),
        slow in any::<bool>(),
    ) {
        static SERVED: std::sync::LazyLock<[Served; 2]> = std::sync::LazyLock::new(|| LATENCIES_NS.map(Served::new));
        let mut sent = session();
        for (index, byte, how) in changes {
            let at = index.index(sent.len());
            match how {
                0 => sent[at] = byte,
                1 => sent[at] ^= 1 << (byte % 8),
                2 => sent.truncate(at.max(1)),
                _ => sent.insert(at, byte),
            }
        }
        let served = &SERVED[usize::from(slow)];
        heard(served, &sent);
        served.await_empty();
        prop_assert_eq!(served.client().simple(&header(command::READ, 0, 1, 1 << 27, 512), &[]), Ok(vec![0; 512]));
        let begun = Instant::now();
        served.await_empty();
        prop_assert!(begun.elapsed() < super::served::PATIENCE);
    }
}
