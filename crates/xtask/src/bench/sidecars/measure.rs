//! One operation on all volumes, measured: how long it took, what was asked for, and the processor time it cost.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::time::{Duration, Instant};

use api::{Kind, Object};

use super::audit::{Asked, moment};
use super::contender::{Contender, Operation, Running};
use super::nothing::Calls;
use super::objects::list;
use super::round::Size;
use super::stand::Stand;
use super::usage::Spent;

/// Nothing measured takes longer than this.
const PATIENCE: Duration = Duration::from_secs(180);
/// How often the audit log is read.
const GLANCE: Duration = Duration::from_millis(50);
/// Who has asked for nothing this long has finished, also what was not waited for.
const QUIET: Duration = Duration::from_millis(400);
/// Events trickle out one by one after everything is done. They are waited for this long: cut off early, their number, and
/// the processor time they take, would be a matter of chance.
const LONGEST_QUIET: Duration = Duration::from_secs(20);

/// What one operation on all volumes cost.
pub(crate) struct Measured {
    /// Volumes a second, from the first request or call for one of them to the last write that the operation takes.
    pub rate: f64,
    /// Requests a volume, by sort; those that happen once a process are not in it.
    pub requests: BTreeMap<String, f64>,
    /// Writes a volume, without events.
    pub writes: f64,
    pub events: f64,
    pub reads: f64,
    pub calls: f64,
    /// Milliseconds of processor time a volume.
    pub spent: Spent,
    /// Milliseconds the server took for a write, in the middle.
    pub answer: f64,
    /// Writes that were under way at once, on average: how busy the server was kept.
    pub at_once: f64,
}

/// Starts who is to do an operation that was prepared, and waits until it is done.
pub async fn measure(
    stand: &mut Stand,
    contender: Contender,
    operation: Operation,
    size: &Size,
) -> io::Result<Measured> {
    let volumes = size.volumes;
    stand.audit.news()?;
    stand.seen.take();
    let before = stand.spent(None)?;
    let mut running = stand.run(contender, operation)?;
    let (mut asked, after) = follow(stand, &mut running, operation, size).await.map_err(|error| {
        let who = format!("{} did not {} all volumes", contender.name(), operation.name());
        io::Error::other(format!("{who}: {error}; it said last:\n{}", running.said()))
    })?;
    running.stop()?;
    asked.extend(stand.audit.news()?);
    Ok(told(operation, volumes, &asked, &stand.seen.take(), after.since(before, volumes)))
}

/// Reads along until nothing is left to do. The server is asked for its objects only when the program has fallen silent,
/// and the processor time is taken before: looking costs time too.
async fn follow(
    stand: &mut Stand,
    running: &mut Running,
    operation: Operation,
    size: &Size,
) -> io::Result<(Vec<Asked>, Spent)> {
    let (volumes, longest) = (size.volumes, if size.waits { LONGEST_QUIET } else { QUIET });
    let (mut asked, mut progress) = (Vec::new(), Progress::default());
    let began = Instant::now();
    let (mut heard, mut looked) = (began, began);
    while began.elapsed() < PATIENCE {
        tokio::time::sleep(GLANCE).await;
        let news = stand.audit.news()?;
        if !news.is_empty() {
            heard = Instant::now();
        }
        progress.add(operation, &news);
        asked.extend(news);
        running.check()?;
        if progress.volumes() < volumes {
            looked = Instant::now();
        } else if heard.elapsed().min(looked.elapsed()) >= QUIET || looked.elapsed() >= longest {
            let spent = stand.spent(Some(running))?;
            if is_done(stand, operation, volumes).await? {
                return Ok((asked, spent));
            }
            looked = Instant::now();
        }
    }
    Err(io::Error::other(format!("{} of {volumes} after {} s", progress.volumes(), PATIENCE.as_secs())))
}

/// Which volumes something was written for: cheap to know, unlike the state of the objects.
#[derive(Default)]
struct Progress {
    named: BTreeSet<String>,
    created: usize,
}

impl Progress {
    fn add(&mut self, operation: Operation, news: &[Asked]) {
        for one in news.iter().filter(|one| one.is_write() && one.is_done() && one.resource == resource(operation)) {
            if one.verb == "create" {
                // A created object's name is in no path.
                self.created += 1;
            } else if operation != Operation::Provision {
                self.named.insert(one.name.clone());
            }
        }
    }

    fn volumes(&self) -> usize {
        self.named.len().max(self.created)
    }
}

async fn is_done(stand: &Stand, operation: Operation, volumes: usize) -> io::Result<bool> {
    let all = list(&stand.kube, kind(operation)).await?;
    Ok(match operation {
        Operation::Provision => all.len() >= volumes,
        Operation::Detach | Operation::Delete => all.is_empty(),
        Operation::Attach => all.iter().all(|object| match object {
            Object::VolumeAttachment(attachment) => attachment.status.attached,
            _ => false,
        }),
        Operation::Resize => all.iter().all(|object| match object {
            Object::PersistentVolumeClaim(claim) => {
                claim.status.capacity.get("storage").is_some_and(|size| size.bytes() == Ok(2 << 30))
            }
            _ => false,
        }),
    })
}

