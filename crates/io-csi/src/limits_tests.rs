//! The wire format itself says which fields there are: each is filled beyond its bound and must be found.

use std::collections::BTreeMap;

use super::*;
use crate::wire;
use csi::{Call, Method, v1};

/// Fields without a bound: paths, and texts for people.
const UNBOUNDED: [&str; 8] = [
    "target_path",
    "staging_target_path",
    "volume_path",
    "volume_publish_path",
    "message",
    "reason",
    "endpoint",
    "error",
];

/// A field of a message.
pub(crate) struct Field {
    pub name: String,
    kind: String,
    pub number: u8,
}

pub type Messages = BTreeMap<String, Vec<Field>>;

/// The messages of the wire format, by their full names.
pub fn messages() -> Messages {
    let mut all = Messages::new();
    let (mut open, mut depth_of_others): (Vec<String>, usize) = (Vec::new(), 0);
    for line in include_str!("../../csi/proto/csi.proto").lines().map(str::trim) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            [] | ["//", ..] => {}
            ["message", name, ..] => {
                let name = name.trim_end_matches(['{', '}']);
                open.push(open.last().map_or(name.to_string(), |outer| format!("{outer}.{name}")));
                all.insert(open.last().unwrap().clone(), Vec::new());
                if line.ends_with('}') {
                    open.pop();
                }
            }
            ["enum" | "oneof" | "service" | "rpc" | "extend" | "returns" | "{", ..] => {
                depth_of_others += line.matches('{').count();
                depth_of_others -= line.matches('}').count();
            }
            ["}", ..] | ["};", ..] if depth_of_others > 0 => depth_of_others -= 1,
            ["}", ..] => drop(open.pop()),
            _ => {
                // `repeated kind name = number`, `map<string, string> name = number`, `kind name = number`.
                let Some((left, right)) = line.split_once('=') else { continue };
                let Some(message) = open.last().filter(|_| !right.contains('"')) else { continue };
                let Some((kind, name)) = left.trim().rsplit_once(' ') else { continue };
                let number = right.trim().split([';', ' ', '[']).next().unwrap_or_default().parse();
                if let Ok(number) = number
                    && name.chars().next().is_some_and(char::is_lowercase)
                {
                    let kind = kind.trim_start_matches("repeated ").to_string();
                    all.get_mut(message).unwrap().push(Field { name: name.to_string(), kind, number });
                }
            }
        }
    }
    all
}

/// A field of bytes, as it travels.
pub fn chunk(number: u8, bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![number << 3 | 2];
    let mut length = bytes.len();
    while length >= 0x80 {
        out.push(u8::try_from(length & 0x7f).unwrap() | 0x80);
        length >>= 7;
    }
    out.push(u8::try_from(length).unwrap());
    out.extend_from_slice(bytes);
    out
}

/// A message for every string and map in it, however deep, with that one filled to these sizes.
fn filled(all: &Messages, message: &str, text: usize, map: usize) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    for field in all.get(message).unwrap_or_else(|| panic!("no message {message}")) {
        let path = format!("{message}.{}", field.name);
        match field.kind.as_str() {
            _ if UNBOUNDED.contains(&field.name.as_str()) => {}
            "string" if field.name == "mount_flags" => {
                found.push((path, chunk(field.number, "x".repeat(map).as_bytes())))
            }
            "string" if field.name.contains("node_id") => {
                found.push((path, chunk(field.number, "x".repeat(2 * text).as_bytes())));
            }
            "string" => found.push((path, chunk(field.number, "x".repeat(text).as_bytes()))),
            "map<string, string>" => {
                let entry = [chunk(1, b"key"), chunk(2, "x".repeat(map - 3).as_bytes())].concat();
                found.push((path, chunk(field.number, &entry)));
            }
            kind => {
                let nested = format!("{message}.{kind}");
                let inner = if all.contains_key(&nested) { nested } else { kind.to_string() };
                if all.contains_key(&inner) {
                    let deeper = filled(all, &inner, text, map).into_iter();
                    found.extend(deeper.map(|(path, bytes)| (path, chunk(field.number, &bytes))));
                }
            }
        }
    }
    found
}

// Reliability 73, for every field of every message, in both directions.
#[test]
fn every_string_and_map_of_the_wire_format_is_bounded() {
    let all = messages();
    let mut seen = 0;
    for method in Method::ALL.iter().filter(|method| method.path().contains("csi.v1")) {
        let request = format!("{}Request", method.name());
        for (over, text, map) in [(false, 128, 4096), (true, 129, 4097)] {
            for (path, bytes) in filled(&all, &request, text, map) {
                let call = wire::decode_call(*method, &bytes).unwrap();
                assert!(wire::encode_call(&call) == bytes, "{path} was not understood");
                assert_eq!(Limits::SPEC.check(&call).is_err(), over, "{path} with {text} or {map} bytes");
                seen += 1;
            }
            for (path, bytes) in filled(&all, &format!("{}Response", method.name()), text, map) {
                let response = wire::decode_response(*method, &bytes).unwrap();
                assert!(wire::encode_response(&response) == bytes, "{path} was not understood");
                assert_eq!(Limits::SPEC.check(&response).is_err(), over, "{path} with {text} or {map} bytes");
                seen += 1;
            }
        }
    }
    assert!(seen > 300, "only {seen} fields were found");
}

#[test]
fn the_refusal_names_the_field_and_not_its_value() {
    let call = Call::DeleteVolume(v1::DeleteVolumeRequest {
        volume_id: "v".into(),
        secrets: [("password".to_string(), "hunter2".repeat(1000))].into(),
    });
    let words = Limits::SPEC.check(&call).unwrap_err();
    assert_eq!(words.to_string(), "secrets has 7008 bytes, and at most 4096 are allowed");
}
