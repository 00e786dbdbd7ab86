//! [`Service`]: a complete export, with a model, its contents, the clock, and all endpoints for clients and users.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use headstack_catalogue::load_faults;
use headstack_sim::device::DeviceDescription;
use headstack_sim::faults::Schedule;
use headstack_sim::timeline::Listener;
use headstack_sim::{Model, SystemDescription};
use headstack_workload::Span;
use serde::Deserialize;

use crate::LiveError;
use crate::budget::Budget;
use crate::contents::Contents;
use crate::control::{Control, HTTP_DEADLINE};
use crate::device::{Device, Export};
use crate::fidelity::Fidelity;
use crate::floor;
use crate::fuse::{Mount, attach_loop, detach_loop};
use crate::journal::JournalPlan;
use crate::nbd::{Endpoint, Limits, SOCKET_MODE, Security, Server, Tls};
use crate::pacer::{Commander, Session, SessionOptions};
use crate::ublk::BlockDevices;
use crate::witness::Witness;

/// Block size of a device without mechanics.
const CONSTANT_BLOCK_BYTES: u32 = 512;

/// Storage of the data.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Keeping {
    /// In memory, until the server ends.
    Memory,
    /// In a sparse file that remains after the server ends.
    File(PathBuf),
    /// In a file that was not created by a server.
    Adopted(PathBuf),
    /// Discarded, except for these ranges (first byte, length in bytes).
    Discard(Vec<(u64, u64)>),
}

/// Options of an export.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServiceOptions {
    /// Unix sockets for NBD.
    pub unix: Vec<PathBuf>,
    /// Mode of the unix sockets.
    pub socket_mode: u32,
    /// Addresses and ports for NBD over TCP.
    pub tcp: Vec<SocketAddr>,
    /// Loopback ports for NBD, on IPv4 and, if available, IPv6.
    #[serde(default)]
    pub loopback: Vec<u16>,
    /// Whether to serve NBD on standard input and output.
    pub stdio: bool,
    /// Whether to serve NBD on sockets passed by a service manager.
    pub activated: bool,
    /// Directory for a FUSE mount.
    pub fuse: Option<PathBuf>,
    /// Whether to attach loop devices to the files of the FUSE mount.
    pub loops: bool,
    /// Whether to create ublk block devices.
    pub ublk: bool,
    /// Encryption of connections.
    pub tls: Option<TlsOptions>,
    /// Part of the system to export: first byte and length in bytes.
    pub part: Option<(u64, u64)>,
    /// Storage of the data.
    pub keeping: Keeping,
    /// Nanoseconds of model time per nanosecond of wall-clock time.
    pub speed: f64,
    /// Seed of the system's random processes.
    pub seed: u64,
    /// Whether to request SCHED_FIFO.
    pub realtime: bool,
    /// Memory for requests and connections in bytes; if absent, 25 % of the free memory, at most 1 GiB.
    pub memory_bytes: Option<u64>,
    /// Overhead of a path in ns; measured if absent.
    pub floor_ns: Option<u64>,
    /// Path of a fault schedule.
    pub faults: Option<PathBuf>,
    /// Path of the journal.
    pub journal: Option<PathBuf>,
    /// Path of the control socket.
    pub control: Option<PathBuf>,
    /// Address for Prometheus metrics over HTTP.
    pub metrics: Option<SocketAddr>,
}

impl ServiceOptions {
    /// Returns the default options for real time, without any endpoint.
    pub fn new(keeping: Keeping) -> ServiceOptions {
        ServiceOptions {
            unix: Vec::new(),
            socket_mode: SOCKET_MODE,
            tcp: Vec::new(),
            loopback: Vec::new(),
            stdio: false,
            activated: false,
            fuse: None,
            loops: false,
            ublk: false,
            tls: None,
            part: None,
            keeping,
            speed: 1.0,
            seed: 0,
            realtime: true,
            memory_bytes: None,
            floor_ns: None,
            faults: None,
            journal: None,
            control: None,
            metrics: None,
        }
    }
}

/// TLS options. All files are in PEM format.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TlsOptions {
    /// The server's certificate, with its chain.
    pub certificate: PathBuf,
    /// The certificate's key.
    pub key: PathBuf,
    /// File of certificate authorities, one of which must have signed each client's certificate.
    pub client_ca: Option<PathBuf>,
    /// Whether to refuse unencrypted clients.
    pub required: bool,
}

/// A running export.
#[derive(Debug)]
pub struct Service {
    session: Session,
    device: Arc<Device>,
    server: Server,
    mounted: Option<Mounted>,
    block_devices: Option<BlockDevices>,
    witness: Witness,
    control: Control,
    notes: Vec<String>,
}

