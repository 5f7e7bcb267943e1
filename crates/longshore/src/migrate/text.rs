//! A plan for people: the summary first.

use std::fmt::Write;

use rules_migrate::{
    Becomes, ControllersSay, Item, Mark, MigrationObstacle, MigrationPlan, MigrationStage, MigrationStep,
    MigrationVerdict, NodesSay, PluginPlan, StepState,
};

/// How many obstacles or nodes are named before the rest is a number.
const SHOWN: usize = 20;

/// The plan; every object too if these are its objects.
pub fn plan(plan: &MigrationPlan, items: Option<&[&Item]>) -> String {
    let mut text = summary(plan);
    for one in &plan.plugins {
        let _ = writeln!(text, "\n{} → {}", one.plugin, one.driver);
        obstacles(&mut text, one, items.is_some());
        steps(&mut text, "the way there:", &one.steps);
        steps(&mut text, "the way back:", &one.back);
    }
    if let Some(items) = items {
        text.push_str("\nobjects:\n");
        items.iter().for_each(|item| {
            let _ = writeln!(text, "  {}", object(item));
        });
    }
    text
}

/// How far everything has come, and what does not fit together.
pub fn check(plan: &MigrationPlan) -> String {
    let mut text = String::new();
    unseen(&mut text, plan);
    if plan.plugins.is_empty() {
        text.push_str("no object of an in-tree plugin was seen\n");
    }
    for one in &plan.plugins {
        let _ = writeln!(text, "{}: {}", one.plugin, stage(one.stage));
        one.inconsistencies.iter().for_each(|what| {
            let _ = writeln!(text, "  - {what}");
        });
    }
    let verdict = match plan.verdict() {
        MigrationVerdict::Consistent => "everything that was seen fits together",
        MigrationVerdict::Inconsistent => "this does not fit together",
        MigrationVerdict::Unknown => "too little was seen to tell whether it fits together",
    };
    let _ = writeln!(text, "{verdict}");
    text
}

/// What was seen, and one line for each plugin.
fn summary(plan: &MigrationPlan) -> String {
    let mut text = String::new();
    let seen: Vec<String> = plan.seen.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
    let _ = writeln!(text, "seen: {}", seen.join(", "));
    unseen(&mut text, plan);
    if plan.plugins.is_empty() {
        text.push_str("no object of an in-tree plugin was seen: there is nothing to migrate\n");
    }
    for one in &plan.plugins {
        let _ = writeln!(text, "\n{}: {}", one.plugin, stage(one.stage));
        let _ = writeln!(text, "  objects      {}", counts(one));
        let _ = writeln!(text, "  controllers  {}", controllers(one.controllers));
        let _ = writeln!(text, "  nodes        {}", nodes(&one.nodes));
        let blocking = one.obstacles.iter().filter(|obstacle| obstacle.blocks()).count();
        let word = if blocking == 1 { "obstacle" } else { "obstacles" };
        let _ = writeln!(
            text,
            "  in the way   {}",
            if blocking == 0 { "nothing".into() } else { format!("{blocking} {word}") }
        );
        one.inconsistencies.iter().for_each(|what| {
            let _ = writeln!(text, "  ! {what}");
        });
    }
    plan.unclear.iter().for_each(|what| {
        let _ = writeln!(text, "  - {what}");
    });
    text
}

fn unseen(text: &mut String, plan: &MigrationPlan) {
    if !plan.unseen.is_empty() {
        let kinds: Vec<&str> = plan.unseen.iter().map(|kind| kind.name()).collect();
        let _ = writeln!(text, "not seen, so nothing is known of them: {}", kinds.join(", "));
    }
}

/// How far the migration of a plugin has come.
pub fn stage(stage: MigrationStage) -> String {
    match stage {
        MigrationStage::Unknown => "how far it has come is not known, because no node was seen".into(),
        MigrationStage::NotBegun => "not begun: the plugin serves its volumes".into(),
        MigrationStage::Controllers => "the controllers are switched, no node is".into(),
        MigrationStage::Nodes { done, of } => format!("under way: {done} of {of} nodes are switched"),
        MigrationStage::Migrated => "migrated: on every node the driver serves the volumes".into(),
        MigrationStage::Disputed => "stuck: nodes are switched, and the controllers are not".into(),
    }
}

