//! Reads the plain part of YAML that kubectl writes, fast. A dump of a large cluster is mostly that.
//!
//! Whatever is not plain (anchors, tags, flow collections, comments behind values, values over several lines, numbers
//! that could be read in two ways) is left to the library, which reads everything. So this reader may give up at any
//! time, but what it reads, it must read as the library does; a test holds one against the other.

use serde_json::{Map, Value};

/// How deep collections may be in each other here.
const DEEPEST: usize = 48;

/// The value that a document holds; `None` if the document is not plain.
pub fn plain(text: &str) -> Option<Value> {
    let mut lines = Lines { rest: text, peeked: None };
    let first = lines.peek()?;
    let value = block(&mut lines, first.indent, 0)?;
    // Nothing may be left over.
    if lines.peek().is_some() || lines.gave_up() { None } else { Some(value) }
}

#[derive(Clone, Copy)]
struct Line<'a> {
    indent: usize,
    /// Without indentation and blanks at the end.
    text: &'a str,
    /// From the beginning of the line to the end of the document.
    from: &'a str,
}

/// The lines that say something.
struct Lines<'a> {
    rest: &'a str,
    peeked: Option<Line<'a>>,
}

impl<'a> Lines<'a> {
    fn peek(&mut self) -> Option<Line<'a>> {
        while self.peeked.is_none() {
            if self.rest.is_empty() {
                return None;
            }
            let from = self.rest;
            let (line, rest) = from.split_once('\n').unwrap_or((from, ""));
            let inner = line.trim_start_matches(' ');
            let indent = line.len() - inner.len();
            let text = inner.trim_end_matches([' ', '\r']);
            self.rest = rest;
            if text.is_empty() || text.starts_with('#') {
                continue;
            }
            self.peeked = Some(Line { indent, text, from });
        }
        self.peeked
    }

    fn next(&mut self) -> Option<Line<'a>> {
        let line = self.peek();
        self.peeked = None;
        line
    }

    /// A line of which a part was read, the rest of it being deeper.
    fn put_back(&mut self, line: Line<'a>) {
        self.peeked = Some(line);
    }

    fn gave_up(&self) -> bool {
        self.peeked.is_some()
    }
}

/// A collection whose lines have this indentation.
fn block(lines: &mut Lines<'_>, indent: usize, depth: usize) -> Option<Value> {
    if depth > DEEPEST {
        return None;
    }
    match lines.peek()?.text {
        text if text == "-" || text.starts_with("- ") => sequence(lines, indent, depth),
        _other => mapping(lines, indent, depth),
    }
}

fn mapping(lines: &mut Lines<'_>, indent: usize, depth: usize) -> Option<Value> {
    let mut map = Map::new();
    while let Some(line) = lines.peek() {
        if line.indent < indent {
            break;
        }
        if line.indent > indent || line.text == "-" || line.text.starts_with("- ") {
            return None;
        }
        lines.next();
        let (key, rest) = split_key(line.text)?;
        let value = match rest {
            "" => match lines.peek() {
                Some(next) if next.indent > indent => block(lines, next.indent, depth + 1)?,
                // A list may stand as far left as its key.
                Some(next) if next.indent == indent && (next.text == "-" || next.text.starts_with("- ")) => {
                    sequence(lines, indent, depth + 1)?
                }
                Some(_) | None => Value::Null,
            },
            "|" | "|-" => literal(lines, indent, rest == "|")?,
            rest => {
                let value = scalar(rest)?;
                // A value over several lines.
                if lines.peek().is_some_and(|next| next.indent > indent) {
                    return None;
                }
                value
            }
        };
        if map.insert(key.into(), value).is_some() {
            return None;
        }
    }
    Some(Value::Object(map))
}

fn sequence(lines: &mut Lines<'_>, indent: usize, depth: usize) -> Option<Value> {
    let mut items = Vec::new();
    while let Some(line) = lines.peek() {
        let is_item = line.text.starts_with("- ");
        if line.indent < indent || (line.indent == indent && !is_item && line.text != "-") {
            break;
        }
        if line.indent > indent || !is_item || depth > DEEPEST {
            return None;
        }
        lines.next();
        let inner = line.text[2..].trim_start_matches(' ');
        let deeper = indent + line.text.len() - inner.len();
        if inner.starts_with("- ") || inner == "-" {
            return None;
        }
        if is_pair(inner) {
            lines.put_back(Line { indent: deeper, text: inner, from: line.from });
            items.push(mapping(lines, deeper, depth + 1)?);
        } else {
            items.push(scalar(inner)?);
            if lines.peek().is_some_and(|next| next.indent > indent) {
                return None;
            }
        }
    }
    Some(Value::Array(items))
}

