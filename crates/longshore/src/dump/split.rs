//! From the text of a file to documents, and from lists to the objects in them.

use std::borrow::Cow;

use api::{Kind, Object};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::{Place, yaml};

/// An object of a dump.
pub enum Found {
    /// One of the kinds that were asked for.
    Object(Object),
    /// One of another kind, by its name.
    Other(String),
}

/// Hands over every document of a file, lists as a whole. An error is a sentence.
pub fn each_document(name: &str, text: &str, hand: &mut dyn FnMut(Value) -> Result<(), String>) -> Result<(), String> {
    if is_json(text) {
        let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
        let mut whole = Vec::new();
        if values.try_for_each(|value| value.map(|value| whole.push(value))).is_ok() {
            return whole.into_iter().try_for_each(hand);
        }
    }
    for (line, document) in documents(text) {
        let place = Place { name, line };
        let value = read_yaml(place, document)?;
        if !value.is_null() {
            hand(value)?;
        }
    }
    Ok(())
}

/// Hands over every object of these kinds in a file, those in lists one by one. An error is a sentence.
pub fn each_object(
    name: &str,
    text: &str,
    kinds: &[Kind],
    hand: &mut dyn FnMut(Found) -> Result<(), String>,
) -> Result<(), String> {
    let mut reader = Reader { kinds, hand };
    if is_json(text) && reader.json(name, text)? {
        return Ok(());
    }
    for (line, document) in documents(text) {
        reader.yaml(Place { name, line }, document)?;
    }
    Ok(())
}

/// What begins like JSON. A flow mapping of YAML begins so too.
fn is_json(text: &str) -> bool {
    text.trim_start().starts_with(['{', '['])
}

/// The documents of YAML, each with the line it begins in. Between two is a line of three dashes.
fn documents(text: &str) -> Vec<(usize, &str)> {
    let (mut found, mut start, mut first, mut at) = (Vec::new(), 0, 1, 0);
    for (index, line) in text.split_inclusive('\n').enumerate() {
        if line.trim_end() == "---" {
            found.push((first, &text[start..at]));
            (start, first) = (at + line.len(), index + 2);
        }
        at += line.len();
    }
    found.push((first, &text[start..]));
    found.retain(|(_, text)| text.lines().any(|line| !line.trim().is_empty() && !line.trim_start().starts_with('#')));
    found
}

/// A document of YAML: by our own reader if it is plain, by the library if not.
fn read_yaml(place: Place<'_>, text: &str) -> Result<Value, String> {
    if let Some(value) = yaml::plain(text) {
        return Ok(value);
    }
    // Only `true` and `false` are truth values: an object may well be called `y` or `on`.
    let options = serde_saphyr::options! { strict_booleans: true };
    let read: Result<Vec<Value>, _> = serde_saphyr::from_multiple_with_options(text, options);
    match read {
        Ok(values) => Ok(values.into_iter().find(|value| !value.is_null()).unwrap_or_default()),
        Err(error) => Err(place.no_yaml(
            error
                .location()
                .map(|at| (usize::try_from(at.line()).unwrap_or(1), usize::try_from(at.column()).unwrap_or(1))),
        )),
    }
}

/// What is looked at first of a JSON object.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Peek<'a> {
    #[serde(borrow, default)]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    api_version: Cow<'a, str>,
    #[serde(borrow, default)]
    items: Option<Vec<&'a RawValue>>,
}

struct Reader<'a> {
    kinds: &'a [Kind],
    hand: &'a mut dyn FnMut(Found) -> Result<(), String>,
}