fn told(operation: Operation, volumes: usize, asked: &[Asked], calls: &Calls, spent: Spent) -> Measured {
    let writes: Vec<&Asked> = asked.iter().filter(|one| one.is_write()).collect();
    let took = seconds(operation, asked, calls);
    let each = |count: usize| count as f64 / volumes as f64;
    let mut answers: Vec<f64> = writes.iter().map(|one| (one.answered - one.came) * 1000.0).collect();
    answers.sort_by(f64::total_cmp);
    let mut requests = BTreeMap::new();
    for one in asked.iter().filter(|one| !matches!(one.verb.as_str(), "list" | "watch")) {
        *requests.entry(one.sort()).or_default() += 1.0 / volumes as f64;
    }
    Measured {
        rate: volumes as f64 / took,
        requests,
        writes: each(writes.len()),
        events: each(asked.iter().filter(|one| one.resource == "events").count()),
        reads: each(asked.iter().filter(|one| one.is_read()).count()),
        calls: calls.by_name.values().sum::<u64>() as f64 / volumes as f64,
        spent,
        answer: answers.get(answers.len() / 2).copied().unwrap_or(f64::NAN),
        at_once: answers.iter().sum::<f64>() / 1000.0 / took,
    }
}

/// From the first sign of work to the answer to the last write. A program that reads an object again before it goes on works
/// from its first read: counted from its first write, the reads of half of the volumes would be free.
fn seconds(operation: Operation, asked: &[Asked], calls: &Calls) -> f64 {
    let about = |one: &&Asked| one.resource == resource(operation);
    let work = asked.iter().filter(|one| one.is_write() || (one.verb == "get" && about(one)));
    let first_request = work.map(|one| one.came).fold(f64::INFINITY, f64::min);
    let first_call = calls.first.map_or(f64::INFINITY, moment);
    let done = asked.iter().filter(|one| one.is_write() && one.is_done() && about(one));
    let last = if operation == Operation::Attach {
        // The first time counts: csi-attacher publishes and says so again where its cache is behind its own write.
        let mut told = BTreeMap::new();
        for one in done.filter(|one| one.subresource == "status") {
            let at = told.entry(&one.name).or_insert(one.answered);
            *at = one.answered.min(*at);
        }
        told.into_values().fold(f64::NEG_INFINITY, f64::max)
    } else {
        done.map(|one| one.answered).fold(f64::NEG_INFINITY, f64::max)
    };
    (last - first_request.min(first_call)).rem_euclid(86_400.0)
}

/// What the last write of an operation is to.
fn kind(operation: Operation) -> Kind {
    match operation {
        Operation::Provision | Operation::Delete => Kind::PersistentVolume,
        Operation::Attach | Operation::Detach => Kind::VolumeAttachment,
        Operation::Resize => Kind::PersistentVolumeClaim,
    }
}

fn resource(operation: Operation) -> &'static str {
    kind(operation).plural()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(verb: &str, resource: &str, name: &str, came: f64, answered: f64) -> Asked {
        let text = String::from;
        let code = if verb == "create" { 201 } else { 200 };
        Asked {
            user: text("ours"),
            verb: text(verb),
            resource: text(resource),
            subresource: text(""),
            name: text(name),
            code,
            came,
            answered,
        }
    }

    #[test]
    fn the_clock_runs_from_the_first_read_of_an_object_to_the_answer_to_the_last_write() {
        let log = [
            asked("list", "volumeattachments", "", 0.0, 0.5),
            asked("get", "nodes", "n", 0.5, 0.6),
            asked("get", "volumeattachments", "a", 1.0, 1.1),
            asked("patch", "volumeattachments", "a", 2.0, 3.0),
            asked("create", "events", "", 3.0, 9.0),
        ];
        let told = told(Operation::Detach, 1, &log, &Calls::default(), Spent::default());
        assert_eq!((told.rate, told.writes, told.reads, told.events), (0.5, 1.0, 2.0, 1.0));
        assert_eq!(told.at_once, 0.5);
    }

    #[test]
    fn a_volume_is_attached_when_it_is_told_so_first() {
        let status = |name, came, answered| {
            let subresource = "status".into();
            Asked { subresource, ..asked("patch", "volumeattachments", name, came, answered) }
        };
        let log = [
            asked("patch", "persistentvolumes", "pv", 1.0, 1.5),
            asked("patch", "volumeattachments", "a", 1.5, 2.0),
            status("a", 2.0, 3.0),
            status("b", 2.0, 5.0),
            status("a", 8.0, 9.0),
        ];
        let told = told(Operation::Attach, 2, &log, &Calls::default(), Spent::default());
        assert_eq!((told.rate, told.writes), (0.5, 2.5));
    }

    #[test]
    fn a_run_over_midnight_has_a_length() {
        let log = [asked("create", "persistentvolumes", "", 86_399.0, 1.0)];
        assert_eq!(seconds(Operation::Provision, &log, &Calls::default()), 2.0);
    }

    #[test]
    fn volumes_are_counted_once_however_often_they_are_written() {
        let mut progress = Progress::default();
        let write = |name| asked("patch", "persistentvolumes", name, 0.0, 0.0);
        progress.add(Operation::Delete, &[write("a"), write("a"), write("b")]);
        assert_eq!(progress.volumes(), 2);
        progress.add(Operation::Provision, &[write("c")]);
        assert_eq!(progress.volumes(), 2);
    }
}
