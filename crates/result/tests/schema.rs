//! Checks that the published JSON schema of results in `docs/` is current.

use std::{env, fs, path::Path};

use headstack_result::{RunResult, SCHEMA_VERSION};

#[test]
fn the_published_schema_is_current() {
    let mut schema = schemars::schema_for!(Vec<RunResult>);
    schema.insert("title".to_owned(), format!("Results of headstack, schema {SCHEMA_VERSION}").into());
    let said = "Output of --json: one object per run.";
    schema.insert("description".to_owned(), said.into());
    let current = serde_json::to_string_pretty(&schema).expect("a schema can be written as JSON") + "\n";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/results.schema.json");
    if env::var_os("HEADSTACK_WRITE_DOCS").is_some() {
        fs::write(&path, &current).expect("the documents can be written");
    }
    let published = fs::read_to_string(&path).unwrap_or_default();
    let advice = "HEADSTACK_WRITE_DOCS=1 cargo test -p headstack-result schema renews docs/results.schema.json";
    assert!(published == current, "{advice}");
}
