//! Golden scripts: scenarios as text.
//!
//! A script is a list of blocks: commands, `---`, what they print, and an empty line. Lines that begin with `#` are for
//! readers. `LONGSHORE_RECORD=1 cargo test -p rules-binding --lib scripts` writes what is printed now; read the
//! difference like code. The commands:
//!
//! | command | what happens |
//! |---|---|
//! | `claim data class=fast size=1Gi` | an object is created ([`Lab::make`](crate::Lab::make)); any kind |
//! | `patch claim data size=2Gi` | fields are merged into it |
//! | `place app on a` | a pod gets its node |
//! | `delete claim data` | its deletion is asked for; `delete pod app 30` gives it so many seconds |
//! | `run` | keys are looked at until none is due now; what is decided and done is printed |
//! | `step` | the same for one action |
//! | `begin` | the next action is begun and stays under way |
//! | `finish` | what is under way happens, and the rules hear of it |
//! | `crash` | the process dies and starts again; what was under way may still arrive |
//! | `forget` | memory is erased |
//! | `lose answer of X`, `lose request of X`, `refuse X`, `late X` | what becomes of the next action named X |
//! | `driver fails CreateVolume with Internal` | what the driver answers next |
//! | `land` | late effects arrive |
//! | `pass 5s` | time passes (`ms`, `s`, `m`) |
//! | `stale claim`, `sync` | the watch of a kind delivers nothing; every watch catches up |
//! | `show claim data` | what is stored; with paths, only these: `show claim data status.phase` |
//! | `explain claim data` | what the rules say about it |
//! | `show driver`, `show machine` | what is there at the driver; files, directories and processes |

use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use api::Value;
use control::{Action as _, Decision, Effect, Next, Outcome, Rules, Verdict};
use csi::{Code, Method};

use crate::{Fault, Lab, ScriptedDriver, ScriptedMachine, golden, print, short};

/// A look at more keys than this in one `run` is a loop.
const MOST_LOOKS: usize = 300;

/// Whoever a script plays with: the rules in their laboratory, a driver and a machine.
pub struct Scene<R: Rules> {
    pub lab: Lab<R>,
    pub driver: ScriptedDriver,
    pub machine: ScriptedMachine,
    /// What the rules hear of the machine after something was done to it.
    pub noticed: fn(&mut Scene<R>),
    /// What the process knows of its surroundings when it starts again.
    pub reborn: fn(&Scene<R>) -> R::Local,
    /// The commands of these rules alone; `None` if it is none of them.
    pub command: fn(&mut Scene<R>, &[&str]) -> Option<String>,
    faults: Vec<(String, Fault)>,
    /// The last reason each key rested for: it is printed when it changes.
    rested: BTreeMap<String, String>,
    under_way: VecDeque<(R::Key, Effect)>,
}

impl<R: Rules> Scene<R> {
    /// Rules that need nothing but the API and a driver.
    pub fn new(lab: Lab<R>) -> Scene<R> {
        Scene {
            lab,
            driver: ScriptedDriver::default(),
            machine: ScriptedMachine::default(),
            noticed: |_| (),
            reborn: |scene| scene.lab.local().clone(),
            command: |_, _| None,
            faults: Vec::new(),
            rested: BTreeMap::new(),
            under_way: VecDeque::new(),
        }
    }
}

