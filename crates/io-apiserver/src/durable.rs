//! The durable log: SQLite in WAL mode with full syncs, written by one thread in whole batches.

use std::path::{Path, PathBuf};

use bytes::Bytes;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::{Error, files};

/// Marks the file as ours (`PRAGMA application_id`): the letters "LgSh".
const APPLICATION: i64 = 0x4C67_5368;
const SCHEMA: i64 = 1;
/// The log is folded into the table when it has grown to this, even under load.
const CHECKPOINT_BYTES: u64 = 4 << 20;
const PAGE_BYTES: u64 = 4096;
/// Steps of a megabyte by which the file is made smaller at once.
const SHRINK_STEPS: usize = 64;

/// One object to be written or, without a value, to be removed.
pub(crate) struct Row {
    pub key: String,
    pub revision: u64,
    pub value: Option<Bytes>,
}

/// An object as it was found on disk.
pub(crate) struct Found {
    pub key: String,
    pub value: Vec<u8>,
}

/// Why a batch is not on disk.
#[derive(Debug)]
pub(crate) enum CommitError {
    /// No space was left; nothing of the batch is on disk and the log is usable.
    Full,
    /// Nobody knows what is on disk; the process must end.
    Broken(String),
}

/// The one connection to the database.
pub(crate) struct DurableLog {
    connection: Connection,
    unfolded_bytes: u64,
}

impl DurableLog {
    /// Opens or creates the database; says what it holds and the highest revision ever given out.
    pub(crate) fn open(path: &Path, max_bytes: Option<u64>) -> Result<(DurableLog, Vec<Found>, u64), Error> {
        let existed = path.exists();
        let damaged = |error: rusqlite::Error| unusable(path, &error);
        if existed {
            files::narrow_rights(path)?;
            refuse_other_files(path)?;
        } else {
            // SQLite would create it readable by all; an empty file is a valid empty database.
            files::write_private(path, b"")?;
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags).map_err(damaged)?;
        prepare(&connection, max_bytes).map_err(damaged)?;
        check_owner(&connection, path)?;
        let revision = create_tables(&connection).map_err(damaged)?;
        let found = read_all(&connection).map_err(damaged)?;
        if !existed {
            files::sync_parent(path)?;
        }
        Ok((DurableLog { connection, unfolded_bytes: 0 }, found, revision))
    }

    /// Makes all rows and the revision durable together, or none of them.
    pub(crate) fn commit(&mut self, rows: &[Row], revision: u64) -> Result<(), CommitError> {
        let written = self.try_commit(rows, revision);
        match written {
            Ok(()) => {
                let bytes =
                    rows.iter().map(|r| r.value.as_ref().map_or(0, Bytes::len) as u64 + PAGE_BYTES).sum::<u64>();
                self.unfolded_bytes += bytes;
                if self.unfolded_bytes >= CHECKPOINT_BYTES { self.fold() } else { Ok(()) }
            }
            Err(error) => Err(self.judge(error)),
        }
    }

    fn try_commit(&mut self, rows: &[Row], revision: u64) -> rusqlite::Result<()> {
        let transaction = self.connection.transaction()?;
        {
            let mut upsert = transaction.prepare_cached(
                "INSERT INTO objects(key, revision, value) VALUES(?1, ?2, ?3) \
                 ON CONFLICT(key) DO UPDATE SET revision = excluded.revision, value = excluded.value",
            )?;
            let mut delete = transaction.prepare_cached("DELETE FROM objects WHERE key = ?1")?;
            for row in rows {
                match &row.value {
                    Some(value) => upsert.execute((&row.key, as_signed(row.revision), value.as_ref()))?,
                    None => delete.execute((&row.key,))?,
                };
            }
            transaction
                .prepare_cached("UPDATE meta SET revision = ?1 WHERE one = 1")?
                .execute((as_signed(revision),))?;
        }
        transaction.commit()
    }

    fn judge(&self, error: rusqlite::Error) -> CommitError {
        let full = error.sqlite_error_code() == Some(ErrorCode::DiskFull);
        // After a clean rollback the connection is back in autocommit; anything else is an unknown state.
        if full && self.connection.is_autocommit() { CommitError::Full } else { CommitError::Broken(error.to_string()) }
    }

