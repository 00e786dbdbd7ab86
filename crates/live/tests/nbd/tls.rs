//! Encrypted connections, by the clients that others wrote.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use headstack_live::Contents;
use headstack_live::nbd::wire::{command, option, reply};
use headstack_live::nbd::{Security, Tls};

use super::served::{Asking, Folder, LARGE_BYTES, LATENCIES_NS, SMALL_BYTES, Served, header, pattern};

/// An authority, a server's certificate, a client's, and a client's of nobody known, as libnbd and QEMU want the files.
struct Keys {
    folder: Folder,
}

impl Keys {
    /// `None` without openssl.
    fn new() -> Option<Keys> {
        let keys = Keys { folder: Folder::new() };
        for authority in ["known", "unknown"] {
            std::fs::create_dir(keys.path(authority)).expect("a folder");
            keys.certify(authority, "ca", None)?;
            keys.certify(authority, "server", Some("DNS:localhost,IP:127.0.0.1"))?;
            keys.certify(authority, "client", Some("DNS:client"))?;
        }
        // Whoever trusts the one and shows the other's.
        std::fs::create_dir(keys.path("stranger")).expect("a folder");
        let copies = [("known/ca-cert.pem", "ca-cert.pem"), ("unknown/client-cert.pem", "client-cert.pem")];
        for (from, to) in [copies[0], copies[1], ("unknown/client-key.pem", "client-key.pem")] {
            std::fs::copy(keys.path(from), keys.path("stranger").join(to)).expect("a copy");
        }
        Some(keys)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A key and a certificate, signed by the authority of the folder or, without names, by itself.
    fn certify(&self, authority: &str, name: &str, names: Option<&str>) -> Option<()> {
        let file = |what: &str| self.path(&format!("{authority}/{what}.pem"));
        let (key, certificate) = (file(&format!("{name}-key")), file(&format!("{name}-cert")));
        let mut openssl = Command::new("openssl");
        openssl.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]);
        openssl.args(["-days", "2", "-subj"]).arg(format!("/CN={authority} {name}"));
        openssl.arg("-keyout").arg(key).arg("-out").arg(certificate);
        if let Some(names) = names {
            openssl.arg("-CA").arg(file("ca-cert")).arg("-CAkey").arg(file("ca-key"));
            openssl.args(["-addext", "basicConstraints=critical,CA:false", "-addext"]);
            openssl.arg(format!("subjectAltName={names}"));
        }
        openssl.output().ok()?.status.success().then_some(())
    }

    fn tls(&self, clients: Option<&str>) -> Tls {
        let authority = clients.map(|authority| self.path(authority).join("ca-cert.pem"));
        let (certificate, key) = (self.path("known/server-cert.pem"), self.path("known/server-key.pem"));
        Tls::from_files(&certificate, &key, authority.as_deref()).expect("keys")
    }

    fn serve(&self, security: Security) -> Served {
        Served::with(LATENCIES_NS[1], Contents::in_memory(LARGE_BYTES + SMALL_BYTES).expect("memory"), security)
    }

    /// Where a client with the certificates of `folder` finds the export.
    fn uri(&self, served: &Served, folder: &str) -> String {
        let socket = served.socket.display();
        let certificates = self.path(folder);
        format!("nbds+unix://localhost/large?socket={socket}&tls-certificates={}", certificates.display())
    }
}

fn run(program: &str, arguments: &[&str]) -> Option<Output> {
    Command::new(program).args(arguments).output().ok()
}

macro_rules! or_skip {
    ($had:expr, $what:literal) => {
        match $had {
            Some(had) => had,
            None => {
                return headstack_needs::lacks(headstack_needs::Need::Programs, format_args!("{} is not there", $what))
            }
        }
    };
}

#[test]
fn encrypted_connections_carry_everything() {
    let keys = or_skip!(Keys::new(), "openssl");
    let served = keys.serve(Security::Required(keys.tls(None)));
    let uri = keys.uri(&served, "known");
    let told = or_skip!(run("nbdinfo", &["--size", &uri]), "nbdinfo");
    assert_eq!(String::from_utf8_lossy(&told.stdout).trim(), LARGE_BYTES.to_string(), "{told:?}");
    let listed = run("nbdinfo", &["--list", &uri]).expect("nbdinfo");
    assert!(String::from_utf8_lossy(&listed.stdout).contains("the small one"), "{listed:?}");
    // More than any buffer on the way holds, both ways.
    let (data, there, back) = (pattern(4, 48 << 20), keys.path("there"), keys.path("back"));
    std::fs::write(&there, &data).expect("a file");
    let written = run("nbdcopy", &[there.to_str().expect("text"), &uri]).expect("nbdcopy");
    assert!(written.status.success(), "{written:?}");
    let mut stored = vec![0; data.len()];
    served.device.contents.read(0, &mut stored).expect("contents");
    assert!(stored == data, "what was written");
    let read = run("nbdcopy", &[&uri, back.to_str().expect("text")]).expect("nbdcopy");
    assert!(read.status.success(), "{read:?}");
    assert!(std::fs::read(&back).expect("a file")[..data.len()] == data, "what was read");
    served.await_empty();
}

