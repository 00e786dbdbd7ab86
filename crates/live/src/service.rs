//! A whole export: a model, its contents, the clock, and everything that clients and people come by.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use headstack_sim::SystemDescription;
use headstack_sim::device::DeviceDescription;
use headstack_workload::Span;
use serde::Deserialize;

use crate::LiveError;
use crate::contents::Contents;
use crate::control::Control;
use crate::device::{Device, Export};
use crate::faults::Schedule;
use crate::fidelity::Fidelity;
use crate::floor;
use crate::nbd::{Endpoint, Security, Server, Tls};
use crate::pacer::{Commander, Session, SessionOptions};
use crate::timeline::{Listener, Model};

/// Blocks of a device without mechanics.
const CONSTANT_BLOCK_BYTES: u32 = 512;

/// Where the bytes are kept.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Keeping {
    /// In memory, while the server runs.
    Memory,
    /// In a sparse file that survives it.
    File(PathBuf),
    /// Nowhere, but for these ranges (first byte, length).
    Discard(Vec<(u64, u64)>),
}

/// What is asked of an export.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServiceOptions {
    /// Unix sockets for NBD.
    pub unix: Vec<PathBuf>,
    /// Ports for NBD.
    pub tcp: Vec<SocketAddr>,
    /// NBD on standard input and output.
    pub stdio: bool,
    /// NBD on sockets of a service manager.
    pub activated: bool,
    /// Encrypts connections.
    pub tls: Option<TlsOptions>,
    /// Only this part of the system is exported: first byte and length.
    pub part: Option<(u64, u64)>,
    /// Where the bytes are.
    pub keeping: Keeping,
    /// Nanoseconds of the model in one of the wall.
    pub speed: f64,
    /// Seed of the system's own random processes.
    pub seed: u64,
    /// Asks for SCHED_FIFO.
    pub realtime: bool,
    /// A file that says what goes wrong, and when.
    #[serde(default)]
    pub faults: Option<PathBuf>,
    /// What a path costs; measured where it is not said.
    pub floor_ns: Option<u64>,
    /// A socket for orders.
    pub control: Option<PathBuf>,
    /// A port that answers HTTP with Prometheus' text.
    pub metrics: Option<SocketAddr>,
}

impl ServiceOptions {
    /// In real time, nowhere to be found yet.
    pub fn new(keeping: Keeping) -> ServiceOptions {
        ServiceOptions {
            unix: Vec::new(),
            tcp: Vec::new(),
            stdio: false,
            activated: false,
            tls: None,
            part: None,
            keeping,
            speed: 1.0,
            seed: 0,
            realtime: true,
            faults: None,
            floor_ns: None,
            control: None,
            metrics: None,
        }
    }
}

/// How connections are encrypted. Files are in PEM form.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TlsOptions {
    /// The server's certificate, with its chain.
    pub certificate: PathBuf,
    /// Its key.
    pub key: PathBuf,
    /// Clients have to show a certificate of one of these authorities.
    pub client_ca: Option<PathBuf>,
    /// Nobody is served in the clear.
    pub required: bool,
}

/// A running export.
#[derive(Debug)]
pub struct Service {
    session: Session,
    device: Arc<Device>,
    server: Server,
    control: Control,
}

