//! Opens files, devices and exports for Python, and keeps track of all open ones, so that a second request to end stops
//! waiting for them.

use std::sync::{Arc, Mutex, Weak};

use headstack_jobfiles::Sync;
use headstack_load::{LoadError, Permission, Target};
use serde::Deserialize;

/// A file or device to open, from Python.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TargetRequest {
    path: String,
    direct: bool,
    #[serde(default)]
    sync: Sync,
    write: bool,
    #[serde(default)]
    destroy: Vec<String>,
    #[serde(default)]
    signatures: Vec<String>,
    create_bytes: Option<u64>,
    #[serde(default)]
    overwrite: bool,
    /// Size of a null target; `path` is its name in results.
    null_bytes: Option<u64>,
    /// Connections per thread to an export.
    #[serde(default = "default_one")]
    connections: u32,
}

fn default_one() -> u32 {
    1
}

impl TargetRequest {
    /// Opens it; `progress` receives the completed share of its creation, and returns whether to continue.
    ///
    /// # Errors
    /// Those of the target.
    pub fn open(&self, progress: &dyn Fn(f64) -> bool) -> Result<Target, LoadError> {
        if let Some(bytes) = self.null_bytes {
            return Ok(Target::null(bytes));
        }
        let permission = Permission {
            write: self.write,
            destroy: self.destroy.clone(),
            signatures: self.signatures.clone(),
            create_bytes: self.create_bytes,
            overwrite: self.overwrite,
        };
        if Target::is_export(&self.path) {
            return Target::open_export(&self.path, self.sync, &permission, self.connections);
        }
        if self.connections != 1 {
            return Err(LoadError::Target {
                target: self.path.clone(),
                message: "is not an NBD export; --connections applies only to exports".to_owned(),
            });
        }
        Target::open(&self.path, self.direct, self.sync, &permission, progress)
    }
}

/// All open targets.
static OPEN: Mutex<Vec<Weak<Target>>> = Mutex::new(Vec::new());

/// Registers open targets.
pub fn keep(opened: &[Arc<Target>]) {
    let mut open = OPEN.lock().expect("no panics with it");
    open.retain(|target| target.strong_count() > 0);
    open.extend(opened.iter().map(Arc::downgrade));
}

/// Stops waiting for requests under way on any target.
pub fn give_up_all() {
    OPEN.lock().expect("no panics with it").iter().filter_map(Weak::upgrade).for_each(|target| target.give_up());
}
