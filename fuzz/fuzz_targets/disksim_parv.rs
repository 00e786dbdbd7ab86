//! DiskSim's parameter files. What follows a NUL is the content of every file that the first part names.

#![no_main]

use std::io;
use std::path::Path;

use headstack_disksim::import_with;
use headstack_fuzz::assert_sound;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let (main, named) = text.split_once('\0').unwrap_or((text, ""));
    let imported = import_with(Path::new("fuzz.parv"), &mut |path| match path.to_str() {
        Some("fuzz.parv") => Ok(main.to_owned()),
        _ if named.is_empty() => Err(io::Error::from(io::ErrorKind::NotFound)),
        _ => Ok(named.to_owned()),
    });
    match imported {
        Ok(imported) => imported.drives.iter().for_each(|drive| assert_sound(&drive.description)),
        Err(error) => assert_eq!(error.to_string().lines().count(), 1, "an error is one line"),
    }
});