impl Reader<'_> {
    /// Reads JSON; false if the text is something else after all.
    fn json(&mut self, name: &str, text: &str) -> Result<bool, String> {
        let mut documents = Vec::new();
        for document in serde_json::Deserializer::from_str(text).into_iter::<&RawValue>() {
            match document {
                Ok(document) => documents.push(document),
                // YAML is tried then, and says where it is wrong.
                Err(_) => return Ok(false),
            }
        }
        documents.into_iter().try_for_each(|document| self.json_object(name, document)).map(|()| true)
    }

    fn json_object(&mut self, name: &str, raw: &RawValue) -> Result<(), String> {
        let peek: Peek<'_> = serde_json::from_str(raw.get())
            .map_err(|error| format!("{name} holds something that is no Kubernetes object: {error}"))?;
        if let (true, Some(items)) = (peek.kind.ends_with("List"), peek.items) {
            return items.into_iter().try_for_each(|item| self.json_object(name, item));
        }
        let Some(kind) = self.wanted(name, &peek.kind, &peek.api_version)? else { return Ok(()) };
        let object = Object::from_slice(kind, raw.get().as_bytes()).map_err(|error| format!("{name}: {error}"))?;
        (self.hand)(Found::Object(object))
    }

    fn yaml(&mut self, place: Place<'_>, text: &str) -> Result<(), String> {
        let Some(list) = List::of(text) else {
            return self.value(place, read_yaml(place, text)?);
        };
        let mut around = list.before.to_string();
        around.push_str(list.after);
        let kind = read_yaml(place, &around)?["kind"].as_str().unwrap_or_default().to_string();
        if !kind.ends_with("List") {
            return self.value(place, read_yaml(place, text)?);
        }
        let mut copy = String::new();
        for (line, item) in list.items() {
            copy.clear();
            // The dash is indentation too.
            copy.push_str(&item[..list.indent]);
            copy.push(' ');
            copy.push_str(&item[list.indent + 1..]);
            let place = Place { name: place.name, line: place.line + line };
            self.value(place, read_yaml(place, &copy)?)?;
        }
        Ok(())
    }

    fn value(&mut self, place: Place<'_>, mut value: Value) -> Result<(), String> {
        if value.is_null() {
            return Ok(());
        }
        if !value.is_object() {
            let Place { name, line } = place;
            return Err(format!("{name} holds something that is no Kubernetes object (line {line})"));
        }
        let text = |key: &str| value[key].as_str().unwrap_or_default().to_string();
        let (kind, version) = (text("kind"), text("apiVersion"));
        if let (true, Value::Array(items)) = (kind.ends_with("List"), value["items"].take()) {
            return items.into_iter().try_for_each(|item| self.value(place, item));
        }
        let Some(kind) = self.wanted(place.name, &kind, &version)? else { return Ok(()) };
        let about = |error| format!("{} (line {}): {error}", place.name, place.line);
        (self.hand)(Found::Object(Object::from_json(kind, value).map_err(about)?))
    }

    /// The kind, if it is one that was asked for. Older versions of a group say the same in the fields that matter.
    fn wanted(&mut self, name: &str, kind: &str, version: &str) -> Result<Option<Kind>, String> {
        if kind.is_empty() {
            return Err(format!("{name} holds an object without a kind; every object needs apiVersion and kind"));
        }
        let group = |version: &str| version.split_once('/').map_or(String::new(), |(group, _)| group.to_string());
        let is = |known: &&Kind| known.name() == kind && group(known.api_version()) == group(version);
        match self.kinds.iter().find(is) {
            Some(kind) => Ok(Some(*kind)),
            None => (self.hand)(Found::Other(kind.to_string())).map(|()| None),
        }
    }
}

/// A list in YAML, cut into its items without being read as a whole: each item is small, and a list may be large.
struct List<'a> {
    before: &'a str,
    body: &'a str,
    after: &'a str,
    /// The line of the body's beginning within the document, from 0.
    line: usize,
    /// How far to the right its dashes are.
    indent: usize,
}

