//! Maps fio's engines to headstack's.

use headstack_nbd::Address;
use headstack_workload::document::{InputError, nearest};

use super::settings::{Remarks, Settings};
use crate::JobEngine;

/// Asynchronous engines.
const RING: &[&str] =
    &["io_uring", "libaio", "linuxaio", "posixaio", "solarisaio", "windowsaio", "guasi", "syslet-rw", PASSTHROUGH, NBD];

/// The engine for NVMe namespaces, whose files are character devices.
const PASSTHROUGH: &str = "io_uring_cmd";

/// The engine for NBD exports, which are named by the option `uri` instead of a file.
const NBD: &str = "nbd";

/// Engines whose calls return when the request is complete.
const PSYNC: &[&str] = &["psync", "sync", "vsync", "pvsync", "pvsync2", "mmap", "splice"];

/// Engines for neither files, block devices nor NBD exports.
const OTHERS: &[&str] = &[
    "cpp_null",
    "cpuio",
    "dev-dax",
    "dfs",
    "dircreate",
    "dirdelete",
    "dirstat",
    "e4defrag",
    "exec",
    "external",
    "falloc",
    "filecreate",
    "filedelete",
    "filestat",
    "filexattr",
    "fileoperations",
    "ftruncate",
    "gfapi",
    "gfapi_async",
    "http",
    "ime_aio",
    "ime_psync",
    "ime_psyncv",
    "libblkio",
    "libcufile",
    "libhdfs",
    "libhipfile",
    "libiscsi",
    "libpmem",
    "librpma_apm_client",
    "librpma_apm_server",
    "librpma_gpspm_client",
    "librpma_gpspm_server",
    "libzbc",
    "mtd",
    "net",
    "netsplice",
    "nfs",
    "pmemblk",
    "rados",
    "rbd",
    "rdma",
    "sg",
    "xnvme",
];

/// Returns the export address of a job with the engine nbd; `None` for other engines.
///
/// # Errors
/// If the address is missing.
pub(super) fn export(name: &str, settings: &Settings) -> Result<Option<String>, InputError> {
    let Some(setting) = settings.get("ioengine").filter(|setting| setting.value.trim() == NBD) else {
        return Ok(None);
    };
    match settings.text("uri").map(str::trim).filter(|uri| !uri.is_empty()) {
        Some(uri) if Address::is_meant(uri) => Ok(Some(uri.to_owned())),
        Some(uri) => {
            let message = format!("{uri:?} is not the address of an export; use nbd://HOST:PORT/EXPORT");
            Err(settings.error(&["uri"], message))
        }
        None => Err(setting.error(format!("job [{name}] names no export; add uri=nbd://HOST:PORT/EXPORT"))),
    }
}

/// Whether requests are issued by io_submit(2), which blocks until a request through the page cache is complete.
pub(super) fn is_libaio(settings: &Settings) -> bool {
    settings.text("ioengine").is_some_and(|engine| matches!(engine, "libaio" | "linuxaio"))
}

/// Returns the engine of the job `name`.
///
/// # Errors
/// If the engine does not read and write files or block devices.
pub(super) fn engine(name: &str, settings: &Settings, remarks: &mut Remarks) -> Result<JobEngine, InputError> {
    let Some(setting) = settings.get("ioengine") else {
        return Ok(JobEngine::Psync);
    };
    let engine = setting.value.split(':').next().unwrap_or_default().trim();
    if let "mmap" | "splice" = engine {
        remarks.add(setting, format!("{engine} is replaced by pread and pwrite"));
    }
    if engine == PASSTHROUGH {
        if let Some(mode) = settings.text("write_mode").filter(|mode| *mode != "write") {
            return Err(settings.error(&["write_mode"], format!("{mode} commands are not supported; use write")));
        }
        if !settings.text("filename").is_some_and(|names| names.split(':').all(|name| name.starts_with("/dev/ng"))) {
            let message = "NVMe commands need a character device (/dev/ng0n1); use io_uring for other targets";
            remarks.add(setting, message);
        }
    }
    if is_libaio(settings) && !settings.is_direct() {
        return Ok(JobEngine::Psync);
    }
    if RING.contains(&engine) {
        return Ok(JobEngine::Ring);
    }
    if PSYNC.contains(&engine) {
        return Ok(JobEngine::Psync);
    }
    if engine == "null" {
        return Ok(JobEngine::Null);
    }
    if OTHERS.contains(&engine) || engine.starts_with('/') {
        let message = format!(
            "the engine {engine} of job [{name}] does not access files or block devices; allowed: null, {}, {}",
            PSYNC.join(", "),
            RING.join(", ")
        );
        return Err(setting.error(message));
    }
    let names = ["null"].iter().chain(RING).chain(PSYNC).chain(OTHERS).copied();
    let hint = match nearest(engine, names, 3) {
        close if close.is_empty() => format!("allowed: null, {}, {}", PSYNC.join(", "), RING.join(", ")),
        close => format!("did you mean {}?", close.join(", ")),
    };
    Err(setting.error(format!("{engine:?} of job [{name}] is not an engine of fio; {hint}")))
}
