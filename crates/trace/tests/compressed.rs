//! Compressed files and archives are read as what is in them.

use std::io::{self, Read, Write};

use crate::reading::read;
use headstack_trace::{Input, Record};

fn text() -> Vec<u8> {
    let line = |n: u64| format!("{},h,0,Read,{},4096,{}\n", 128_166_372_003_061_629 + n, n * 4_096, n % 977);
    (0..40_000).map(line).collect::<String>().into_bytes()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn bzip2(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn xz(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = liblzma::write::XzEncoder::new(Vec::new(), 1);
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = zstd::stream::Encoder::new(Vec::new(), 1).unwrap();
    // As the program `zstd` does.
    encoder.include_checksum(true).unwrap();
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

type Compress = fn(&[u8]) -> Vec<u8>;
const COMPRESSIONS: [(&str, Compress); 4] = [("gzip", gzip), ("bzip2", bzip2), ("xz", xz), ("zstd", zstd)];

fn records(bytes: &[u8]) -> Vec<Record> {
    read(bytes, None, false).unwrap().0
}

fn error(bytes: &[u8]) -> String {
    let read = read(bytes, None, false).map(|(records, _)| records.len());
    read.expect_err("it cannot be read").to_string()
}

#[test]
fn compressed_files_read_as_their_contents() {
    let text = text();
    let plain = records(&text);
    assert_eq!(plain.len(), 40_000);
    for (name, compress) in COMPRESSIONS {
        assert_eq!(records(&compress(&text)), plain, "{name}");
        // Members one after the other, as `cat a.gz b.gz` and parallel compressors make them.
        let (first, second) = text.split_at(text.len() / 3);
        assert_eq!(records(&[compress(first), compress(second)].concat()), plain, "{name} in two members");
    }
}

#[test]
fn a_compressed_file_that_is_cut_off_is_one_line() {
    let text = text();
    for (name, compress) in COMPRESSIONS {
        let whole = compress(&text);
        for end in [7, whole.len() / 2, whole.len() - 1] {
            let message = error(&whole[..end]);
            assert_eq!(message, "trace: the compressed file is cut off", "{name} at {end}");
        }
        let mut broken = whole.clone();
        let middle = broken.len() / 2;
        broken[middle..middle + 64].fill(0xa5);
        let message = error(&broken);
        assert!(message.starts_with("trace") && message.lines().count() == 1, "{name}: {message}");
    }
}

fn tar(entries: &[(&str, Option<&[u8]>)]) -> Vec<u8> {
    let mut archive = tar::Builder::new(Vec::new());
    for (path, content) in entries {
        let mut header = tar::Header::new_gnu();
        header.set_mode(0o644);
        match content {
            Some(bytes) => {
                header.set_size(bytes.len() as u64);
                archive.append_data(&mut header, path, *bytes).unwrap();
            }
            None => {
                header.set_entry_type(tar::EntryType::Directory);
                header.set_size(0);
                archive.append_data(&mut header, path, io::empty()).unwrap();
            }
        }
    }
    archive.into_inner().unwrap()
}

#[test]
fn files_of_an_archive_follow_each_other() {
    let text = text();
    let cut = text.len() / 2 + text[text.len() / 2..].iter().position(|&byte| byte == b'\n').unwrap() + 1;
    let (first, second) = text.split_at(cut);
    let long = format!("d/{}/b.csv", "n".repeat(150));
    let archive = tar(&[("d", None), ("d/a.csv", Some(first)), ("d/empty", Some(b"")), (&long, Some(second))]);
    let plain = records(&text);
    assert_eq!(records(&archive), plain);
    for (name, compress) in COMPRESSIONS {
        assert_eq!(records(&compress(&archive)), plain, "{name}");
    }
    // Not every program writes the two empty blocks at the end.
    assert_eq!(records(&archive[..archive.len() - 1_024]), plain);
    // What stands behind the end is not a part of it, however often it is asked for.
    let mut input = Input::from_bytes("trace", [&archive[..], &[7; 10_240]].concat()).unwrap();
    let mut bytes = Vec::new();
    input.read_to_end(&mut bytes).unwrap();
    assert_eq!(bytes, text);
    assert_eq!(input.read(&mut [0; 9]).unwrap(), 0);
}

#[test]
fn files_are_known_however_few_bytes_come_at_a_time() {
    let archive = tar(&[("a.csv", Some(b"128166372003061629,h,0,Read,0,4096,1\n"))]);
    for (name, compress) in COMPRESSIONS {
        // Decoders hand out a member at a time.
        let members: Vec<u8> = archive.chunks(100).flat_map(compress).collect();
        assert_eq!(records(&members).len(), 1, "{name}");
    }
}

#[test]
fn an_archive_that_is_cut_off_or_broken_is_one_line() {
    let text = text();
    let archive = tar(&[("a.csv", Some(&text)), ("b.csv", Some(&text))]);
    let in_padding = 512 + text.len() + 1;
    let in_header = 512 + text.len().next_multiple_of(512) + 300;
    assert_ne!(text.len() % 512, 0);
    for end in [600, text.len(), in_padding, in_header, archive.len() - 4_096] {
        let message = error(&archive[..end]);
        assert_eq!(message, "trace: the archive is cut off", "at {end}");
    }
    let header = in_header - 300;
    for (at, value) in [
        (header + 124, &b"99999999999"[..]),
        (header + 124, b"xyz"),
        (header, b"other name"),
        (header + 124, &[0xff; 12]),
    ] {
        let mut broken = archive.clone();
        broken[at..at + value.len()].copy_from_slice(value);
        let message = error(&broken);
        assert_eq!(message, "trace: the archive is broken: a header's sum or size is wrong");
    }
}

#[test]
fn empty_files_are_refused() {
    let empty = |bytes: Vec<u8>| Input::from_bytes("trace", bytes).err().map(|error| error.to_string());
    let says = Some("trace: the file is empty".to_owned());
    assert_eq!(empty(Vec::new()), says);
    for (name, compress) in COMPRESSIONS {
        assert_eq!(empty(compress(b"")), says, "{name}");
    }
    assert_eq!(empty(tar(&[("d", None), ("d/a", Some(b""))])), says);
    assert_eq!(empty(tar(&[])), None, "1,024 zero bytes are no archive, and not empty");
}

#[test]
fn a_missing_file_or_directory_is_refused() {
    let open = |path: &str| Input::open(path.as_ref()).err().unwrap().to_string();
    assert_eq!(open("/nowhere/trace"), "/nowhere/trace: there is no such file");
    assert_eq!(open("/tmp"), "/tmp: is a folder, not a file");
}