/// Plays every script in `src/tests/scripts` of a crate, or in a folder of it, each on a scene of its own.
pub fn play_scripts<R: Rules>(manifest: &str, folder: &str, scene: impl Fn() -> Scene<R>) {
    let folder = Path::new(manifest).join("src/tests/scripts").join(folder);
    let (mut played, mut problems) = (0, Vec::new());
    for path in golden::files(&folder) {
        let text = std::fs::read_to_string(&path).unwrap();
        let mut at = String::new();
        let result = catch_unwind(AssertUnwindSafe(|| play(&text, scene(), &mut at)));
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        problems.extend(match result {
            Err(_) => Some(format!("{name}: {at} panics")),
            Ok(Err(error)) => Some(format!("{name}: {at}: {error}")),
            Ok(Ok(actual)) => golden::check(&path, &actual).err(),
        });
        played += 1;
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    assert!(played > 0, "{} has no scripts", folder.display());
}

/// The script with what it prints now. `at` is where it is.
fn play<R: Rules>(text: &str, mut scene: Scene<R>, at: &mut String) -> Result<String, String> {
    let mut played = String::new();
    for block in text.split("\n\n").map(str::trim_end).filter(|block| !block.is_empty()) {
        let lines: Vec<&str> = block.lines().take_while(|line| *line != "---").collect();
        let mut printed = Vec::new();
        for command in lines.iter().filter(|line| !line.starts_with('#')) {
            *at = (*command).to_string();
            printed.extend(scene.perform_command(&short::words(command))?);
        }
        played += &lines.join("\n");
        if lines.iter().any(|line| !line.starts_with('#')) {
            let printed = if printed.is_empty() { "ok".into() } else { print::cut_hashes(&printed.join("\n")) };
            played += &format!("\n---\n{printed}");
        }
        played += "\n\n";
    }
    match (&scene.faults[..], scene.driver.left()) {
        ([], 0) => Ok(format!("{}\n", played.trim_end())),
        (left, answers) => Err(format!("at the end {left:?} and {answers} answers of the driver are left over")),
    }
}

impl<R: Rules> Scene<R> {
    fn perform_command(&mut self, words: &[String]) -> Result<Vec<String>, String> {
        let mut printed = Vec::new();
        let line: Vec<&str> = words.iter().map(String::as_str).collect();
        match &line[..] {
            ["run"] => self.run(usize::MAX, true, &mut printed)?,
            ["step"] => self.run(1, true, &mut printed)?,
            ["begin"] => self.run(1, false, &mut printed)?,
            ["finish"] => self.finish(&mut printed),
            ["crash"] => self.crash(),
            ["forget"] => self.lab.forget(),
            ["lose", "answer", "of", action] => self.faults.push(((*action).into(), Fault::AnswerLost)),
            ["lose", "request", "of", action] => self.faults.push(((*action).into(), Fault::RequestLost)),
            ["refuse", action] => self.faults.push(((*action).into(), Fault::Refused)),
            ["late", action] => self.faults.push(((*action).into(), Fault::Late)),
            ["driver", "fails", method, "with", code] => {
                self.driver.fail_next(self::method(method)?, self::code(code)?)
            }
            ["land"] => self.land_late(&mut printed),
            ["pass", time] => self.lab.pass(millis(time)?),
            ["stale", kind] => drop(self.lab.frozen.insert(short::kind(kind).ok_or(format!("{kind} is no kind"))?)),
            ["sync"] => {
                self.lab.frozen.clear();
                self.lab.sync();
            }
            ["show", "driver"] => printed.extend(self.driver.truth.iter().cloned()),
            ["show", "machine"] => printed.extend(self.show_machine()),
            ["show", ..] => printed.push(self.show(&words[1..])?),
            ["explain", ..] => printed.extend(self.explain(&words[1..])?),
            ["patch", ..] => self.lab.try_change(&words[1..])?,
            ["place", pod, "on", node] => self.lab.place(pod, node),
            ["delete", kind, name, grace @ ..] => {
                let kind = short::kind(kind).ok_or(format!("{kind} is no kind"))?;
                let grace = grace.first().map_or(Ok(0), |grace| grace.parse::<u32>()).map_err(|e| e.to_string())?;
                self.lab.delete_within(kind, name, grace);
            }
            _ => match (self.command)(self, &line) {
                Some(text) => printed.extend((!text.is_empty()).then_some(text)),
                None => self.lab.try_make(words)?,
            },
        }
        Ok(printed)
    }

    /// Looks at the keys that are due, until so many actions were begun.
    fn run(&mut self, actions: usize, perform: bool, printed: &mut Vec<String>) -> Result<(), String> {
        let mut begun = 0;
        for _ in 0..MOST_LOOKS {
            match self.lab.engine.next(self.lab.now, &self.lab.cache) {
                Next::Begin { key, effect } => {
                    printed.push(self.begun(&key, &effect));
                    self.under_way.push_back((R::Key::clone(&key), effect));
                    if perform {
                        self.finish(printed);
                    }
                    begun += 1;
                    if begun == actions {
                        return Ok(());
                    }
                }
                Next::Rested { key, why } => {
                    self.say_once(&key, format!("rests {}", print::reason(&why.named())), printed);
                }
                Next::Waiting { key, why } => {
                    let pause = match self.lab.decide(&key) {
                        Decision::Wait(until, _) => until.0.saturating_sub(self.lab.now.0),
                        Decision::Rest(_) | Decision::Do(..) | Decision::Either(..) => 0,
                    };
                    self.say_once(&key, format!("waits {pause}ms {}", print::reason(&why)), printed);
                }
                Next::Idle(_) => return Ok(()),
            }
        }
        Err("it does not come to rest".into())
    }

    fn begun(&mut self, key: &R::Key, effect: &Effect) -> String {
        let doing = self.lab.engine.doing(key).unwrap();
        let (action, why) = (doing.action.clone(), print::reason(&doing.why));
        self.lab.begun(&action, effect);
        self.rested.remove(&key.to_string());
        format!("{key}: {} {why}", action.name())
    }

    fn say_once(&mut self, key: &R::Key, says: String, printed: &mut Vec<String>) {
        if self.rested.get(&key.to_string()) != Some(&says) {
            printed.push(format!("{key}: {says}"));
            self.rested.insert(key.to_string(), says);
        }
    }

    /// What is under way happens, or what a fault makes of it.
    fn finish(&mut self, printed: &mut Vec<String>) {
        while let Some((key, effect)) = self.under_way.pop_front() {
            let Some(name) = self.lab.engine.doing(&key).map(|doing| doing.action.name()) else { continue };
            let fault = self.faults.iter().position(|(action, _)| action == name);
            let outcome = match fault.map(|which| self.faults.remove(which).1) {
                None => self.happen(&effect),
                Some(fault) => {
                    if fault == Fault::AnswerLost {
                        self.happen(&effect);
                    }
                    self.lab.fail(fault, &effect)
                }
            };
            printed.push(format!("    {} => {}", print::effect(&effect), print::outcome(&outcome)));
            self.lab.finish(&key, &outcome);
        }
    }

    fn happen(&mut self, effect: &Effect) -> Outcome {
        if let Some(outcome) = self.lab.api(effect) {
            return outcome;
        }
        let outcome = match effect {
            Effect::Call { call, .. } => self.driver.answer(call),
            Effect::Host(op) => {
                let truth = &self.driver.truth;
                let mounted = |path: &str| truth.iter().any(|fact| fact.ends_with(&format!(" at {path}")));
                self.machine.perform(self.lab.now.0, op, mounted)
            }
            Effect::Read(_) | Effect::List { .. } | Effect::Token(_) | Effect::Write(_) | Effect::Nothing => {
                panic!("{effect:?} is the API's")
            }
        };
        (self.noticed)(self);
        outcome
    }

    fn crash(&mut self) {
        let local = (self.reborn)(self);
        self.under_way.clear();
        self.rested.clear();
        self.lab.restart(local);
    }

    fn land_late(&mut self, printed: &mut Vec<String>) {
        for effect in std::mem::take(&mut self.lab.late) {
            let outcome = self.happen(&effect);
            printed.push(format!("late: {} => {}", print::effect(&effect), print::outcome(&outcome)));
        }
    }

    fn show(&self, words: &[String]) -> Result<String, String> {
        let (kind, name, paths) = short::subject(words)?;
        let Some(object) = self.lab.get(kind, name) else { return Ok(format!("{} {name} is gone", words[0])) };
        if paths.is_empty() {
            return Ok(format!("{} {name}\n{}", words[0], print::stored(&object)));
        }
        let value = |path: &String| path.split('.').fold(&object, |at, step| &at[step]).to_string();
        let shown: Vec<String> = paths.iter().map(|path| format!("{path}={}", value(path))).collect();
        Ok(format!("{} {name}: {}", words[0], shown.join(" ")))
    }

    fn show_machine(&self) -> Vec<String> {
        let ScriptedMachine { files, dirs, processes, .. } = &self.machine;
        let files =
            files.iter().map(|(path, bytes)| format!("file {path} {}", String::from_utf8_lossy(bytes).trim_end()));
        let dirs = dirs.iter().map(|path| format!("directory {path}"));
        let processes = processes.iter().map(|(name, (state, _))| format!("process {name} {state:?}"));
        files.chain(dirs).chain(processes).collect()
    }

    fn explain(&self, words: &[String]) -> Result<Vec<String>, String> {
        let (kind, name, _) = short::subject(words)?;
        let object = self.lab.object(&self.lab.target(kind, name)).ok_or("it does not exist")?;
        let explained = self.lab.engine.explain(self.lab.now, &object, &self.lab.cache);
        let lines = explained.iter().map(|one| {
            let verdict = match one.verdict {
                Verdict::Rests => "rests".to_string(),
                Verdict::Waits(pause) => format!("waits {pause}ms"),
                Verdict::WillDo(action) => format!("will do {action}"),
                Verdict::Doing => "is under way".to_string(),
            };
            format!("{}: {verdict} {}", one.key, print::reason(&one.why))
        });
        Ok(lines.collect())
    }

    /// A field of a stored object as text, for the commands of a crate.
    pub fn field(&self, kind: &str, name: &str, pointer: &str) -> Option<Value> {
        self.lab.get(short::kind(kind)?, name)?.pointer(pointer).cloned()
    }
}

fn method(name: &str) -> Result<Method, String> {
    Method::ALL.iter().copied().find(|method| method.name() == name).ok_or(format!("{name} is no method"))
}

fn code(name: &str) -> Result<Code, String> {
    Code::ALL.into_iter().find(|code| format!("{code:?}") == name).ok_or(format!("{name} is no code"))
}

/// A time such as `500ms`, `5s` or `2m`.
fn millis(text: &str) -> Result<u64, String> {
    let end = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let unit = match &text[end..] {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        other => return Err(format!("{other} is no unit of time")),
    };
    Ok(unit * text[..end].parse::<u64>().map_err(|error| error.to_string())?)
}
