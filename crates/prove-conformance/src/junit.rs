//! The report as build servers read it.

use std::fmt::Write;

use crate::{CaseVerdict, SuiteReport};

/// The whole document.
pub fn write(report: &SuiteReport) -> String {
    let count = report.count();
    let mut text = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let _ = writeln!(
        text,
        "<testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" skipped=\"{}\" errors=\"0\" time=\"{:.3}\">",
        escape(&report.driver),
        report.finished.len(),
        count.failed,
        count.skipped,
        report.took.as_secs_f64()
    );
    for done in &report.finished {
        let (class, name) = done.case.name.rsplit_once('/').unwrap_or(("", done.case.name));
        let _ = write!(
            text,
            "  <testcase classname=\"{}\" name=\"{}\" time=\"{:.3}\"",
            escape(&class.replace('/', ".")),
            escape(name),
            done.took.as_secs_f64()
        );
        let inside = match &done.verdict {
            CaseVerdict::Passed => String::new(),
            CaseVerdict::Warned(why) => format!("<system-out>warning: {}</system-out>", escape(why)),
            CaseVerdict::Skipped(why) => format!("<skipped message=\"{}\"/>", escape(why)),
            CaseVerdict::Failed(why) => {
                format!("<failure message=\"{}\">{}</failure>", escape(why), escape(done.case.why))
            }
        };
        if inside.is_empty() {
            text.push_str("/>\n");
        } else {
            let _ = writeln!(text, ">{inside}</testcase>");
        }
    }
    text.push_str("</testsuite>\n");
    text
}

/// Text as XML can hold it: drivers put any byte into their messages.
fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\n' | '\t' | '\r' => safe.push(' '),
            control if control.is_control() || control == '\u{fffe}' || control == '\u{ffff}' => safe.push('\u{fffd}'),
            other => safe.push(other),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::escape;

    #[test]
    fn any_message_of_a_driver_is_safe_in_xml() {
        assert_eq!(escape("a<b> & \"c\"\n\u{0}d"), "a&lt;b&gt; &amp; &quot;c&quot; \u{fffd}d");
    }
}
