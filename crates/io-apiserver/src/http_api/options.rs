//! The query of a request, read once into what it means.

use axum::extract::Query;
use http::Uri;

use crate::refusal::Refusal;

/// Everything a query may ask; what is not there stays at its default.
#[derive(Clone, Debug, Default)]
pub(crate) struct Options {
    pub limit: usize,
    pub continue_token: String,
    pub resource_version: String,
    pub resource_version_match: String,
    pub watch: bool,
    pub bookmarks: bool,
    pub send_initial_events: Option<bool>,
    pub timeout_seconds: Option<u64>,
    pub label_selector: String,
    pub field_selector: String,
    pub dry_run: bool,
    pub field_validation: String,
    pub field_manager: String,
    pub force: bool,
    pub propagation_policy: Option<String>,
    pub grace_period_seconds: Option<i64>,
    pub include_object: String,
    pub container: Option<String>,
    pub follow: bool,
    pub previous: bool,
    pub timestamps: bool,
    pub tail_lines: Option<u64>,
    pub limit_bytes: Option<u64>,
    pub since_seconds: Option<u64>,
    pub since_time: String,
    pub command: Vec<String>,
    pub stdin: bool,
    pub tty: bool,
}

impl Options {
    pub(crate) fn read(uri: &Uri) -> Result<Options, Refusal> {
        let mut options = Options::default();
        if uri.query().is_none_or(str::is_empty) {
            return Ok(options);
        }
        let Query(pairs) = Query::<Vec<(String, String)>>::try_from_uri(uri)
            .map_err(|_| Refusal::bad_request("the query of the URL cannot be read"))?;
        for (key, value) in pairs {
            options.take(&key, value)?;
        }
        Ok(options)
    }

    fn take(&mut self, key: &str, value: String) -> Result<(), Refusal> {
        match key {
            "limit" => self.limit = number(key, &value)?.unwrap_or(0),
            "continue" => self.continue_token = value,
            "resourceVersion" => self.resource_version = value,
            "resourceVersionMatch" => self.resource_version_match = value,
            "watch" => self.watch = truth(key, &value)?,
            "allowWatchBookmarks" => self.bookmarks = truth(key, &value)?,
            "sendInitialEvents" => self.send_initial_events = Some(truth(key, &value)?),
            "timeoutSeconds" => self.timeout_seconds = number(key, &value)?,
            "labelSelector" => self.label_selector = value,
            "fieldSelector" => self.field_selector = value,
            "dryRun" => self.dry_run = dry_run(&value)?,
            "fieldValidation" => self.field_validation = value,
            "fieldManager" => self.field_manager = value,
            "force" => self.force = truth(key, &value)?,
            "propagationPolicy" => self.propagation_policy = Some(value),
            "gracePeriodSeconds" => self.grace_period_seconds = number(key, &value)?,
            "includeObject" => self.include_object = value,
            "container" => self.container = Some(value).filter(|v| !v.is_empty()),
            "follow" => self.follow = truth(key, &value)?,
            "previous" => self.previous = truth(key, &value)?,
            "timestamps" => self.timestamps = truth(key, &value)?,
            "tailLines" => self.tail_lines = number(key, &value)?,
            "limitBytes" => self.limit_bytes = number(key, &value)?,
            "sinceSeconds" => self.since_seconds = number(key, &value)?,
            "sinceTime" => self.since_time = value,
            "command" => self.command.push(value),
            "stdin" => self.stdin = truth(key, &value)?,
            "tty" => self.tty = truth(key, &value)?,
            // Servers ignore what they do not know; clients send `pretty`, `timeout` and newer options freely.
            _ => {}
        }
        Ok(())
    }

    /// The asked-for version: none, or a number; `0` means "any you have".
    pub(crate) fn version(&self) -> Result<Option<u64>, Refusal> {
        if self.resource_version.is_empty() {
            return Ok(None);
        }
        self.resource_version
            .parse()
            .map(Some)
            .map_err(|_| Refusal::bad_request(format!("resourceVersion \"{}\" is no number", self.resource_version)))
    }
}

/// Reads the value of `dryRun`.
pub(crate) fn dry_run(value: &str) -> Result<bool, Refusal> {
    match value {
        "" => Ok(false),
        "All" => Ok(true),
        other => Err(Refusal::bad_request(format!("dryRun must be \"All\", not \"{other}\""))),
    }
}

fn truth(key: &str, value: &str) -> Result<bool, Refusal> {
    match value {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
        "" | "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
        other => Err(Refusal::bad_request(format!("{key} must be true or false, not \"{other}\""))),
    }
}

fn number<T: std::str::FromStr>(key: &str, value: &str) -> Result<Option<T>, Refusal> {
    if value.is_empty() {
        return Ok(None);
    }
    value.parse().map(Some).map_err(|_| Refusal::bad_request(format!("{key} must be a whole number, not \"{value}\"")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(query: &str) -> Result<Options, Refusal> {
        Options::read(&format!("/x?{query}").parse().unwrap())
    }

    #[test]
    fn a_query_is_read() {
        let options = read("watch=1&allowWatchBookmarks=true&labelSelector=a%3Db&limit=5&pretty=true").unwrap();
        assert!(options.watch && options.bookmarks);
        assert_eq!((options.label_selector.as_str(), options.limit), ("a=b", 5));
    }

    #[test]
    fn nonsense_is_400() {
        for query in ["watch=maybe", "limit=-1", "limit=many", "dryRun=Some", "timeoutSeconds=1e9"] {
            assert_eq!(read(query).unwrap_err().code(), 400, "{query}");
        }
        assert_eq!(read("resourceVersion=abc").unwrap().version().unwrap_err().code(), 400);
    }
}