    /// Uses a quiet moment to fold the log into the table.
    pub(crate) fn rest(&mut self) -> Result<(), CommitError> {
        if self.unfolded_bytes == 0 { Ok(()) } else { self.fold() }
    }

    fn fold(&mut self) -> Result<(), CommitError> {
        let folded = self.connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", (), |_| Ok(()));
        self.unfolded_bytes = 0;
        match folded.map_err(|error| self.judge(error)) {
            // Without space for the table the log simply stays as it is; it is as durable as the table.
            Ok(()) | Err(CommitError::Full) => Ok(()),
            Err(broken @ CommitError::Broken(_)) => Err(broken),
        }
    }

    /// Gives the space of deleted objects back to the disk, step by step: each step needs a little space itself.
    pub(crate) fn shrink(&mut self) -> Result<(), CommitError> {
        for _ in 0..SHRINK_STEPS {
            let (before, after) = self.shrink_step().map_err(|error| self.judge(error))?;
            if after == 0 || after >= before {
                break;
            }
        }
        Ok(())
    }

    fn shrink_step(&self) -> rusqlite::Result<(i64, i64)> {
        let free_pages = || self.connection.pragma_query_value(None, "freelist_count", |row| row.get::<_, i64>(0));
        let before = free_pages()?;
        let mut vacuum = self.connection.prepare_cached("PRAGMA incremental_vacuum(256)")?;
        let mut pages = vacuum.query(())?;
        while pages.next()?.is_some() {}
        self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", (), |_| Ok(()))?;
        Ok((before, free_pages()?))
    }
}

fn as_signed(revision: u64) -> i64 {
    i64::try_from(revision).unwrap_or(i64::MAX)
}

// Looked at before SQLite is: it would take a file of another kind for an empty or damaged database and may write to it.
fn refuse_other_files(path: &Path) -> Result<(), Error> {
    use std::io::Read;
    let mut head = Vec::new();
    std::fs::File::open(path)
        .and_then(|file| file.take(16).read_to_end(&mut head))
        .map_err(|e| Error::file("read", path, e))?;
    if head.is_empty() || head == b"SQLite format 3\0" {
        return Ok(());
    }
    Err(Error::Damaged { path: path.to_owned(), reason: "it is not a SQLite database".to_owned() })
}

fn prepare(connection: &Connection, max_bytes: Option<u64>) -> rusqlite::Result<()> {
    // Exclusive before WAL: the index of the log is then kept in our memory and no second process can come in.
    connection.pragma_update(None, "locking_mode", "EXCLUSIVE")?;
    // Before the first table: it decides how the file is laid out.
    connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
    connection.query_row("PRAGMA journal_mode=WAL", (), |_| Ok(()))?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "wal_autocheckpoint", 0)?;
    connection.pragma_update(None, "cache_size", -8192)?;
    connection.pragma_update(None, "trusted_schema", "OFF")?;
    connection.pragma_update(None, "cell_size_check", "ON")?;
    if let Some(bytes) = max_bytes {
        connection.query_row(&format!("PRAGMA max_page_count={}", bytes.div_ceil(PAGE_BYTES)), (), |_| Ok(()))?;
    }
    Ok(())
}

/// Why the database cannot be opened. On a full disk nothing is wrong with it: nobody must be told to throw it away.
fn unusable(path: &Path, error: &rusqlite::Error) -> Error {
    if error.sqlite_error_code() == Some(ErrorCode::DiskFull) {
        let full = "the disk is full; free some space and try again";
        return Error::file("open", path, std::io::Error::new(std::io::ErrorKind::StorageFull, full));
    }
    Error::Damaged { path: path.to_owned(), reason: error.to_string() }
}

fn check_owner(connection: &Connection, path: &Path) -> Result<(), Error> {
    let read = |name: &str| {
        connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0)).map_err(|error| unusable(path, &error))
    };
    let (application, schema) = (read("application_id")?, read("user_version")?);
    match (application, schema) {
        (0, 0) | (APPLICATION, SCHEMA) => Ok(()),
        (APPLICATION, other) => Err(Error::Format {
            path: path.parent().map(PathBuf::from).unwrap_or_default(),
            found: other.to_string(),
            reads: crate::FORMAT,
        }),
        (_, _) => {
            Err(Error::Damaged { path: path.to_owned(), reason: "it is the database of another program".to_owned() })
        }
    }
}

