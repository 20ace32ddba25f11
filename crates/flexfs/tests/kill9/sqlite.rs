//! The SQLite load: transactions whose number alone says what they do, so that a count of them says all of a database.
//!
//! Invariant: after any kill the database is what its first `count` transactions make, where `count` is the last one
//! acknowledged or the one after it, whose answer was under way.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use rusqlite::Connection;

use crate::common::Dice;

/// Rows there can be.
const ROWS: u64 = 300;
const BLOB_BYTES_MAX: u64 = 6_000;
/// Pages in the write-ahead log after which it is copied back: few, so that this happens in every round.
const CHECKPOINT_PAGES: u32 = 60;

/// Journals of which a commit is durable when it is acknowledged, and how much syncing each needs for that.
pub const ROLLBACK_JOURNALS: [&str; 3] = ["delete", "truncate", "persist"];

fn synchronous(journal: &str) -> &'static str {
    // A commit is the removal of the journal; only in EXTRA is it synced.
    if journal == "delete" { "EXTRA" } else { "FULL" }
}

/// What a transaction does to a row: its new bytes, or nothing where it is deleted.
fn changes(transaction: i64) -> Vec<(i64, Option<Vec<u8>>)> {
    let mut dice = Dice::new(transaction.unsigned_abs());
    let count = if dice.below(10) == 0 { 40 } else { 1 + dice.below(4) };
    (0..count)
        .map(|_| {
            let (row, len) = (dice.below(ROWS).cast_signed(), dice.below(BLOB_BYTES_MAX) as usize);
            (row, (dice.below(4) > 0).then(|| dice.bytes(len)))
        })
        .collect()
}

fn open(path: &Path, journal: &str) -> rusqlite::Result<Connection> {
    let database = Connection::open(path)?;
    let mode: String = database.query_row(&format!("PRAGMA journal_mode = {journal}"), [], |row| row.get(0))?;
    assert_eq!(mode, journal);
    database.pragma_update(None, "synchronous", synchronous(journal))?;
    database.pragma_update(None, "wal_autocheckpoint", CHECKPOINT_PAGES)?;
    Ok(database)
}

fn count(database: &Connection) -> rusqlite::Result<i64> {
    database.query_row("SELECT count FROM transactions", [], |row| row.get(0))
}

/// Commits until something fails, and appends the number of each transaction to `acknowledged`.
pub fn load(path: &Path, journal: &str, acknowledged: &Path) {
    let mut record = OpenOptions::new().append(true).open(acknowledged).unwrap();
    let dir = path.parent().unwrap();
    let ended = open(path, journal).and_then(|database| {
        for number in count(&database)? + 1.. {
            commit(&database, number)?;
            // Where the server dies between the removal of a journal and the sync of its directory, SQLite takes the
            // directory, which then cannot be opened, for synced.
            File::open(dir).unwrap();
            record.write_all(format!("{number}\n").as_bytes()).unwrap();
        }
        Ok(())
    });
    panic!("{}: {ended:?}", path.display());
}

fn commit(database: &Connection, number: i64) -> rusqlite::Result<()> {
    database.execute_batch("BEGIN IMMEDIATE")?;
    for (row, bytes) in changes(number) {
        match bytes {
            Some(bytes) => database.execute("REPLACE INTO entries VALUES (?1, length(?2), ?2)", (row, bytes))?,
            None => database.execute("DELETE FROM entries WHERE id = ?1", [row])?,
        };
    }
    database.execute("UPDATE transactions SET count = ?1", [number])?;
    database.execute_batch("COMMIT")
}

/// A database on the mount and what is known of it.
pub struct Sqlite {
    /// Below the mount.
    name: PathBuf,
    /// Where the load writes down what it was promised.
    pub acknowledged: PathBuf,
    /// Transactions that were found to be there.
    count: i64,
    /// What they make.
    rows: BTreeMap<i64, Vec<u8>>,
}

impl Sqlite {
    /// An empty database on `mount`.
    pub fn new(mount: &Path, name: &str, outside: &Path) -> Self {
        // In a directory: where the mount is gone, there is none of that name.
        let (name, acknowledged) = (Path::new(name).join("data.sqlite"), outside.join(format!("acknowledged-{name}")));
        fs::create_dir(mount.join(&name).parent().unwrap()).unwrap();
        fs::write(&acknowledged, "").unwrap();
        let database = open(&mount.join(&name), "delete").unwrap();
        let tables = "CREATE TABLE entries (id INTEGER PRIMARY KEY, len INTEGER NOT NULL, bytes BLOB NOT NULL);
            CREATE INDEX by_len ON entries (len);
            CREATE TABLE transactions (count INTEGER NOT NULL);
            INSERT INTO transactions VALUES (0);";
        database.execute_batch(tables).unwrap();
        Self { name, acknowledged, count: 0, rows: BTreeMap::new() }
    }

    /// The load on it, to be run.
    pub fn load(&self, mount: &Path, journal: &str) -> Command {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.arg("--sqlite").arg(mount.join(&self.name)).arg(journal).arg(&self.acknowledged);
        command
    }

    /// Fails unless the database is whole and holds what was acknowledged; gives how many transactions came to it.
    pub fn check(&mut self, mount: &Path) -> u64 {
        let path = mount.join(&self.name);
        let database = Connection::open(&path).unwrap();
        let verdict: String = database.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
        assert_eq!(verdict, "ok", "{}", path.display());
        let found = count(&database).unwrap();
        let record = fs::read_to_string(&self.acknowledged).unwrap();
        let promised = record.lines().next_back().map_or(self.count, |line| line.parse().unwrap());
        assert!(
            (promised..=promised + 1).contains(&found),
            "{}: {promised} transactions were acknowledged, {found} are there",
            path.display()
        );
        for number in self.count + 1..=found {
            for (row, bytes) in changes(number) {
                match bytes {
                    Some(bytes) => drop(self.rows.insert(row, bytes)),
                    None => drop(self.rows.remove(&row)),
                }
            }
        }
        let mut statement = database.prepare("SELECT id, bytes FROM entries ORDER BY id").unwrap();
        let rows: rusqlite::Result<BTreeMap<i64, Vec<u8>>> =
            statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap().collect();
        assert!(rows.unwrap() == self.rows, "{}: not what {found} transactions make", path.display());
        let new = found - self.count;
        self.count = found;
        fs::write(&self.acknowledged, "").unwrap();
        new.unsigned_abs()
    }
}