/// A FUSE mount with its loop devices.
#[derive(Debug)]
struct Mounted {
    mount: Mount,
    loops: Vec<PathBuf>,
}

impl Service {
    /// Starts the export: measures the overhead of the path, starts the clock, then admits clients. `listener` is called
    /// for each request.
    ///
    /// # Errors
    /// Returns an error if the model or the options are invalid, or the operating system refuses a resource.
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
            Keeping::Adopted(path) => Contents::adopted(path, capacity_bytes)?,
            Keeping::Discard(kept) => {
                let kept = kept.iter().map(|&(start_bytes, length_bytes)| Span { start_bytes, length_bytes });
                Contents::discarded(capacity_bytes, kept.collect())?
            }
        };
        let endpoints = endpoints_of(options);
        let security = security_of(options)?;
        let schedule = match &options.faults {
            Some(path) => load_faults(path, model)?,
            None => Schedule::default(),
        };
        let nbd_floor_ns = if endpoints.is_empty() { 0 } else { floor_of(model, options, floor::measure_nbd)? };
        let fuse_floor_ns = if options.fuse.is_none() { 0 } else { floor_of(model, options, floor::measure_fuse)? };
        let ublk_floor_ns = if options.ublk { floor_of(model, options, floor::measure_ublk)? } else { 0 };
        let budget = options.memory_bytes.map_or_else(Budget::for_this_machine, Budget::new);
        let (speed, seed, realtime) = (options.speed, options.seed, options.realtime);
        let journal = options.journal.as_deref().map(|path| journal_plan(path, options, &contents, capacity_bytes));
        let journal = journal.transpose()?;
        let parts: Vec<Span> = exports.iter().map(|export| export.span).collect();
        let session = SessionOptions { speed, seed, realtime, schedule: schedule.clone(), budget, journal };
        let session = Session::start(model, session, listener)?;
        let notes = notes_of(&schedule, model, &parts, session.may_lose_data());
        let device = Device::of(&session, exports, contents);
        let by = |floor_ns| {
            let submitter = session.submitter().with_floor_ns(floor_ns);
            Arc::new(Device { submitter, ..(*device).clone() })
        };
        let (limits, mode) = (Limits::default(), options.socket_mode);
        let server = Server::start_with(&by(nbd_floor_ns), &endpoints, security, limits, mode)?;
        let mounted = match &options.fuse {
            Some(directory) => Some(Mounted::start(&by(fuse_floor_ns), directory, options.loops)?),
            None => None,
        };
        let block_devices = options.ublk.then(|| BlockDevices::start(&by(ublk_floor_ns))).transpose()?;
        let witness = session.witness()?;
        let control = Control::start(&session.commander(), options.control.as_deref(), options.metrics, HTTP_DEADLINE)?;
        Ok(Service { session, device, server, mounted, block_devices, witness, control, notes })
    }

    /// Returns a handle for orders.
    pub fn commander(&self) -> Commander {
        self.session.commander()
    }

    /// Returns notes for the user about faults that cannot have any effect.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Returns the exports.
    pub fn exports(&self) -> &[Export] {
        &self.device.exports
    }

    /// Returns the addresses of the TCP ports, with the port numbers that the system assigned.
    pub fn addresses(&self) -> &[SocketAddr] {
        self.server.addresses()
    }

    /// Returns the address of the metrics port, with the port number that the system assigned.
    pub fn metrics(&self) -> Option<SocketAddr> {
        self.control.metrics
    }

    /// Returns the paths of the files in the FUSE mount.
    pub fn files(&self) -> &[PathBuf] {
        self.mounted.as_ref().map_or(&[], |mounted| mounted.mount.files())
    }

    /// Returns the paths of the ublk and loop block devices.
    pub fn block_devices(&self) -> Vec<PathBuf> {
        let ublk = self.block_devices.iter().flat_map(BlockDevices::paths);
        ublk.chain(self.mounted.iter().flat_map(|mounted| &mounted.loops)).cloned().collect()
    }

    /// Whether no more clients can connect, or an order to stop was received.
    pub fn is_over(&self) -> bool {
        let is_unmounted = self.mounted.as_ref().is_none_or(|mounted| mounted.mount.is_unmounted());
        let is_taken_away = self.block_devices.as_ref().is_none_or(BlockDevices::is_over);
        self.control.is_stop_requested() || (self.server.is_over() && is_unmounted && is_taken_away)
    }

    /// Whether another process unmounted the FUSE directory.
    pub fn was_unmounted(&self) -> bool {
        self.mounted.as_ref().is_some_and(|mounted| mounted.mount.is_unmounted())
    }

    /// Ends the export: disconnects clients, then stops the clock. Contents in a file are then on disk.
    ///
    /// # Errors
    /// Returns an error if the file system of the contents is full or gone, or a mount or a loop device cannot be
    /// removed.
    pub fn stop(self) -> Result<Fidelity, LiveError> {
        self.control.stop();
        self.server.stop();
        // While a block device is removed, the clock answers its last writes.
        let gone = self.block_devices.map_or(Ok(()), BlockDevices::stop);
        let unmounted = self.mounted.map_or(Ok(()), Mounted::stop);
        let fidelity = self.session.stop();
        self.witness.stop();
        self.device.submitter.gate().tidy(&self.device.contents).map_err(LiveError::io("the contents"))?;
        self.device.contents.sync().map_err(LiveError::io("the contents"))?;
        self.device.submitter.gate().finish_journal()?;
        unmounted.and(gone).map(|()| fidelity)
    }
}

