//! The embedded scenarios match those in the folder and can be read.

use headstack_workload::Scenario;

#[test]
fn no_scenario_has_the_id_of_a_workload() {
    for workload in headstack_catalogue::workloads() {
        assert!(!headstack_catalogue::scenarios().iter().any(|scenario| scenario.id == workload.id), "{}", workload.id);
    }
}

#[test]
fn every_embedded_scenario_can_be_read() {
    assert!(headstack_catalogue::scenarios().len() >= 29);
    for entry in headstack_catalogue::scenarios() {
        let scenario = Scenario::from_toml(entry.file_name, entry.text).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(scenario.name, entry.id);
    }
}