fn is_pair(text: &str) -> bool {
    !text.starts_with(['"', '\'', '{', '[']) && (text.contains(": ") || text.ends_with(':'))
}

/// The key of a pair, and the rest of the line.
fn split_key(text: &str) -> Option<(&str, &str)> {
    let at = text.find(": ").or_else(|| text.strip_suffix(':').map(str::len))?;
    let (key, rest) = (&text[..at], text[at + 1..].trim_start_matches(' '));
    let fine = |byte: u8| byte.is_ascii_alphanumeric() || b"._/-~".contains(&byte);
    // A key that could be a number or a truth value is not plain.
    let word = key.bytes().next().is_some_and(|first| first.is_ascii_alphabetic());
    (word && key.bytes().all(fine) && string_only(key)).then_some((key, rest))
}

/// A value in one line.
fn scalar(text: &str) -> Option<Value> {
    match text.as_bytes().first()? {
        b'"' => {
            let inner = text.strip_prefix('"')?.strip_suffix('"')?;
            // What JSON reads in quotes, YAML reads in the same way, but for a slash that is escaped.
            if inner.contains("\\/") || inner.contains('\t') {
                return None;
            }
            serde_json::from_str::<String>(text).ok().map(Value::String)
        }
        b'\'' => {
            let inner = text.strip_prefix('\'')?.strip_suffix('\'')?;
            let kept = inner.replace("''", "\u{0}");
            (!inner.is_empty() || text.len() == 2).then_some(())?;
            (!kept.contains('\'') && !inner.contains(['\u{0}', '\t']))
                .then(|| Value::String(kept.replace('\u{0}', "'")))
        }
        _plain => plain_scalar(text),
    }
}

fn plain_scalar(text: &str) -> Option<Value> {
    match text {
        "{}" => return Some(Value::Object(Map::new())),
        "[]" => return Some(Value::Array(Vec::new())),
        "true" => return Some(Value::Bool(true)),
        "false" => return Some(Value::Bool(false)),
        "null" => return Some(Value::Null),
        _other => {}
    }
    let first = *text.as_bytes().first()?;
    if b"&*!|>%@`#,[]{}?:~\"'<=".contains(&first) || text.starts_with("- ") || text == "-" {
        return None;
    }
    let printable = |byte: u8| (0x20..0x7f).contains(&byte);
    if !text.bytes().all(printable) || text.contains(": ") || text.contains(" #") || text.ends_with(':') {
        return None;
    }
    // Such as --- and ..., which are no values.
    if text.starts_with("--") || text.starts_with("..") {
        return None;
    }
    let digits = text.strip_prefix('-').unwrap_or(text);
    let whole = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    if whole && (digits == "0" || !digits.starts_with('0')) && digits.len() <= 18 && text != "-0" {
        return text.parse::<i64>().ok().map(Value::from);
    }
    string_only(text).then(|| Value::String(text.into()))
}

/// Nobody could take it for anything but a string.
fn string_only(text: &str) -> bool {
    let numeric = |byte: u8| byte.is_ascii_digit() || b"_.:+-eExXoO".contains(&byte);
    let number = text.starts_with(|first: char| first.is_ascii_digit() || "+-.".contains(first));
    if number && (text.bytes().all(numeric) || text.contains("0x") || text.contains("0X")) {
        return false;
    }
    let word = text.trim_start_matches(['+', '-', '.']);
    let words = ["true", "false", "null", "inf", "nan", "y", "n", "yes", "no", "on", "off"];
    !words.iter().any(|known| word.eq_ignore_ascii_case(known))
}

