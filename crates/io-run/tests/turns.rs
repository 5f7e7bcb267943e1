//! What hangs keeps nobody else waiting.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop here")]

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use api::{Kind, Meta, ObjectKey, ObjectRef, ResourceVersion, StorageClass};
use control::host::Op;
use control::{
    Action, Cache, Decision, Effect, Endpoint, Narrate, Outcome, Permission, Reply, Route, Rules, Timestamp, Why,
    routes,
};
use csi::{Call, v1};
use io_run::{Clock, Controller, Hands, Parts, SharedCache};

/// Each class is to be asked about once: the driver it names, or the machine if it names none.
struct Asking;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Ask(String, String);

impl Action for Ask {
    fn name(&self) -> &'static str {
        "Ask"
    }
    fn effect(&self) -> Effect {
        match self.1.as_str() {
            "" => Effect::Host(Op::Measure { path: self.0.clone() }),
            driver => {
                Effect::Call { to: Endpoint::Driver(driver.into()), call: Call::Probe(v1::ProbeRequest::default()) }
            }
        }
    }
    fn permissions() -> &'static [Permission] {
        &[]
    }
}

control::reasons! {
    enum AskingReason {
        Asked,
        Asking,
    }
}

impl Narrate for Asking {}

impl Rules for Asking {
    const NAME: &'static str = "asking";
    type Key = ObjectKey;
    type Local = ();
    type View = Option<(String, String)>;
    type Action = Ask;
    type Reason = AskingReason;
    type Memory = bool;

    const ROUTES: &'static [Route<Self>] =
        routes![StorageClass => each(|class, woken| woken.wake(class.metadata.key()))];

    fn keys(cache: &Cache, (): &()) -> Vec<ObjectKey> {
        cache.classes().map(|class| class.metadata.key()).collect()
    }
    fn view(key: &ObjectKey, cache: &Cache, (): &()) -> Self::View {
        cache.class(key).map(|class| (class.metadata.name.clone(), class.provisioner.clone()))
    }
    fn decide(_: Timestamp, view: &Self::View, asked: &bool) -> Decision<Ask, AskingReason> {
        match view {
            Some((name, driver)) if !asked => {
                Decision::Do(Ask(name.clone(), driver.clone()), Why::waiting(AskingReason::Asking, "asking"))
            }
            Some(_) | None => Decision::Rest(Why::settled(AskingReason::Asked, "asked")),
        }
    }
    fn remember(_: Timestamp, _: bool, _: &Ask, _: &Outcome) -> bool {
        true
    }
    fn learn((): &mut (), _: &Ask, _: &Outcome, _: &Cache) -> Vec<ObjectKey> {
        Vec::new()
    }
    fn object(key: &ObjectKey) -> ObjectRef {
        ObjectRef { kind: Kind::StorageClass, key: key.clone() }
    }
}

/// Hands that never come back from the driver `hung` or from a path that begins so, and count whom they ask.
#[derive(Default)]
struct Half(Mutex<BTreeMap<String, usize>>);

impl Half {
    fn asked(&self, whom: &str) -> usize {
        self.0.lock().unwrap().get(whom).copied().unwrap_or_default()
    }
}

impl Hands for Half {
    fn perform(&self, effect: Effect) -> Pin<Box<dyn Future<Output = Outcome> + Send + '_>> {
        Box::pin(async move {
            let whom = match effect {
                Effect::Call { to: Endpoint::Driver(name), .. } => name,
                Effect::Host(Op::Measure { path }) => path.split('-').next().unwrap().to_string(),
                effect => panic!("{effect:?}"),
            };
            *self.0.lock().unwrap().entry(whom.clone()).or_default() += 1;
            if whom == "hung" {
                std::future::pending::<()>().await;
            }
            Outcome::Done(Reply::Nothing)
        })
    }
}

fn classes(driver: &str, name: &str, count: usize) -> Vec<api::Object> {
    let class = |number| StorageClass {
        metadata: Meta {
            uid: format!("{name}-{number:04}"),
            resource_version: ResourceVersion("1".into()),
            ..Meta::named(format!("{name}-{number:04}"))
        }
        .into(),
        provisioner: driver.into(),
        ..Default::default()
    };
    (0..count).map(|number| class(number).into()).collect()
}

fn start(objects: Vec<api::Object>) -> (Arc<Half>, Arc<Controller<Asking>>) {
    let (cache, hands) = (Arc::<SharedCache>::default(), Arc::<Half>::default());
    let parts = Parts {
        cache: cache.clone(),
        hands: hands.clone(),
        clock: Arc::new(Clock::default()),
        events: None,
        metrics: Arc::default(),
        panics: Arc::default(),
    };
    let controller = Controller::<Asking>::new(&parts, ());
    cache.replace(Kind::StorageClass, 5, objects);
    (hands, controller)
}

/// Lets everything run that can.
async fn settle() {
    for _ in 0..2000 {
        tokio::task::yield_now().await;
    }
}

// Reliability 50, seen from two drivers: one of them has more calls that hang than a controller makes at once.
#[tokio::test(start_paused = true)]
async fn a_driver_that_hangs_keeps_no_other_driver_waiting() {
    let (hands, controller) = start([classes("hung", "a", 300), classes("sound", "b", 300)].concat());
    tokio::spawn(controller.run());
    settle().await;
    assert_eq!(hands.asked("sound"), 300, "no time has passed, and all of them are asked");
    assert_eq!(hands.asked("hung"), 64, "it is not asked for everything at once");
}

// Reliability 50, seen from one driver: volumes that hang do not stop its other volumes for good.
#[tokio::test(start_paused = true)]
async fn calls_that_hang_give_their_turn_to_others_of_the_driver() {
    let (hands, controller) = start(classes("hung", "a", 300));
    tokio::spawn(controller.run());
    settle().await;
    assert_eq!(hands.asked("hung"), 64);
    for asked in [128, 192, 256, 300] {
        tokio::time::sleep(Duration::from_millis(501)).await;
        settle().await;
        assert_eq!(hands.asked("hung"), asked);
    }
}

// Reliability 50, for operations on this machine.
#[tokio::test(start_paused = true)]
async fn operations_that_hang_keep_others_waiting_for_a_moment_only() {
    let (hands, controller) = start([classes("", "hung", 64), classes("", "sound", 300)].concat());
    tokio::spawn(controller.run());
    settle().await;
    assert_eq!((hands.asked("hung"), hands.asked("sound")), (64, 0));
    tokio::time::sleep(Duration::from_millis(501)).await;
    settle().await;
    assert_eq!(hands.asked("sound"), 300);
}

// The flags of sidecars promise a number; a call that hangs is one of it.
#[tokio::test(start_paused = true)]
async fn a_number_that_was_asked_for_is_kept_whatever_hangs() {
    let (hands, controller) = start([classes("hung", "a", 10), classes("", "hung", 10)].concat());
    controller.at_once(5);
    tokio::spawn(controller.run());
    settle().await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    settle().await;
    assert_eq!(hands.asked("hung"), 5);
}
