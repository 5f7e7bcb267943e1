use api::{Kind, ObjectRef};
use control::{Cache, Change, Decision, Outcome, Rules, Tick, Why};
use rules_provisioner::{Action, ClaimView, Course, Key, Local, Memory, Provisioner, View};

/// Keeps the intent in memory and writes nothing down before it has the volume made.
pub struct MemoryIntent;

impl Rules for MemoryIntent {
    const NAME: &'static str = "provisioner";
    type Key = Key;
    type Local = Local;
    type View = View;
    type Action = Action;
    type Memory = Memory;

    fn watches() -> &'static [Kind] {
        Provisioner::watches()
    }

    fn wakes(change: &Change, cache: &Cache, local: &Local) -> Vec<Key> {
        Provisioner::wakes(change, cache, local)
    }

    fn keys(cache: &Cache, local: &Local) -> Vec<Key> {
        Provisioner::keys(cache, local)
    }

    fn view(key: &Key, cache: &Cache, local: &Local) -> View {
        Provisioner::view(key, cache, local)
    }

    fn decide(now: Tick, view: &View, memory: &Memory) -> Decision<Action> {
        let View::Claim(ClaimView::Ours(work)) = view else { return Provisioner::decide(now, view, memory) };
        if !matches!(work.course, Course::Provide) {
            return Decision::Rest(Why::settled("NotWanted", "no volume is wanted"));
        }
        let mut work = work.clone();
        let mut memory = memory.clone();
        work.intent = true;
        memory.owned = true;
        memory.uid = work.claim.metadata.uid.clone();
        match Provisioner::decide(now, &View::Claim(ClaimView::Ours(work)), &memory) {
            Decision::Do(Action::DropIntent(_) | Action::AdoptIntent(_), why) => Decision::Rest(why),
            other => other,
        }
    }

    fn remember(now: Tick, memory: Memory, did: &Action, got: &Outcome) -> Memory {
        Provisioner::remember(now, memory, did, got)
    }

    fn learn(_: &mut Local, _: &Action, _: &Outcome) {}

    fn about(key: &Key) -> ObjectRef {
        Provisioner::about(key)
    }
}