impl Service {
    /// Starts it: its floor is measured, then the clock starts, then clients are let in. `listener` hears of each request.
    ///
    /// # Errors
    /// What is impossible in the model or the options; what the machine refuses.
    pub fn start(
        name: &str,
        model: &Model,
        options: &ServiceOptions,
        listener: Option<Listener>,
    ) -> Result<Service, LiveError> {
        let mut exports = exports_of(name, model);
        let capacity_bytes = exports.iter().map(|e| e.span.start_bytes + e.span.length_bytes).max().unwrap_or(0);
        if let Some((start_bytes, length_bytes)) = options.part {
            exports.truncate(1);
            exports[0].span = Span { start_bytes, length_bytes };
        }
        let contents = match &options.keeping {
            Keeping::Memory => Contents::in_memory(capacity_bytes)?,
            Keeping::File(path) => Contents::in_file(path, capacity_bytes)?,
            Keeping::Discard(kept) => {
                let kept = kept.iter().map(|&(start_bytes, length_bytes)| Span { start_bytes, length_bytes });
                Contents::discarded(capacity_bytes, kept.collect())?
            }
        };
        let endpoints = endpoints_of(options);
        let security = security_of(options)?;
        let floor_ns = match options.floor_ns {
            Some(floor_ns) => floor_ns,
            None if endpoints.is_empty() => 0,
            None => floor::measure_nbd(options.realtime)?,
        };
        let schedule = options.faults.as_ref().map_or(Ok(Schedule::default()), |path| Schedule::load(path, model))?;
        let pace = SessionOptions { speed: options.speed, seed: options.seed, realtime: options.realtime, schedule };
        let session = Session::start(model, pace, listener)?;
        let submitter = session.submitter().with_floor_ns(floor_ns);
        let device = Arc::new(Device { exports, contents, submitter });
        let server = Server::start(&device, &endpoints, security)?;
        let control = Control::start(&session.commander(), options.control.as_deref(), options.metrics)?;
        Ok(Service { session, device, server, control })
    }

    /// Who gives orders.
    pub fn commander(&self) -> Commander {
        self.session.commander()
    }

    /// What it exports.
    pub fn exports(&self) -> &[Export] {
        &self.device.exports
    }

    /// Ports as the system gave them.
    pub fn addresses(&self) -> &[SocketAddr] {
        self.server.addresses()
    }

    /// Nobody can come any more, or somebody asked for the end.
    pub fn is_over(&self) -> bool {
        self.control.stop_was_asked() || self.server.is_over()
    }

    /// Ends it: clients first, then the clock. Bytes in a file are on its disk afterwards.
    ///
    /// # Errors
    /// A file whose disk is full or gone.
    pub fn stop(self) -> Result<Fidelity, LiveError> {
        self.control.stop();
        self.server.stop();
        let fidelity = self.session.stop();
        self.device.contents.sync().map_err(LiveError::io("the contents"))?;
        Ok(fidelity)
    }
}

fn endpoints_of(options: &ServiceOptions) -> Vec<Endpoint> {
    let mut endpoints: Vec<Endpoint> = options.unix.iter().cloned().map(Endpoint::Unix).collect();
    endpoints.extend(options.tcp.iter().copied().map(Endpoint::Tcp));
    endpoints.extend(options.stdio.then_some(Endpoint::Stdio));
    endpoints.extend(options.activated.then_some(Endpoint::Activated));
    endpoints
}

fn security_of(options: &ServiceOptions) -> Result<Security, LiveError> {
    let Some(asked) = &options.tls else { return Ok(Security::None) };
    let tls = Tls::from_files(&asked.certificate, &asked.key, asked.client_ca.as_deref())?;
    Ok(if asked.required { Security::Required(tls) } else { Security::Offered(tls) })
}

/// One export a LUN.
fn exports_of(name: &str, model: &Model) -> Vec<Export> {
    match model {
        Model::Constant(constant) => vec![Export {
            name: "disk".to_owned(),
            description: name.to_owned(),
            span: Span { start_bytes: 0, length_bytes: constant.capacity_bytes },
            block_bytes: CONSTANT_BLOCK_BYTES,
            is_rotational: false,
        }],
        Model::System(system) => {
            let luns = system.luns();
            let alone = luns.len() == 1;
            let export = |(lun, span): (String, Span)| Export {
                description: if alone { name.to_owned() } else { format!("{name}, {lun}") },
                name: if alone { "disk".to_owned() } else { lun },
                span,
                block_bytes: system.block_bytes(),
                is_rotational: is_rotational(system),
            };
            luns.into_iter().map(export).collect()
        }
    }
}

fn is_rotational(system: &SystemDescription) -> bool {
    let turns = |device: &DeviceDescription| matches!(device, DeviceDescription::Disk(_));
    match system {
        SystemDescription::Drive(device) => turns(device),
        SystemDescription::Array(array) => array.devices.iter().any(turns),
    }
}
