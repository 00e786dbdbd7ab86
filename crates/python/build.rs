//! Refuses to build a wheel without the page of the HTML reports, which would otherwise be noticed only by users.

use std::path::Path;
use std::process::exit;
use std::{env, fs};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // maturin sets the first variable when it builds a wheel. `make` sets the second for a checkout without Node.
    for variable in ["PYO3_BUILD_EXTENSION_MODULE", "HEADSTACK_WITHOUT_REPORTS"] {
        println!("cargo::rerun-if-env-changed={variable}");
    }
    if env::var_os("PYO3_BUILD_EXTENSION_MODULE").is_none() || env::var_os("HEADSTACK_WITHOUT_REPORTS").is_some() {
        return;
    }
    let folder =
        Path::new(&env::var("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("../../python/headstack/report");
    for page in ["bundle.js", "bundle.css"].map(|name| folder.join(name)) {
        println!("cargo::rerun-if-changed={}", page.display());
        if let Err(error) = fs::metadata(&page) {
            println!(
                "cargo::error={}: {error}; `make web` builds it with Node 20 or newer, or set \
                 HEADSTACK_WITHOUT_REPORTS=1",
                page.display()
            );
            exit(1);
        }
    }
}
