//! The NBD server: the first byte chooses how far the handshake has come, the others are what the client sends then. The
//! server answers or hangs up; what it says in chunks are whole chunks, at most one last chunk a request.

#![no_main]

use std::fs::File;
use std::io::{Seek, Write};
use std::os::unix::fs::FileExt;
use std::sync::{Arc, LazyLock};

use headstack_live::nbd::wire::{self, Framing, option};
use headstack_live::nbd::{Security, Stream, serve};
use headstack_live::{Constant, Contents, Device, Export, Model, Session, SessionOptions};
use headstack_workload::Span;
use libfuzzer_sys::fuzz_target;
use rustix::fs::{MemfdFlags, memfd_create};

const CAPACITY_BYTES: u64 = 1 << 20;

static DEVICE: LazyLock<Device> = LazyLock::new(|| {
    let model = Model::Constant(Constant { latency_ns: 0, capacity_bytes: CAPACITY_BYTES });
    let session = Session::start(&model, SessionOptions::default(), None).expect("a session");
    let export = |name: &str, start_bytes, length_bytes| Export {
        name: name.to_owned(),
        description: format!("{name} of two"),
        span: Span { start_bytes, length_bytes },
        block_bytes: 512,
        is_rotational: false,
    };
    Device {
        exports: vec![export("a", 0, CAPACITY_BYTES / 2), export("b", CAPACITY_BYTES / 2, CAPACITY_BYTES / 2)],
        contents: Contents::in_memory(CAPACITY_BYTES).expect("memory"),
        submitter: session.submitter(),
    }
});

fuzz_target!(|bytes: &[u8]| {
    let Some((choice, sent)) = bytes.split_first() else { return };
    let framing = [Framing::Simple, Framing::Simple, Framing::Structured, Framing::Extended][usize::from(choice % 4)];
    let prefix = match choice % 4 {
        0 => Vec::new(),
        1 => [hello(), an_option(option::GO, &wire::named("a", &[0, 0]))].concat(),
        2 => framed(option::STRUCTURED_REPLY),
        _ => framed(option::EXTENDED_HEADERS),
    };
    DEVICE.contents.zero(0, CAPACITY_BYTES).expect("memory");
    let heard = session(&[&prefix, sent].concat());
    if framing.has_chunks() {
        // What the prefix alone is answered with.
        let handshake = session(&prefix);
        assert_eq!(heard[..handshake.len()], handshake);
        let replies = assert_whole_chunks(&heard[handshake.len()..], framing);
        assert!(replies <= sent.len() / framing.request_bytes(), "{replies} replies to {} bytes", sent.len());
    }
});

fn hello() -> Vec<u8> {
    3u32.to_be_bytes().to_vec()
}

fn an_option(number: u32, data: &[u8]) -> Vec<u8> {
    [&wire::OPTION_MAGIC.to_be_bytes()[..], &number.to_be_bytes(), &(data.len() as u32).to_be_bytes(), data].concat()
}

/// A handshake for replies in chunks, as this option has them, and extents.
fn framed(option: u32) -> Vec<u8> {
    let query = [&1u32.to_be_bytes()[..], &wire::named(wire::BASE_ALLOCATION, &[])].concat();
    [
        hello(),
        an_option(option, &[]),
        an_option(option::SET_META_CONTEXT, &wire::named("b", &query)),
        an_option(option::GO, &wire::named("b", &[0, 0])),
    ]
    .concat()
}

/// What the server says to a client that sends all this and then ends. Pipes are files in memory here.
fn session(sent: &[u8]) -> Vec<u8> {
    let memory = || File::from(memfd_create("nbd", MemfdFlags::CLOEXEC).expect("memory"));
    let (mut input, output) = (memory(), Arc::new(memory()));
    input.write_all(sent).expect("memory");
    input.rewind().expect("memory");
    // How a session ends is the client's affair.
    let _ = serve(&DEVICE, &Stream::Pipes(Arc::new(input), Arc::clone(&output)), &Security::None);
    let mut heard = vec![0; output.metadata().expect("memory").len() as usize];
    output.read_exact_at(&mut heard, 0).expect("memory");
    heard
}

/// Counts replies.
fn assert_whole_chunks(mut heard: &[u8], framing: Framing) -> usize {
    let (head, mut replies) = (framing.chunk_bytes(), 0);
    let magic = if framing == Framing::Extended { wire::EXTENDED_REPLY_MAGIC } else { wire::STRUCTURED_REPLY_MAGIC };
    while !heard.is_empty() {
        assert!(heard.len() >= head, "a chunk has a head");
        assert_eq!(heard[..4], magic.to_be_bytes());
        replies += usize::from(heard[5] & 1);
        // The length ends the head; its upper half, where it has one, is zero.
        let length = u32::from_be_bytes(heard[head - 4..head].try_into().expect("four bytes")) as usize;
        assert!(heard.len() >= head + length, "a chunk is whole");
        heard = &heard[head + length..];
    }
    replies
}
