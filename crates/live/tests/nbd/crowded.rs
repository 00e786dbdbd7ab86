//! Clients that send nothing, or little: they cost little, are disconnected in time, and do not delay other clients.

use std::io::ErrorKind;
use std::time::Duration;

use headstack_live::Contents;
use headstack_live::nbd::client::Client;
use headstack_live::nbd::wire::{self, Framing, command, option};
use headstack_live::nbd::{Limits, Security};
use headstack_live::stream::Stream;

use super::served::{Asking, LARGE_BYTES, LATENCIES_NS, SMALL_BYTES, Served, header};

/// A duration that no test reaches.
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
    // Clients that send part of a handshake, each a different part.
    let half = served.greeted();
    half.stream().write_all(&wire::OPTION_MAGIC.to_be_bytes()[..5]).expect("sending succeeds");
    let long = served.greeted();
    let head = [&wire::OPTION_MAGIC.to_be_bytes()[..], &option::LIST.to_be_bytes(), &u32::MAX.to_be_bytes()].concat();
    long.stream().write_all(&head).expect("sending succeeds");
    // A client that sends options forever is disconnected as well.
    let mut chatty = served.greeted();
    while chatty.option(option::LIST, &[]).is_ok() {}
    for stream in silent.iter().chain([half.stream(), long.stream()]) {
        assert!(has_ended(stream));
    }
    // A client that has chosen an export may be idle indefinitely.
    assert_served(&mut settled);
    assert_eq!(served.server().connections(), 1);
}

#[test]
fn the_oldest_silent_client_makes_room_for_the_next() {
    let served = served(Limits { handshake: NEVER, handshakes_max: 8, ..Limits::default() });
    let mut settled: Vec<Client> = (0..3).map(|_| served.client()).collect();
    let silent: Vec<Stream> = (0..20).map(|_| served.stream()).collect();
    // Connections are accepted in order, so a client that is served was accepted after all of them.
    assert_served(&mut served.client());
    for (number, stream) in silent.iter().enumerate() {
        let stays = number >= silent.len() - 7;
        if !stays {
            assert!(has_ended(stream), "client {number} was not disconnected");
        }
    }
    // The most recent client may still choose an export.
    let last = silent.into_iter().next_back().expect("there are twenty clients");
    let mut last = Client::connect(last, "large").expect("the handshake may still complete");
    assert_served(&mut last);
    settled.iter_mut().for_each(assert_served);
}

#[test]
fn too_many_clients_are_hung_up_on_and_those_before_them_served() {
    let served = served(Limits { connections_max: 3, ..Limits::default() });
    let mut settled: Vec<Client> = (0..3).map(|_| served.client()).collect();
    // The server may accept the handshake, but nothing more.
    if let Ok(mut fourth) = Client::connect(served.stream(), "large") {
        let asked = fourth.send(&header(command::READ, 0, 1, 0, 512), &[]);
        assert!(asked.is_err() || has_ended(fourth.stream()));
    }
    settled.iter_mut().for_each(assert_served);
    drop(settled.pop());
    while served.server().connections() > 2 {
        std::thread::yield_now();
    }
    // Until the fourth client is disconnected, new clients may be displaced in its place.
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
        // The header of a write whose payload never arrives.
        let write = header(command::WRITE, 0, 1, 0, 32 << 20).to_bytes(Framing::Simple);
        client.stream().write_all(&write).expect("sending succeeds");
    }
    served.stop();
    for stream in silent.iter().chain(settled.iter().map(Client::stream)) {
        assert!(has_ended(stream));
    }
}

#[test]
fn sockets_are_owner_only_with_any_umask() {
    use std::os::unix::fs::PermissionsExt;
    // The umask is global to the process; other tests of this process create nothing that depends on it.
    let before = rustix::process::umask(rustix::fs::Mode::empty());
    let served = served(Limits::default());
    rustix::process::umask(before);
    let mode = std::fs::metadata(&served.socket).expect("the socket exists").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_served(&mut served.client());
}
