//! The server's own record of who asked for what, and when: counts are exact, and nobody has to watch.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde_json::Value;

/// One line for each request of these users; none for the benchmark's own.
pub fn policy(users: &[&str]) -> String {
    let users = users.join(", ");
    format!(
        "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules:\n\
         - level: Metadata\n  users: [{users}]\n- level: None\n"
    )
}

/// One request, as the server saw it.
#[derive(Clone, Debug)]
pub struct Asked {
    pub user: String,
    pub verb: String,
    pub resource: String,
    pub subresource: String,
    pub name: String,
    pub code: u64,
    /// Seconds of the day: when it came, and when it was answered.
    pub came: f64,
    pub answered: f64,
}

impl Asked {
    fn read(line: &str) -> Option<Asked> {
        let json: Value = serde_json::from_str(line).ok()?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_string();
        let about = &json["objectRef"];
        let verb = match text(&json["verb"]) {
            // It asks for the version of a kind: a read, where other lists come once a process.
            verb if verb == "list" && is_of_one(&text(&json["requestURI"])) => "look".into(),
            verb => verb,
        };
        Some(Asked {
            user: text(&json["user"]["username"]),
            verb,
            resource: text(&about["resource"]),
            subresource: text(&about["subresource"]),
            name: text(&about["name"]),
            code: json["responseStatus"]["code"].as_u64().unwrap_or(0),
            came: of_day(json["requestReceivedTimestamp"].as_str()?)?,
            answered: of_day(json["stageTimestamp"].as_str()?)?,
        })
    }

    /// It changes something other than the log of events.
    pub fn is_write(&self) -> bool {
        self.resource != "events" && matches!(self.verb.as_str(), "create" | "update" | "patch" | "delete")
    }

    /// It asks for one object, or for the version of a kind.
    pub fn is_read(&self) -> bool {
        matches!(self.verb.as_str(), "get" | "look")
    }

    /// It was done.
    pub fn is_done(&self) -> bool {
        (200..300).contains(&self.code)
    }

    /// What it is, for counting.
    pub fn sort(&self) -> String {
        let slash = if self.subresource.is_empty() { "" } else { "/" };
        format!("{} {}{slash}{}", self.verb, self.resource, self.subresource)
    }
}

/// A list of one object at most.
fn is_of_one(uri: &str) -> bool {
    uri.split(['?', '&']).any(|part| part == "limit=1")
}

/// The seconds of the day in `2026-01-01T12:34:56.789012Z`.
fn of_day(time: &str) -> Option<f64> {
    let (_, clock) = time.trim_end_matches('Z').split_once('T')?;
    let mut parts = clock.split(':');
    let hours: f64 = parts.next()?.parse().ok()?;
    let minutes: f64 = parts.next()?.parse().ok()?;
    let seconds: f64 = parts.next()?.parse().ok()?;
    Some(hours * 3600.0 + minutes * 60.0 + seconds)
}

/// A moment as the seconds of its day.
pub fn moment(time: SystemTime) -> f64 {
    const DAY: f64 = 86_400.0;
    time.duration_since(SystemTime::UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64() % DAY)
}

/// The file, and how far it has been read.
pub struct AuditLog {
    path: PathBuf,
    at: u64,
    rest: String,
}

impl AuditLog {
    /// A reader at the beginning of the file.
    pub fn new(path: &Path) -> AuditLog {
        AuditLog { path: path.into(), at: 0, rest: String::new() }
    }

    /// What was asked since the last time.
    pub fn news(&mut self) -> io::Result<Vec<Asked>> {
        let mut file = match File::open(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            other => other?,
        };
        file.seek(SeekFrom::Start(self.at))?;
        let mut bytes = Vec::new();
        self.at += file.read_to_end(&mut bytes)? as u64;
        self.rest.push_str(&String::from_utf8_lossy(&bytes));
        let end = self.rest.rfind('\n').map_or(0, |end| end + 1);
        let whole: String = self.rest.drain(..end).collect();
        Ok(whole.lines().filter_map(Asked::read).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_as_the_server_writes_it() {
        let line = r#"{"kind":"Event","stage":"ResponseComplete","verb":"patch","user":{"username":"ours"},
            "objectRef":{"resource":"volumeattachments","name":"va","subresource":"status"},
            "responseStatus":{"code":200},"requestReceivedTimestamp":"2026-01-01T00:01:02.500000Z",
            "stageTimestamp":"2026-01-01T01:00:00.250000Z"}"#;
        let asked = Asked::read(line).unwrap();
        assert_eq!(asked.sort(), "patch volumeattachments/status");
        assert!(asked.is_write() && asked.is_done() && asked.user == "ours");
        assert_eq!((asked.came, asked.answered), (62.5, 3600.25));
    }

    #[test]
    fn a_list_of_one_is_a_look() {
        let line = |limit: u32| {
            format!(
                r#"{{"verb":"list","objectRef":{{"resource":"pods"}},"requestURI":"/api/v1/pods?limit={limit}",
                "requestReceivedTimestamp":"T0:0:1","stageTimestamp":"T0:0:2"}}"#
            )
        };
        let read = |limit| Asked::read(&line(limit)).unwrap();
        assert_eq!((read(1).sort().as_str(), read(1).is_read()), ("look pods", true));
        assert_eq!((read(10).sort().as_str(), read(10).is_read()), ("list pods", false));
    }

    #[test]
    fn a_line_that_is_not_yet_whole_is_read_later() {
        let folder = prove_cluster::Scratch::new("audit").unwrap();
        let path = folder.path().join("log");
        let mut log = AuditLog::new(&path);
        assert!(log.news().unwrap().is_empty());
        let line = "{\"verb\":\"get\",\"requestReceivedTimestamp\":\"T0:0:1\",\"stageTimestamp\":\"T0:0:2\"}\n";
        std::fs::write(&path, &line[..20]).unwrap();
        assert!(log.news().unwrap().is_empty());
        std::fs::write(&path, line).unwrap();
        assert_eq!(log.news().unwrap().len(), 1);
    }
}
