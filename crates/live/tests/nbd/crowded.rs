//! Clients that say nothing, or little: they cost little, go in time, and nobody waits for them.

use std::io::ErrorKind;
use std::time::Duration;

use headstack_live::Contents;
use headstack_live::nbd::client::Client;
use headstack_live::nbd::wire::{self, Framing, command, option};
use headstack_live::nbd::{Limits, Security};
use headstack_live::stream::Stream;

use super::served::{Asking, LARGE_BYTES, LATENCIES_NS, SMALL_BYTES, Served, header};

/// So long that nothing in a test can come of it.
const NEVER: Duration = Duration::from_secs(1_000_000);

fn served(limits: Limits) -> Served {
    let contents = Contents::in_memory(LARGE_BYTES + SMALL_BYTES).expect("memory");
    Served::limited(LATENCIES_NS[1], contents, Security::None, limits)
}

fn has_ended(stream: &Stream) -> bool {
    let mut part = [0; 64];
    loop {
        match stream.read(&mut part) {
            Ok(0) => return true,
            Ok(_) => {}
            Err(error) => return error.kind() == ErrorKind::ConnectionReset,
        }
    }
}

fn assert_served(client: &mut Client) {
    assert_eq!(client.simple(&header(command::READ, 0, 1, 0, 512), &[]), Ok(vec![0; 512]));
}

#[test]
fn an_endless_handshake_is_disconnected() {
    let served = served(Limits { handshake: Duration::from_millis(300), ..Limits::default() });
    let mut settled = served.client();
    let silent: Vec<Stream> = (0..20).map(|_| served.stream()).collect();
    // One after the other says something, and all of them too little.
    let half = served.greeted();
    half.stream().write_all(&wire::OPTION_MAGIC.to_be_bytes()[..5]).expect("it is sent");
    let long = served.greeted();
    let head = [&wire::OPTION_MAGIC.to_be_bytes()[..], &option::LIST.to_be_bytes(), &u32::MAX.to_be_bytes()].concat();
    long.stream().write_all(&head).expect("it is sent");
    // Who talks for ever comes to no end either.
    let mut chatty = served.greeted();
    while chatty.option(option::LIST, &[]).is_ok() {}
    for stream in silent.iter().chain([half.stream(), long.stream()]) {
        assert!(has_ended(stream));
    }
    // Who has chosen may be silent for as long as he likes.
    assert_served(&mut settled);
    assert_eq!(served.server().connections(), 1);
}

#[test]
fn the_oldest_silent_client_makes_room_for_the_next() {
    let served = served(Limits { handshake: NEVER, handshakes_max: 8, ..Limits::default() });
    let mut settled: Vec<Client> = (0..3).map(|_| served.client()).collect();
    let silent: Vec<Stream> = (0..20).map(|_| served.stream()).collect();
    // They are let in one by one: whoever is served has come after all of them.
    assert_served(&mut served.client());
    for (number, stream) in silent.iter().enumerate() {
        let stays = number >= silent.len() - 7;
        if !stays {
            assert!(has_ended(stream), "client {number} is still there");
        }
    }
    // The youngest of them may still choose.
    let last = silent.into_iter().next_back().expect("twenty");
    let mut last = Client::connect(last, "large").expect("it was not too late");
    assert_served(&mut last);
    settled.iter_mut().for_each(assert_served);
}

#[test]
fn too_many_clients_are_hung_up_on_and_those_before_them_served() {
    let served = served(Limits { connections_max: 3, ..Limits::default() });
    let mut settled: Vec<Client> = (0..3).map(|_| served.client()).collect();
    // It may hear that it was let in, but not more.
    if let Ok(mut fourth) = Client::connect(served.stream(), "large") {
        let asked = fourth.send(&header(command::READ, 0, 1, 0, 512), &[]);
        assert!(asked.is_err() || has_ended(fourth.stream()));
    }
    settled.iter_mut().for_each(assert_served);
    drop(settled.pop());
    while served.server().connections() > 2 {
        std::thread::yield_now();
    }
    // Until the fourth is let go, whoever comes may be hung up on in its place.
    let read = header(command::READ, 0, 1, 0, 512);
    while !Client::connect(served.stream(), "large").is_ok_and(|mut client| client.simple(&read, &[]).is_ok()) {
        std::thread::yield_now();
    }
}

#[test]
fn a_server_stops_with_idle_clients() {
    let mut served = served(Limits { handshake: NEVER, ..Limits::default() });
    let silent: Vec<Stream> = (0..50).map(|_| served.stream()).collect();
    let settled: Vec<Client> = (0..50).map(|_| served.client()).collect();
    for client in &settled {
        // The header of a payload that never comes.
        let write = header(command::WRITE, 0, 1, 0, 32 << 20).to_bytes(Framing::Simple);
        client.stream().write_all(&write).expect("it is sent");
    }
    served.stop();
    for stream in silent.iter().chain(settled.iter().map(Client::stream)) {
        assert!(has_ended(stream));
    }
}

#[test]
fn sockets_are_owner_only_with_any_umask() {
    use std::os::unix::fs::PermissionsExt;
    // The umask is the process's: other tests of it make nothing that depends on it.
    let before = rustix::process::umask(rustix::fs::Mode::empty());
    let served = served(Limits::default());
    rustix::process::umask(before);
    let mode = std::fs::metadata(&served.socket).expect("a socket").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_served(&mut served.client());
}