/// A text over several lines that are to be kept.
fn literal(lines: &mut Lines<'_>, indent: usize, ends_in_newline: bool) -> Option<Value> {
    let first = lines.peek()?;
    // An empty first line, or one that begins with a blank too many, has rules of its own.
    if first.indent <= indent || first.text.starts_with('#') {
        return None;
    }
    let margin = first.indent;
    let (mut text, mut rest) = (String::new(), first.from);
    lines.peeked = None;
    loop {
        let (line, after) = rest.split_once('\n').unwrap_or((rest, ""));
        let blanks = line.len() - line.trim_start_matches(' ').len();
        // Empty lines inside and at the end have rules of their own, and so have other ends of lines.
        if line.trim().is_empty() && !rest.is_empty() || line.contains(['\r', '\t']) {
            return None;
        }
        if rest.is_empty() || blanks < margin {
            break;
        }
        text.push_str(&line[margin..]);
        text.push('\n');
        rest = after;
    }
    lines.rest = rest;
    if !ends_in_newline {
        text.pop();
    }
    Some(Value::String(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: &str = include_str!("sample.yaml");

    fn library(text: &str) -> Option<Value> {
        serde_saphyr::from_str_with_options(text, serde_saphyr::options! { strict_booleans: true }).ok()
    }

    #[test]
    fn what_kubectl_writes_is_plain_and_read_as_the_library_reads_it() {
        let read = plain(SAMPLE).unwrap();
        assert_eq!(Some(&read), library(SAMPLE).as_ref());
        assert_eq!(read["spec"]["capacity"]["storage"], "10Gi");
        assert_eq!(read["metadata"]["uid"], "0a0a0a0a-1b1b-2c2c-3d3d-5f5f5f5f5f5f");
        assert_eq!(read["spec"]["awsElasticBlockStore"]["partition"], 1);
    }

    /// A damaged sample is read as the library reads it, or not at all.
    #[test]
    fn whatever_is_read_is_what_the_library_reads() {
        let bits = [
            "",
            " ",
            "  ",
            "\n",
            "-",
            "- ",
            ":",
            ": ",
            "#",
            " #",
            "'",
            "\"",
            "|",
            ">",
            "&a ",
            "*a",
            "!t ",
            "{",
            "}",
            "[",
            "]",
            "{}",
            "[]",
            "0",
            "1",
            "1.5",
            "0x1",
            "1e3",
            "-1",
            "+1",
            "010",
            "0o7",
            "1_000",
            ".5",
            "~",
            "null",
            "Null",
            "true",
            "True",
            "yes",
            "on",
            "y",
            "é",
            "\\n",
            "\\u0041",
            "\t",
            "?",
            ",",
            "%",
            "@",
            "`",
            "---",
            "...",
            "a: b",
            "\n\n",
            "\r",
            "2021-03-04",
            "12:30",
            ".inf",
            "NaN",
            "=",
            "<<",
            "|-",
            "|+",
            "''",
            "\"\"",
            "x: |\n    a\n    b\n",
        ];
        let places: Vec<usize> = (0..=SAMPLE.len()).filter(|at| SAMPLE.is_char_boundary(*at)).collect();
        let (mut seed, mut read) = (7_u64, 0);
        let mut dice = |sides: usize| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            usize::try_from(seed >> 33).unwrap() % sides
        };
        for _ in 0..4_000 {
            let mut text = SAMPLE.to_string();
            let at = places[dice(places.len())];
            let until = places[(places.binary_search(&at).unwrap() + dice(4)).min(places.len() - 1)];
            text.replace_range(at..until, bits[dice(bits.len())]);
            if let Some(value) = plain(&text) {
                read += 1;
                assert_eq!(Some(value), library(&text), "{text}");
            }
        }
        assert!(read > 1_000, "{read}");
    }

    #[test]
    fn values_that_could_be_read_in_two_ways_are_left_to_the_library() {
        for value in
            ["0x1f", "010", "1_000", "1.5", "1e3", ".5", "Yes", "NULL", "~", "12:30", "a # b", "[a]", "*a", "0o7"]
        {
            assert_eq!(plain(&format!("a: {value}\n")), None, "{value}");
        }
        for (value, read) in [
            ("10Gi", Value::from("10Gi")),
            ("aws://us-west-2a/vol-1", Value::from("aws://us-west-2a/vol-1")),
            ("\"123\"", Value::from("123")),
            ("'it''s'", Value::from("it's")),
            ("-7", Value::from(-7)),
            ("\"a\\nb\"", Value::from("a\nb")),
        ] {
            assert_eq!(plain(&format!("a: {value}\n")).unwrap()["a"], read);
        }
    }
}
