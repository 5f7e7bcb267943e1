//! Whose turn it is. What hangs keeps nobody else waiting (reliability 50).

use std::collections::HashMap;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use control::{Effect, Endpoint, Narrate, Outcome};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::{AT_ONCE, Controller};

/// An action that takes longer than this counts no more among those that others wait for.
const LONG: Duration = Duration::from_millis(500);

/// The drivers that are being asked, and whose turn it is at each. One that hangs has no part in the turns of another.
#[derive(Default)]
pub(super) struct Turns(Mutex<HashMap<Endpoint, Arc<Semaphore>>>);

/// An action under way that others do not wait for, until this is dropped.
pub(super) struct Aside<R: Narrate>(Arc<Controller<R>>);

impl Turns {
    async fn wait(&self, driver: &Endpoint) -> Option<OwnedSemaphorePermit> {
        let turns = {
            let mut drivers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            drivers.retain(|_, turns| Arc::strong_count(turns) > 1);
            drivers.entry(driver.clone()).or_insert_with(|| Arc::new(Semaphore::new(AT_ONCE))).clone()
        };
        turns.acquire_owned().await.ok()
    }
}

impl<R: Narrate> Controller<R> {
    /// Calls are counted by driver, where nobody has said how many actions there may be at most.
    pub(super) fn counted_by_driver(self: &Arc<Self>, effect: &Effect) -> Option<Aside<R>> {
        matches!(effect, Effect::Call { .. }).then(|| self.aside()).flatten()
    }

    fn aside(self: &Arc<Self>) -> Option<Aside<R>> {
        let mut state = self.state();
        if state.strict {
            return None;
        }
        state.aside += 1;
        Some(Aside(self.clone()))
    }

    /// Performs an effect when it is its turn. One that takes long gives its turn back and goes on.
    pub(super) async fn in_turn(
        self: &Arc<Self>,
        effect: Effect,
        aside: &mut Option<Aside<R>>,
        perform: impl AsyncFnOnce(Effect) -> Outcome,
    ) -> Outcome {
        let turn = match &effect {
            Effect::Call { to, .. } if aside.is_some() => self.turns.wait(to).await,
            _others => None,
        };
        // Whatever waits for the API waits for the same server: nothing is won by asking it for more.
        let hangs_alone = matches!(effect, Effect::Call { .. } | Effect::Host(_));
        let mut performing = pin!(perform(effect));
        if !hangs_alone {
            return performing.await;
        }
        if let Ok(outcome) = tokio::time::timeout(LONG, performing.as_mut()).await {
            return outcome;
        }
        drop(turn);
        if aside.is_none() {
            *aside = self.aside();
        }
        self.woken.notify_one();
        performing.await
    }
}

impl<R: Narrate> Drop for Aside<R> {
    fn drop(&mut self) {
        self.0.state().aside -= 1;
    }
}
