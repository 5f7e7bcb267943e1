use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use csi::{Call, Code, DriverCapability, Response, Status};

use crate::ask::Ask;
use crate::case::fail;
use crate::ledger::Ledger;
use crate::{Case, CaseResult, Suite};

/// A driver may answer ABORTED while an earlier call is still being finished; so often is it asked again.
const ASKED_AGAIN: u32 = 40;

/// What a case works with: typed calls, names and paths of its own, and a memory of all it created.
pub struct CaseContext {
    /// What the run shares.
    pub suite: Arc<Suite>,
    /// What was created.
    pub(crate) ledger: Ledger,
    number: usize,
    counter: AtomicUsize,
    warnings: Mutex<Vec<String>>,
    canaries: Mutex<Vec<PathBuf>>,
}

impl CaseContext {
    /// For one case of a run.
    pub fn new(suite: Arc<Suite>, number: usize, _case: &Case) -> CaseContext {
        CaseContext {
            suite,
            ledger: Ledger::default(),
            number,
            counter: AtomicUsize::new(0),
            warnings: Mutex::default(),
            canaries: Mutex::default(),
        }
    }

    /// A name nobody else has.
    pub fn name(&self, what: &str) -> String {
        let n = self.counter.fetch_add(1, Ordering::Relaxed);
        format!("{}-{}-{n}-{what}", self.suite.prefix, self.number)
    }

    /// Whether the driver has a capability.
    pub fn can(&self, capability: impl Into<DriverCapability>) -> bool {
        self.suite.capabilities.has(capability)
    }

    /// A finding that is no failure.
    pub fn warn(&self, text: impl Into<String>) {
        self.warnings.lock().unwrap_or_else(PoisonError::into_inner).push(text.into());
    }

