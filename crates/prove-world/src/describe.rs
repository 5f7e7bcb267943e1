//! A world in words, and the steps it takes.

use std::fmt::Write as _;

use api::Write;
use control::Effect;

use crate::step::{How, Move, Step};
use crate::world::{UserMove, World};

impl World {
    /// For people: objects, driver, machines, and what every controller thinks.
    pub fn describe(&self) -> String {
        let mut out = String::new();
        for kind in api::Object::KINDS {
            for held in self.cluster.all(kind) {
                let _ = writeln!(out, "  {}", describe_object(&held.object));
            }
        }
        let _ = writeln!(out, "  driver: volumes {:?}, attached {:?}", self.truth.volumes, self.truth.attached);
        for (name, host) in &self.truth.hosts {
            let _ = writeln!(
                out,
                "  machine {name}: incarnation {}, staged {:?}, published {:?}, files {:?}, processes {:?}",
                host.incarnation,
                host.staged,
                host.published,
                host.files.keys().collect::<Vec<_>>(),
                host.processes
            );
            if let Some(machine) = &host.machine {
                let _ = writeln!(out, "    attached {:?}, left {:?}", machine.attached(), machine.left());
            }
        }
        for late in &self.late {
            let _ = writeln!(out, "  still to come: {} of {}", late.intent.label, late.actor);
        }
        for ((member, kind), events) in &self.behind {
            let _ = writeln!(out, "  {} is {} {kind} events behind", self.members[*member].name(), events.len());
        }
        for member in &self.members {
            member.describe(&mut out);
        }
        out
    }
}

impl World {
    /// A step in words, as seen from this state.
    pub(crate) fn words(&self, step: &Move, user: &[UserMove], note: &str) -> String {
        let name = |member: u8| self.members[usize::from(member)].name();
        let mut text = match step.step {
            Step::User(at) => format!("user: {}", user[usize::from(at)].label),
            Step::Act { member, at, held, how } => {
                let of = &self.members[usize::from(member)];
                let at = usize::from(at);
                let intent = if held { of.held_intent(at) } else { of.ready_intent(at) };
                let what = format!("{}: {}{}", of.name(), intent.label, detail(&intent.effect));
                format!("{what}: {}", ending(how, of.name(), note))
            }
            Step::Hold { member, at } => {
                let intent = self.members[usize::from(member)].ready_intent(usize::from(at));
                format!("{}: {}{}: begun, held up", name(member), intent.label, detail(&intent.effect))
            }
            Step::Deliver { member, kind } => format!("{}: sees {kind} event: {note}", name(member)),
            Step::Relist { member, kind } => format!("{}: lists {kind} again", name(member)),
            Step::Land(at) => {
                let late = &self.late[usize::from(at)];
                format!("late effect of {}: {}{}: {note}", late.actor, late.intent.label, detail(&late.intent.effect))
            }
            Step::Crash { member, late: 0, .. } => format!("crash {} {note}", name(member)),
            Step::Crash { member, .. } => format!("crash {}, what it began may still come {note}", name(member)),
            Step::Takeover { member } => {
                format!("another process leads as {}, the old one's requests are on their way", name(member))
            }
            Step::Introduce { member } => format!("the Node carries the new incarnation of {}", name(member)),
            Step::Erase { member, at } => {
                let key = self.members[usize::from(member)].remembered_key(usize::from(at));
                format!("{} forgets {key}", name(member))
            }
            Step::Dawdle { member } => format!("{} dawdles", name(member)),
            Step::LosePower { member } => format!("the machine of {} loses its power and starts again", name(member)),
        };
        if let Some((member, kind)) = step.behind {
            let _ = write!(text, " ({}'s watch of {kind} falls behind)", name(member));
        }
        text
    }
}

fn ending(how: How, actor: &str, note: &str) -> String {
    match how {
        How::Done => note.to_string(),
        How::AnswerLost => format!("{note}, but the answer is lost"),
        How::Unsent => "the request is lost".into(),
        How::Refused(code) => format!("the driver refuses with {code:?}"),
        How::Lied(code) => format!("{note}, but the driver answers {code:?}"),
        How::Overtakes => format!("{note}, past an earlier call"),
        How::Denied(denial, false) => format!("the API server answers {denial:?}"),
        How::Denied(denial, true) => format!("{note}, but the API server answers {denial:?}"),
        How::Unread(true) => "the API server forbids it".into(),
        How::Unread(false) => "the API server does not answer".into(),
        How::Cached => format!("{note}, by the cache"),
        How::OpRefused => "the machine refuses".into(),
        How::OpUnknown(false) => "the machine does not answer".into(),
        How::OpUnknown(true) => format!("{note}, but the machine does not say so"),
        How::CutShort(part) => format!("the driver dies after {part} of its operations"),
        How::PowerCut(part) => format!("power is lost after {part} of the driver's operations"),
        How::Late => "given up, may still come".into(),
        How::ThenCrash => format!("{note}, then crash {actor} before the answer"),
        How::LateCrash => format!("crash {actor}, may still come"),
    }
}

fn detail(effect: &Effect) -> String {
    match effect {
        Effect::Read(target) => format!(" [read {target}]"),
        Effect::Token(wish) => format!(" [token of {} for pod {}]", wish.account, wish.pod),
        Effect::List { kind, namespace } => format!(" [list {} in {namespace}]", kind.plural()),
        Effect::Write(Write::Patch { target, subresource, .. }) => {
            format!(" [patch {target}{}]", if subresource.is_some() { "/status" } else { "" })
        }
        Effect::Write(write) => format!(" [{} {}]", write.verb(), write.target()),
        Effect::Call { call, .. } => format!(" [{call:?}]"),
        Effect::Host(op) => format!(" [{op:?}]"),
        Effect::Nothing => String::new(),
    }
}

fn describe_object(object: &api::Object) -> String {
    let meta = object.meta();
    let mut text = format!("{}", object.reference());
    if meta.is_deleting() {
        text.push_str(" (deleting)");
    }
    if !meta.finalizers.is_empty() {
        let _ = write!(text, " finalizers {:?}", meta.finalizers);
    }
    match object {
        api::Object::Node(node) => {
            let attached: Vec<_> = node.status.volumes_attached.iter().flatten().map(|v| &v.name).collect();
            let _ = write!(text, " attached {attached:?} in use {:?}", node.status.volumes_in_use);
        }
        api::Object::VolumeAttachment(va) => {
            let _ = write!(text, " on {} attached {}", va.spec.node_name, va.status.attached);
        }
        api::Object::Pod(pod) => {
            let _ = write!(text, " on {} {}", pod.spec.node_name, pod.status.phase);
        }
        api::Object::PersistentVolumeClaim(claim) => {
            let _ = write!(text, " volume '{}' {}", claim.spec.volume_name, claim.status.phase);
        }
        api::Object::PersistentVolume(volume) => {
            let claim = volume.spec.claim_ref.as_ref().map_or("", |claim| claim.name.as_str());
            let _ = write!(text, " claim '{claim}' {}", volume.status.phase);
        }
        _ => {}
    }
    text
}
