//! redb and sled, for the crash tests: `stores STORE run FOLDER SETTINGS TRANSACTIONS` and `stores STORE read FOLDER SETTINGS`.

use std::collections::HashMap;
use std::error::Error;
use std::io::{BufRead, Write, stdin, stdout};
use std::path::Path;

use redb::{Database, Durability, ReadableTable, TableDefinition};

const TABLE: TableDefinition<&[u8], &[u8]> = TableDefinition::new("entries");

type Outcome = Result<(), Box<dyn Error>>;

/// As in model.py.
fn value(transaction: u64, key: u64, length: usize) -> Vec<u8> {
    let mut state = transaction * 1000 + key;
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bytes.extend((mixed ^ (mixed >> 31)).to_le_bytes());
    }
    bytes.truncate(length);
    bytes
}

/// The rows that a transaction writes.
fn written(number: u64) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut rows: Vec<_> = (0..8)
        .map(|row| {
            let key = (number * 7 + row * 13) % 60;
            let length = 900 + (number * 37 + row * 101) % 300;
            (format!("key{key:02}").into_bytes(), value(number, key, length as usize))
        })
        .collect();
    rows.push((b"count".to_vec(), number.to_string().into_bytes()));
    rows
}

/// Says that a transaction is committed, and waits until that is noted.
fn acknowledge(number: u64) -> Outcome {
    println!("{number}");
    let mut answer = String::new();
    stdin().lock().read_line(&mut answer)?;
    Ok(())
}

fn put(out: &mut impl Write, key: &[u8], held: &[u8]) -> Outcome {
    for text in [key, held] {
        out.write_all(&u32::try_from(text.len())?.to_le_bytes())?;
        out.write_all(text)?;
    }
    Ok(())
}

/// `{"key": "word"}` of strings alone, which is all that is needed.
fn settings(text: &str) -> HashMap<&str, &str> {
    let words: Vec<_> = text.split('"').skip(1).step_by(2).collect();
    words.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect()
}

fn redb_run(file: &Path, how: &HashMap<&str, &str>, transactions: u64) -> Outcome {
    let base = Database::create(file)?;
    for number in 1..=transactions {
        let mut transaction = base.begin_write()?;
        match how["durability"] {
            "immediate" => {}
            "two-phase" => transaction.set_two_phase_commit(true),
            "none" => transaction.set_durability(Durability::None),
            other => return Err(format!("durability: {other}").into()),
        }
        {
            let mut table = transaction.open_table(TABLE)?;
            for (key, held) in written(number) {
                table.insert(&*key, &*held)?;
            }
        }
        transaction.commit()?;
        acknowledge(number)?;
    }
    Ok(())
}

fn redb_read(file: &Path) -> Outcome {
    let mut base = Database::create(file)?;
    if !base.check_integrity()? {
        return Err("the integrity check failed, and it repaired something".into());
    }
    let transaction = base.begin_read()?;
    let table = match transaction.open_table(TABLE) {
        Ok(table) => table,
        Err(redb::TableError::TableDoesNotExist(_)) => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    let mut out = stdout().lock();
    for row in table.iter()? {
        let (key, held) = row?;
        put(&mut out, key.value(), held.value())?;
    }
    Ok(())
}

fn sled_open(folder: &Path, how: &HashMap<&str, &str>) -> sled::Result<sled::Db> {
    let every = how["flush_every_ms"].parse().ok();
    sled::Config::new().path(folder).flush_every_ms(every).open()
}

fn sled_run(folder: &Path, how: &HashMap<&str, &str>, transactions: u64) -> Outcome {
    let base = sled_open(folder, how)?;
    for number in 1..=transactions {
        let mut batch = sled::Batch::default();
        for (key, held) in written(number) {
            batch.insert(key, held);
        }
        base.apply_batch(batch)?;
        if how["flush"] == "yes" {
            base.flush()?;
        }
        acknowledge(number)?;
    }
    Ok(())
}

fn sled_read(folder: &Path, how: &HashMap<&str, &str>) -> Outcome {
    let base = sled_open(folder, how)?;
    let mut out = stdout().lock();
    for row in base.iter() {
        let (key, held) = row?;
        put(&mut out, &key, &held)?;
    }
    Ok(())
}

fn main() -> Outcome {
    let words: Vec<String> = std::env::args().collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let (store, what, folder, how) = (words[1], words[2], Path::new(words[3]), settings(words[4]));
    let base = folder.join("base");
    if what == "read" && !base.exists() {
        return Ok(());
    }
    match (store, what) {
        ("redb", "run") => redb_run(&base, &how, words[5].parse()?),
        ("redb", "read") => redb_read(&base),
        ("sled", "run") => sled_run(&base, &how, words[5].parse()?),
        ("sled", "read") => sled_read(&base, &how),
        _ => Err(format!("{store} {what}: no such thing").into()),
    }
}