impl<'a> List<'a> {
    /// A document with a line `items:` at its left margin, and items with dashes under it.
    fn of(text: &'a str) -> Option<List<'a>> {
        let (mut at, mut line) = (0, 0);
        let mut lines = text.split_inclusive('\n');
        for one in lines.by_ref() {
            at += one.len();
            line += 1;
            if one.trim_end() == "items:" {
                break;
            }
        }
        let body = &text[at..];
        let first = body.lines().find(|line| !line.trim().is_empty())?;
        let indent = first.len() - first.trim_start_matches(' ').len();
        if !first[indent..].starts_with("- ") || body.lines().next() != Some(first) {
            return None;
        }
        // It ends with the next key at the margin.
        let inside = |line: &str| line.starts_with([' ', '#']) || line.starts_with("- ") || line.trim().is_empty();
        let end = body.split_inclusive('\n').take_while(|line| inside(line)).map(str::len).sum();
        Some(List {
            before: text[..at].strip_suffix("items:\n")?,
            body: &body[..end],
            after: &body[end..],
            line,
            indent,
        })
    }

    /// Each item with its line within the document, from 0.
    fn items(&self) -> impl Iterator<Item = (usize, &'a str)> {
        let (body, indent, first) = (self.body, self.indent, self.line);
        let begins = move |line: &str| {
            let bytes = line.as_bytes();
            bytes.get(indent) == Some(&b'-')
                && bytes.get(indent + 1) == Some(&b' ')
                && bytes[..indent].iter().all(|byte| *byte == b' ')
        };
        let mut lines = body.split_inclusive('\n').enumerate().peekable();
        let mut at = 0;
        std::iter::from_fn(move || {
            let (line, text) = lines.next()?;
            let start = at;
            at += text.len();
            while let Some((_, next)) = lines.next_if(|(_, next)| !begins(next)) {
                at += next.len();
            }
            Some((first + line, &body[start..at]))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KINDS: [Kind; 2] = [Kind::PersistentVolume, Kind::Node];

    fn names(text: &str) -> Result<Vec<String>, String> {
        let mut found = Vec::new();
        each_object("f", text, &KINDS, &mut |one| {
            found.push(match one {
                Found::Object(object) => format!("{} {}", object.kind(), object.meta().name),
                Found::Other(kind) => kind,
            });
            Ok(())
        })?;
        Ok(found)
    }

    #[test]
    fn lists_and_documents_in_both_formats_are_the_same() {
        let both = ["PersistentVolume a", "Node b", "Secret"].map(String::from).to_vec();
        for text in [
            "apiVersion: v1\nitems:\n- apiVersion: v1\n  kind: PersistentVolume\n  metadata:\n    name: a\n\
             - apiVersion: v1\n  kind: Node\n  metadata: {name: b}\n\
             - apiVersion: v1\n  kind: Secret\nkind: List\nmetadata:\n  resourceVersion: \"\"\n",
            "kind: List\napiVersion: v1\nitems:\n\
             \u{20} - {apiVersion: v1, kind: PersistentVolume, metadata: {name: a}}\n\
             \u{20} # next\n\u{20} - apiVersion: v1\n    kind: Node\n    metadata:\n      name: b\n\
             \u{20} - apiVersion: v1\n    kind: Secret\n",
            "---\napiVersion: v1\nkind: PersistentVolume\nmetadata:\n  name: a\n---\n# nothing\n---\n\
             apiVersion: v1\nkind: Node\nmetadata:\n  name: b\n---\napiVersion: v1\nkind: Secret\n",
            r#"{"apiVersion":"v1","kind":"PersistentVolume","metadata":{"name":"a"}}
               {"apiVersion":"v1","kind":"NodeList","items":[
                 {"apiVersion":"v1","kind":"Node","metadata":{"name":"b"}},{"kind":"Secret"}]}"#,
            "{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: PersistentVolume, metadata: {name: a}}, \
             {apiVersion: v1, kind: Node, metadata: {name: b}}, {kind: Secret}]}",
        ] {
            assert_eq!(names(text).as_ref(), Ok(&both), "{text}");
        }
        assert_eq!(names("apiVersion: v1\nitems: []\nkind: List\n"), Ok(Vec::new()));
        assert_eq!(names(""), Ok(Vec::new()));
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        let broken =
            "apiVersion: v1\nitems:\n- apiVersion: v1\n  kind: Node\n- apiVersion: v1\n  kind: [Node\nkind: List\n";
        let sentence = names(broken).unwrap_err();
        assert!(
            sentence.starts_with("f is neither YAML nor JSON (line 6") || sentence.contains("(line 7"),
            "{sentence}"
        );
        assert_eq!(names("a: b: c\n").unwrap_err(), "f is neither YAML nor JSON (line 1, column 5)");
        let second = "apiVersion: v1\nkind: Node\n---\nkind: Node\napiVersion: v1\nmetadata: [x\n";
        assert!(names(second).unwrap_err().contains("(line 6") || names(second).unwrap_err().contains("(line 7"));
        let malformed = "apiVersion: v1\nkind: Node\nmetadata: 7\n";
        assert!(names(malformed).unwrap_err().starts_with("f (line 1): it is not a Node: "), "{:?}", names(malformed));
        assert_eq!(
            names("metadata:\n  name: a\n").unwrap_err(),
            "f holds an object without a kind; every object needs apiVersion and kind"
        );
        assert_eq!(names("- a\n").unwrap_err(), "f holds something that is no Kubernetes object (line 1)");
    }

    #[test]
    fn objects_of_another_group_are_not_taken_for_ours() {
        assert_eq!(names("apiVersion: example.com/v1\nkind: Node\n"), Ok(vec!["Node".into()]));
        let mut found = 0;
        let text = "apiVersion: storage.k8s.io/v1beta1\nkind: CSINode\nmetadata:\n  name: a\n";
        each_object("f", text, &[Kind::CSINode], &mut |one| {
            found += usize::from(matches!(one, Found::Object(_)));
            Ok(())
        })
        .unwrap();
        assert_eq!(found, 1);
    }
}
