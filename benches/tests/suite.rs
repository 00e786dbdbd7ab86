//! The program's options. `tests/python/test_benches.py` runs every row.

use std::process::Command;

#[test]
fn an_unknown_option_is_refused_with_those_that_exist() {
    let output = Command::new(env!("CARGO_BIN_EXE_speed")).arg("--nothing").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let error = String::from_utf8(output.stderr).unwrap();
    for option in ["--smoke", "--long", "--simulator", "--live"] {
        assert!(error.contains(option), "{error}");
    }
}