fn create_tables(connection: &Connection) -> rusqlite::Result<u64> {
    connection.execute_batch(&format!(
        "BEGIN IMMEDIATE;
         CREATE TABLE IF NOT EXISTS objects(
             id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, revision INTEGER NOT NULL, value BLOB NOT NULL);
         CREATE TABLE IF NOT EXISTS meta(one INTEGER PRIMARY KEY CHECK(one = 1), revision INTEGER NOT NULL);
         INSERT OR IGNORE INTO meta VALUES(1, 0);
         PRAGMA application_id = {APPLICATION};
         PRAGMA user_version = {SCHEMA};
         COMMIT;"
    ))?;
    let revision: i64 = connection.query_row("SELECT revision FROM meta WHERE one = 1", (), |row| row.get(0))?;
    Ok(u64::try_from(revision).unwrap_or(0))
}

fn read_all(connection: &Connection) -> rusqlite::Result<Vec<Found>> {
    let mut statement = connection.prepare("SELECT key, value FROM objects")?;
    let rows = statement.query_map((), |row| Ok(Found { key: row.get(0)?, value: row.get(1)? }))?;
    rows.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(key: &str, revision: u64, value: Option<&[u8]>) -> Row {
        Row { key: key.into(), revision, value: value.map(Bytes::copy_from_slice) }
    }

    #[test]
    fn what_is_committed_is_found_again_and_the_revision_survives_deletes() {
        // reliability 84, 85
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s");
        let (mut log, found, revision) = DurableLog::open(&path, None).unwrap();
        assert!(found.is_empty() && revision == 0);
        log.commit(&[row("a", 1, Some(b"1")), row("b", 2, Some(b"2"))], 2).unwrap();
        log.commit(&[row("a", 3, Some(b"3")), row("b", 4, None)], 4).unwrap();
        drop(log);
        let (_, found, revision) = DurableLog::open(&path, None).unwrap();
        assert_eq!(revision, 4);
        assert_eq!(found.iter().map(|f| (f.key.as_str(), f.value.as_slice())).collect::<Vec<_>>(), [("a", &b"3"[..])]);
    }

    #[test]
    fn a_full_disk_is_told_apart_and_leaves_the_log_usable() {
        // reliability 101
        let dir = tempfile::tempdir().unwrap();
        let (mut log, _, _) = DurableLog::open(&dir.path().join("s"), Some(64 * PAGE_BYTES)).unwrap();
        log.commit(&[row("small", 1, Some(b"x"))], 1).unwrap();
        let huge = vec![7; 1 << 20];
        assert!(matches!(log.commit(&[row("huge", 2, Some(&huge))], 2), Err(CommitError::Full)));
        log.commit(&[row("small", 3, None), row("other", 4, Some(b"y"))], 4).unwrap();
    }

    #[test]
    fn deleted_objects_give_their_space_back() {
        // reliability 101
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s");
        let (mut log, _, _) = DurableLog::open(&path, None).unwrap();
        let huge = vec![7; 1 << 20];
        for number in 0..8 {
            log.commit(&[row(&format!("{number}"), number + 1, Some(&huge))], number + 1).unwrap();
        }
        for number in 0..7 {
            log.commit(&[row(&format!("{number}"), number + 9, None)], number + 9).unwrap();
        }
        log.rest().unwrap();
        let size = || std::fs::metadata(&path).unwrap().len();
        assert!(size() > 8 << 20);
        log.shrink().unwrap();
        assert!(size() < 2 << 20, "{}", size());
    }

    #[test]
    fn a_database_that_cannot_be_opened_for_want_of_room_is_not_called_damaged() {
        let dir = tempfile::tempdir().unwrap();
        let Err(error) = DurableLog::open(&dir.path().join("s"), Some(PAGE_BYTES)) else { panic!("it has no room") };
        assert!(error.to_string().ends_with("the disk is full; free some space and try again"), "{error}");
    }

    #[test]
    fn rubbish_and_other_databases_are_refused_untouched() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s");
        std::fs::write(&path, b"this is no database at all").unwrap();
        assert!(matches!(DurableLog::open(&path, None), Err(Error::Damaged { .. })));
        assert_eq!(std::fs::read(&path).unwrap(), b"this is no database at all");
    }
}
