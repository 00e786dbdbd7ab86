//! A device in memory on which every request takes the same time, over NBD until standard input ends:
//! `constant SOCKET CAPACITY_BYTES LATENCY_NS`. What peers and clients are held against.

use std::io::Read;
use std::path::PathBuf;
use std::sync::Arc;

use headstack_live::nbd::{Endpoint, Security, Server};
use headstack_live::{Constant, Contents, Device, Export, Model, Session, SessionOptions};
use headstack_workload::Span;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [socket, capacity_bytes, latency_ns] = &arguments[..] else {
        return Err("constant SOCKET CAPACITY_BYTES LATENCY_NS is wanted".into());
    };
    let (capacity_bytes, latency_ns) = (capacity_bytes.parse()?, latency_ns.parse()?);
    let model = Model::Constant(Constant { latency_ns, capacity_bytes });
    let session = Session::start(&model, SessionOptions::default(), None)?;
    let export = Export {
        name: "constant".to_owned(),
        description: "every request takes the same time".to_owned(),
        span: Span { start_bytes: 0, length_bytes: capacity_bytes },
        block_bytes: 512,
        is_rotational: false,
    };
    let contents = Contents::in_memory(capacity_bytes)?;
    let device = Arc::new(Device { exports: vec![export], contents, submitter: session.submitter() });
    let server = Server::start(&device, &[Endpoint::Unix(PathBuf::from(socket))], Security::None)?;
    println!("ready");
    std::io::stdin().read_to_end(&mut Vec::new())?;
    server.stop();
    session.stop();
    Ok(())
}