/// How many objects a plugin has.
pub fn counts(one: &PluginPlan) -> String {
    let counts = &one.counts;
    let told = [
        (counts.volumes, "volume", "volumes"),
        (counts.classes, "class", "classes"),
        (counts.claims, "claim", "claims"),
        (counts.pod_volumes, "volume in a pod", "volumes in pods"),
        (counts.attachments, "volume in an attachment", "volumes in attachments"),
    ];
    let told = told.iter().filter(|(count, ..)| *count > 0);
    let told: Vec<String> = told.map(|(n, one, more)| format!("{n} {}", if *n == 1 { one } else { more })).collect();
    let blocked =
        if counts.blocked == 0 { String::new() } else { format!("; {} cannot be translated", counts.blocked) };
    let native =
        if counts.native == 0 { String::new() } else { format!("; {} are CSI volumes already", counts.native) };
    let told = if told.is_empty() { "none was seen".to_string() } else { told.join(", ") };
    format!("{told}{blocked}{native}")
}

/// What the controllers' marks say.
pub fn controllers(say: ControllersSay) -> String {
    match say {
        ControllersSay::Nothing => "not known: nothing was provisioned that would show it".into(),
        ControllersSay::Off => "off: no volume or claim is marked".into(),
        ControllersSay::On => "on: volumes and claims are marked".into(),
        ControllersSay::Partly { marked, unmarked } => format!("on: {marked} are marked, {unmarked} not yet"),
    }
}

/// What the nodes say.
pub fn nodes(say: &NodesSay) -> String {
    match say {
        NodesSay::Nothing => "not known: no CSINode was seen".into(),
        NodesSay::This(known) => {
            let (done, all, missing) = (known.migrated.len(), known.all.len(), known.without_driver.len());
            let driver = match missing {
                0 => "the driver is on all of them".to_string(),
                some => format!("the driver is missing on {some}"),
            };
            format!("{done} of {all} are switched; {driver}")
        }
    }
}

fn obstacles(text: &mut String, one: &PluginPlan, all: bool) {
    for (title, blocks) in [("in the way:", true), ("to know:", false)] {
        let these: Vec<&MigrationObstacle> =
            one.obstacles.iter().filter(|obstacle| obstacle.blocks() == blocks).collect();
        if these.is_empty() {
            continue;
        }
        let _ = writeln!(text, "  {title}");
        let shown = if all { these.len() } else { SHOWN.min(these.len()) };
        these[..shown].iter().for_each(|obstacle| {
            let _ = writeln!(text, "  - {obstacle}");
        });
        if shown < these.len() {
            let _ = writeln!(text, "  - and {} more; --details names them all", these.len() - shown);
        }
    }
}

/// How a step stands.
pub fn state(state: StepState) -> &'static str {
    match state {
        StepState::Done => "done",
        StepState::ToDo => "to do",
        StepState::Blocked => "blocked",
        StepState::Unknown => "not known",
    }
}

fn steps(text: &mut String, title: &str, steps: &[MigrationStep]) {
    let _ = writeln!(text, "  {title}");
    for (number, step) in steps.iter().enumerate() {
        let note = if step.note.is_empty() { String::new() } else { format!(": {}", step.note) };
        let _ = writeln!(text, "  {}. {} ({}{note})", number + 1, step.title, state(step.state));
        if !step.nodes.is_empty() {
            let shown = step.nodes.len().min(SHOWN);
            let more = match step.nodes.len() - shown {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            let _ = writeln!(text, "       on {}{more}", step.nodes[..shown].join(", "));
        }
        step.commands.iter().for_each(|command| {
            let _ = writeln!(text, "       {command}");
        });
    }
}

/// One object and what it becomes.
pub fn object(item: &Item) -> String {
    let becomes = match (&item.becomes, &item.blocked) {
        (Some(Becomes::Volume { handle, zones }), _) => {
            let driver = item.plugin.map_or("", |plugin| plugin.driver());
            let zones = if zones.is_empty() { String::new() } else { format!(" in {}", zones.join(", ")) };
            format!("volume {handle} of {driver}{zones}")
        }
        (Some(Becomes::Class), _) => format!("a class of {}", item.plugin.map_or("", |plugin| plugin.driver())),
        (Some(Becomes::Claim), _) => format!("a claim for {}", item.plugin.map_or("", |plugin| plugin.driver())),
        (None, Some(sentence)) => format!("nothing: {sentence}"),
        (None, None) => "nothing".into(),
    };
    let lost = if item.lost.is_empty() { String::new() } else { format!("; without {}", item.lost.join(", ")) };
    let mark = match &item.mark {
        Mark::Set => "; marked".into(),
        Mark::Wrong(driver) => format!("; marked for {driver}"),
        Mark::NotNeeded | Mark::Missing => String::new(),
    };
    format!("{} → {becomes}{lost}{mark}", item.object())
}
