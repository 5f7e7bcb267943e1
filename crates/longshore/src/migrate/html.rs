//! A plan as one page that needs nothing else: to be mailed, attached to a ticket, printed.

use std::fmt::Write;

use rules_migrate::{Item, MigrationObstacle, MigrationPlan, MigrationStep, PluginPlan, StepState};

use super::text;

const STYLE: &str = "body{font:15px/1.5 sans-serif;max-width:62em;margin:2em auto;padding:0 1em;color:#222}\
h1,h2,h3{line-height:1.2}table{border-collapse:collapse}td,th{border:1px solid #ccc;padding:.2em .6em;text-align:left}\
pre{background:#f4f4f4;padding:.5em;overflow-x:auto}.done{color:#176f2c}.blocked,.bad{color:#a40000}\
.unknown{color:#7a5900}summary{cursor:pointer}";

/// Everything a plan says, with every object at the end.
pub fn page(plan: &MigrationPlan, items: &[&Item]) -> String {
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Migration to CSI</title>\
         <style>{STYLE}</style></head><body>\n<h1>Migration of in-tree volumes to CSI drivers</h1>\n"
    );
    let seen: Vec<String> = plan.seen.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
    let _ = writeln!(page, "<p>Seen: {}.</p>", safe(&seen.join(", ")));
    if !plan.unseen.is_empty() {
        let kinds: Vec<&str> = plan.unseen.iter().map(|kind| kind.name()).collect();
        let _ = writeln!(page, "<p class=\"unknown\">Not seen, so nothing is known of them: {}.</p>", kinds.join(", "));
    }
    if plan.plugins.is_empty() {
        page.push_str("<p>No object of an in-tree plugin was seen: there is nothing to migrate.</p>\n");
    } else {
        summary(&mut page, plan);
    }
    list(&mut page, "Not to be told whose", &plan.unclear);
    plan.plugins.iter().for_each(|one| section(&mut page, one));
    if !items.is_empty() {
        let _ = writeln!(page, "<h2>Objects</h2>\n<details><summary>All {}</summary><ul>", items.len());
        items.iter().for_each(|item| {
            let _ = writeln!(page, "<li>{}</li>", safe(&text::object(item)));
        });
        page.push_str("</ul></details>\n");
    }
    page.push_str("</body></html>");
    page
}

fn summary(page: &mut String, plan: &MigrationPlan) {
    page.push_str("<table><tr><th>plugin</th><th>driver</th><th>state</th><th>objects</th><th>in the way</th></tr>\n");
    for one in &plan.plugins {
        let blocking = one.obstacles.iter().filter(|obstacle| obstacle.blocks()).count();
        let _ = writeln!(
            page,
            "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{blocking}</td></tr>",
            one.plugin,
            one.driver,
            safe(&text::stage(one.stage)),
            safe(&text::counts(one)),
        );
    }
    page.push_str("</table>\n");
}

fn section(page: &mut String, one: &PluginPlan) {
    let _ = writeln!(page, "<h2>{} → {}</h2>", one.plugin, one.driver);
    let _ = writeln!(page, "<p>Controllers: {}.<br>", safe(&text::controllers(one.controllers)));
    let _ = writeln!(page, "Nodes: {}.</p>", safe(&text::nodes(&one.nodes)));
    if !one.inconsistencies.is_empty() {
        page.push_str("<h3 class=\"bad\">What does not fit together</h3>\n<ul>");
        one.inconsistencies.iter().for_each(|what| {
            let _ = writeln!(page, "<li>{}</li>", safe(&what.to_string()));
        });
        page.push_str("</ul>\n");
    }
    let (blocking, others): (Vec<_>, Vec<_>) = one.obstacles.iter().cloned().partition(MigrationObstacle::blocks);
    list(page, "In the way", &blocking);
    list(page, "To know", &others);
    steps(page, "The way there", &one.steps);
    steps(page, "The way back", &one.back);
}

fn list(page: &mut String, title: &str, obstacles: &[MigrationObstacle]) {
    if obstacles.is_empty() {
        return;
    }
    let _ = writeln!(page, "<h3>{title}</h3>\n<ul>");
    obstacles.iter().for_each(|obstacle| {
        let _ = writeln!(page, "<li>{}</li>", safe(&obstacle.to_string()));
    });
    page.push_str("</ul>\n");
}

fn steps(page: &mut String, title: &str, steps: &[MigrationStep]) {
    let _ = writeln!(page, "<h3>{title}</h3>\n<ol>");
    for step in steps {
        let class = match step.state {
            StepState::Done => "done",
            StepState::ToDo => "todo",
            StepState::Blocked => "blocked",
            StepState::Unknown => "unknown",
        };
        let note = if step.note.is_empty() { String::new() } else { format!(": {}", safe(&step.note)) };
        let state = text::state(step.state);
        let _ = writeln!(page, "<li>{} <span class=\"{class}\">({state}{note})</span>", safe(&step.title));
        if !step.nodes.is_empty() {
            let _ = writeln!(page, "<br>on {}", safe(&step.nodes.join(", ")));
        }
        if !step.commands.is_empty() {
            let _ = writeln!(page, "<pre>{}</pre>", safe(&step.commands.join("\n")));
        }
        page.push_str("</li>\n");
    }
    page.push_str("</ol>\n");
}

/// Names come from whoever wrote the objects.
fn safe(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            other => safe.push(other),
        }
    }
    safe
}