#[test]
fn qemu_connects_with_tls() {
    let keys = or_skip!(Keys::new(), "openssl");
    let served = keys.serve(Security::Required(keys.tls(Some("known"))));
    let object = format!("tls-creds-x509,id=t,endpoint=client,dir={}", keys.path("known").display());
    let image = |rest: &str| {
        let socket = served.socket.display();
        format!("driver=nbd,server.type=unix,server.path={socket},export=small,tls-hostname=localhost{rest}")
    };
    let with = image(",tls-creds=t");
    let told = or_skip!(run("qemu-img", &["info", "--object", &object, "--image-opts", &with]), "qemu-img");
    assert!(String::from_utf8_lossy(&told.stdout).contains("1 MiB (1048576 bytes)"), "{told:?}");
    let without = run("qemu-img", &["info", "--image-opts", &image("")]).expect("qemu-img");
    assert!(!without.status.success(), "without TLS: {without:?}");
}

#[test]
fn an_export_that_requires_tls_answers_nothing_without_it() {
    let keys = or_skip!(Keys::new(), "openssl");
    let served = keys.serve(Security::Required(keys.tls(None)));
    let mut client = served.greeted();
    for number in [option::LIST, option::INFO, option::GO, option::STRUCTURED_REPLY, 99] {
        let told = client.option(number, &[]).expect("a reply");
        assert_eq!((told.len(), told[0].kind), (1, reply::ERR_TLS_REQD), "option {number}");
    }
    client.send_option(option::EXPORT_NAME, b"large").expect("it is sent");
    assert!(client.receive_bytes(1).is_err(), "the oldest way in leads around it");
    let client = served.greeted();
    let two = [wire_option(option::STARTTLS), wire_option(option::LIST)].concat();
    client.stream().write_all(&two).expect("they are sent");
    let mut client = client;
    let refused = client.receive_bytes(20).expect("a reply");
    assert_eq!(refused[12..16], reply::ERR_INVALID.to_be_bytes(), "what follows in the clear would be taken for more");
}

fn wire_option(number: u32) -> Vec<u8> {
    [&b"IHAVEOPT"[..], &number.to_be_bytes(), &[0; 4]].concat()
}

#[test]
fn where_it_is_offered_others_come_in_the_clear() {
    let keys = or_skip!(Keys::new(), "openssl");
    let served = keys.serve(Security::Offered(keys.tls(None)));
    assert_eq!(served.client().simple(&header(command::READ, 0, 1, 0, 512), &[]), Ok(vec![0; 512]));
    let told = or_skip!(run("nbdinfo", &["--size", &keys.uri(&served, "known")]), "nbdinfo");
    assert!(told.status.success(), "{told:?}");
    // Who asks and then does not encrypt is hung up on.
    let mut client = served.greeted();
    assert_eq!(client.option(option::STARTTLS, &[]).expect("a reply")[0].kind, reply::ACK);
    client.stream().write_all(&wire_option(option::LIST)).expect("it is sent");
    while client.receive_bytes(1).is_ok() {}
    // As is who goes in the middle of the handshake.
    let mut client = served.greeted();
    client.option(option::STARTTLS, &[]).expect("a reply");
    drop(client);
    served.await_empty();
}

#[test]
fn a_client_ca_requires_client_certificates() {
    let keys = or_skip!(Keys::new(), "openssl");
    let served = keys.serve(Security::Required(keys.tls(Some("known"))));
    let known = or_skip!(run("nbdinfo", &["--size", &keys.uri(&served, "known")]), "nbdinfo");
    assert!(known.status.success(), "{known:?}");
    let stranger = run("nbdinfo", &["--size", &keys.uri(&served, "stranger")]).expect("nbdinfo");
    assert!(!stranger.status.success(), "a client of nobody known: {stranger:?}");
    let unknown = run("nbdinfo", &["--size", &keys.uri(&served, "unknown")]).expect("nbdinfo");
    assert!(!unknown.status.success(), "a client that does not know the server: {unknown:?}");
    served.await_empty();
}

#[test]
fn a_server_stops_with_encrypted_clients_that_do_nothing() {
    let keys = or_skip!(Keys::new(), "openssl");
    let mut served = keys.serve(Security::Offered(keys.tls(None)));
    let mut shaking = served.greeted();
    shaking.option(option::STARTTLS, &[]).expect("a reply");
    let silent = served.greeted();
    served.stop();
    for mut client in [shaking, silent] {
        assert!(client.receive_bytes(1).is_err());
    }
}

#[test]
fn bad_certificate_files_are_reported() {
    let keys = or_skip!(Keys::new(), "openssl");
    let [certificate, key, empty, none] =
        ["known/server-cert.pem", "known/server-key.pem", "empty", "none"].map(|name| keys.path(name));
    std::fs::write(&empty, "").expect("a file");
    let other_key = keys.path("unknown/server-key.pem");
    let rows: &[(&Path, &Path, Option<&Path>, &Path, &str)] = &[
        (&none, &key, None, &none, "No such file"),
        (&certificate, &none, None, &none, "No such file"),
        (&key, &key, None, &key, "has no certificate in PEM form"),
        (&certificate, &empty, None, &empty, "has no private key in PEM form"),
        (&certificate, &other_key, None, &certificate, "does not match the key"),
        (&certificate, &key, Some(&empty), &empty, "has no certificate in PEM form"),
    ];
    for (certificate, key, authority, file, what) in rows {
        let told = Tls::from_files(certificate, key, *authority).expect_err(what).to_string();
        assert!(told.contains(what) && told.starts_with(&file.display().to_string()), "{told:?} not {what:?}");
        assert_eq!(told.lines().count(), 1);
    }
}