impl Mounted {
    fn start(device: &Arc<Device>, directory: &Path, with_loops: bool) -> Result<Mounted, LiveError> {
        let mut mounted = Mounted { mount: Mount::start(device, directory)?, loops: Vec::new() };
        if with_loops {
            let files = mounted.mount.files().to_vec();
            for (file, export) in files.iter().zip(&device.exports) {
                match attach_loop(file, export) {
                    Ok(device) => mounted.loops.push(device),
                    Err(error) => {
                        mounted.stop()?;
                        return Err(error);
                    }
                }
            }
        }
        Ok(mounted)
    }

    /// Detaches the loop devices before unmounting, since a mount with loop devices stays busy.
    fn stop(self) -> Result<(), LiveError> {
        let detached: Result<(), LiveError> = self.loops.iter().try_for_each(|device| detach_loop(device));
        self.mount.stop()?;
        detached
    }
}

/// Returns the overhead of a path in ns, as given or as measured with a device of about the same speed.
fn floor_of(
    model: &Model,
    options: &ServiceOptions,
    measure: fn(bool, u64) -> Result<u64, LiveError>,
) -> Result<u64, LiveError> {
    /// Typical latencies in ns, to within an order of magnitude: a seek and half a revolution, or a read of a flash
    /// cell.
    const DISK_NS: u64 = 6_000_000;
    const FLASH_NS: u64 = 100_000;
    let model_ns = match model {
        Model::Constant(constant) => constant.latency_ns,
        Model::System(system) if is_rotational(system) => DISK_NS,
        Model::System(_) => FLASH_NS,
    };
    let wall_ns = (model_ns as f64 / options.speed) as u64;
    options.floor_ns.map_or_else(|| measure(options.realtime, wall_ns.clamp(FLASH_NS, 10_000_000)), Ok)
}

/// Returns the plan of a journal; the initial contents are zeros or an image.
fn journal_plan(
    path: &Path,
    options: &ServiceOptions,
    contents: &Contents,
    capacity_bytes: u64,
) -> Result<JournalPlan, LiveError> {
    let image = match &options.keeping {
        Keeping::Memory => None,
        Keeping::File(file) | Keeping::Adopted(file) => {
            (!contents.is_hole(0, capacity_bytes)).then(|| file.display().to_string())
        }
        Keeping::Discard(_) => {
            let why = "journal: discarded contents have no journal; --data memory or a FILE is allowed";
            return Err(LiveError::Invalid(why.to_owned()));
        }
    };
    Ok(JournalPlan { path: path.to_owned(), image })
}

fn endpoints_of(options: &ServiceOptions) -> Vec<Endpoint> {
    let mut endpoints: Vec<Endpoint> = options.unix.iter().cloned().map(Endpoint::Unix).collect();
    endpoints.extend(options.tcp.iter().copied().map(Endpoint::Tcp));
    endpoints.extend(options.loopback.iter().copied().map(Endpoint::Loopback));
    endpoints.extend(options.stdio.then_some(Endpoint::Stdio));
    endpoints.extend(options.activated.then_some(Endpoint::Activated));
    endpoints
}

fn notes_of(schedule: &Schedule, model: &Model, parts: &[Span], may_lose_data: bool) -> Vec<String> {
    let idle = schedule.without_effect(model, parts, may_lose_data).into_iter();
    idle.map(|(index, (key, why))| format!("fault[{index}].{key} has no effect: {why}")).collect()
}

fn security_of(options: &ServiceOptions) -> Result<Security, LiveError> {
    let Some(asked) = &options.tls else { return Ok(Security::None) };
    let tls = Tls::from_files(&asked.certificate, &asked.key, asked.client_ca.as_deref())?;
    Ok(if asked.required { Security::Required(tls) } else { Security::Offered(tls) })
}

/// Returns one export per LUN.
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
    system.device_kinds().into_iter().any(turns)
}