    /// The findings so far.
    pub fn warnings(&self) -> Vec<String> {
        self.warnings.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Asks the driver.
    pub async fn ask<R: Ask>(&self, request: R) -> Result<R::Answer, Status> {
        let response = self.call(request.into_call(), self.suite.options.call_timeout).await?;
        R::read(response).ok_or_else(|| Status::local(Code::Internal, "the answer is another method's"))
    }

    /// Asks the driver with a deadline of its own.
    pub async fn ask_within<R: Ask>(&self, request: R, deadline: Duration) -> Result<R::Answer, Status> {
        let response = self.call(request.into_call(), deadline).await?;
        R::read(response).ok_or_else(|| Status::local(Code::Internal, "the answer is another method's"))
    }

    async fn call(&self, call: Call, deadline: Duration) -> Result<Response, Status> {
        self.ledger.before(&call);
        let answer = self.suite.call(call.clone(), deadline).await;
        self.ledger.after(&call, &answer);
        answer
    }

    /// Asks for something that has to succeed. ABORTED is a promise that it works later.
    pub async fn ok<R: Ask>(&self, request: R) -> CaseResult<R::Answer> {
        let mut again = 0;
        loop {
            match self.ask(request.clone()).await {
                Ok(answer) => return Ok(answer),
                Err(status) if matches!(status.code, Code::Aborted) && status.from_driver && again < ASKED_AGAIN => {
                    again += 1;
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
                Err(status) => return fail(format!("{} was refused: {}", R::METHOD.name(), said(&status))),
            }
        }
    }

    /// Asks for something that has to be refused with one of these codes.
    pub async fn refused<R: Ask>(&self, request: R, codes: &[Code], what: &str) -> CaseResult {
        match self.refusal(request, codes, what).await? {
            None => Ok(()),
            Some(finding) => fail(finding),
        }
    }

    /// Asks for something that should be refused with one of these codes; a driver that does otherwise is warned.
    pub async fn should_refuse<R: Ask>(&self, request: R, codes: &[Code], what: &str) -> CaseResult {
        if let Some(finding) = self.refusal(request, codes, what).await? {
            self.warn(finding);
        }
        Ok(())
    }

    async fn refusal<R: Ask>(&self, request: R, codes: &[Code], what: &str) -> CaseResult<Option<String>> {
        let method = R::METHOD.name();
        let expected = codes.iter().map(|code| grpc_name(*code)).collect::<Vec<_>>().join(" or ");
        match self.ask(request).await {
            Ok(_) => Ok(Some(format!("{method} {what} was answered OK, expected {expected}"))),
            Err(status) if !status.from_driver => fail(format!("{method} {what} got no answer: {}", status.message)),
            Err(status) if codes.contains(&status.code) => Ok(None),
            Err(status) => Ok(Some(format!("{method} {what} was answered {}, expected {expected}", said(&status)))),
        }
    }

    /// The driver still answers.
    pub async fn alive(&self, after: &str) -> CaseResult {
        match self.suite.ask(csi::v1::ProbeRequest {}).await {
            Ok(_) => Ok(()),
            Err(status) => fail(format!("the driver does not answer any more after {after}: {}", status.message)),
        }
    }

    /// A directory of this case below the staging directory, made.
    pub fn staging_path(&self) -> CaseResult<String> {
        self.make(self.suite.options.staging_dir.join(self.name("stage")))
    }

    /// A path of this case below the target directory; its parent is made, it is not.
    pub fn target_path(&self) -> CaseResult<String> {
        let parent = self.make(self.suite.options.target_dir.join(self.name("pod")))?;
        let target = Path::new(&parent).join("mount");
        self.ledger.path(&target);
        Ok(target.to_string_lossy().into_owned())
    }

    /// A directory beside the targets with one file in it, to see whether a driver strays.
    pub fn canary(&self) -> CaseResult<PathBuf> {
        let folder = PathBuf::from(self.make(self.suite.options.target_dir.join(self.name("canary")))?);
        let file = folder.join("alive");
        std::fs::write(&file, "untouched")
            .or_else(|error| fail(format!("cannot write {}: {error}", file.display())))?;
        self.ledger.path(&file);
        self.canaries.lock().unwrap_or_else(PoisonError::into_inner).push(folder.clone());
        Ok(folder)
    }

    /// Nothing appeared in, vanished from or was mounted on the canaries.
    pub fn canaries_live(&self, after: &str) -> CaseResult {
        for folder in self.canaries.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            crate::host::untouched(folder).or_else(|what| fail(format!("{after}: {what}")))?;
        }
        Ok(())
    }

    fn make(&self, folder: PathBuf) -> CaseResult<String> {
        std::fs::create_dir_all(&folder).or_else(|error| fail(format!("cannot make {}: {error}", folder.display())))?;
        self.ledger.path(&folder);
        Ok(folder.to_string_lossy().into_owned())
    }

    /// Remembers a file of ours, so that it is removed at the end.
    pub fn remember_path(&self, path: &Path) {
        self.ledger.path(path);
    }

    /// Restarts the driver.
    pub async fn restart(&self) -> CaseResult {
        self.suite.restart().await.or_else(fail)
    }

    /// Takes away everything this case created; says what could not be.
    pub async fn clean_up(&self) -> Vec<String> {
        self.ledger.clean_up(&self.suite).await
    }
}

/// Two answers of the same method must be equal.
pub fn same<A: PartialEq>(first: &A, second: &A, what: &str) -> CaseResult {
    if first == second { Ok(()) } else { fail(format!("{what} is answered differently the second time")) }
}

/// A status in the words of gRPC.
pub fn said(status: &Status) -> String {
    format!("{}: {}", grpc_name(status.code), status.message)
}

/// The code as the specification spells it.
pub fn grpc_name(code: Code) -> String {
    let mut name = String::new();
    for (at, letter) in format!("{code:?}").char_indices() {
        if letter.is_uppercase() && at > 0 {
            name.push('_');
        }
        name.push(letter.to_ascii_uppercase());
    }
    name
}

/// A map of one entry.
pub fn pair(key: &str, value: &str) -> BTreeMap<String, String> {
    [(key.to_string(), value.to_string())].into()
}
