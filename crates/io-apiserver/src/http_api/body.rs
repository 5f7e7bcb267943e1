//! Request bodies: bounded in size and time, of a known media type, and decoded with their duplicate fields noted.
//!
//! The thread that serves also runs controllers and driver, so long bodies are decoded on others, a few at a time.

use std::cell::RefCell;
use std::fmt;
use std::time::Duration;

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use http::{HeaderMap, header};
use http_body_util::BodyExt;
use serde::de::{DeserializeSeed, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;

use super::protobuf;
use crate::refusal::Refusal;

/// The most a request body may hold.
pub(crate) const LIMIT: usize = 3 << 20;
/// A body up to this length is decoded at once: that takes less than handing it to another thread is worth.
const SHORT: usize = 32 << 10;
/// Long bodies decoded at once, so that many senders do not take every processor.
static DECODERS: Semaphore = Semaphore::const_new(2);

/// Long bodies in memory at once, from their first long part until they are decoded. More wait with their senders.
static LONG_BODIES: Semaphore = Semaphore::const_new(32);

/// Reads the whole body, if it is not too long and does not take too long.
pub(crate) async fn read(body: Body, patience: Duration) -> Result<Bytes, Refusal> {
    timeout(patience, receive(body)).await.unwrap_or_else(|_| Err(Refusal::too_slow(patience)))
}

async fn receive(mut body: Body) -> Result<Bytes, Refusal> {
    let (mut received, mut place) = (BytesMut::new(), None);
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| Refusal::bad_request("the request body could not be received completely"))?;
        let Ok(data) = frame.into_data() else { continue };
        if received.len() + data.len() > LIMIT {
            return Err(Refusal::too_large(LIMIT));
        }
        if place.is_none() && received.len() + data.len() > SHORT {
            place = Some(LONG_BODIES.acquire().await.map_err(|_| Refusal::shutting_down())?);
        }
        received.extend_from_slice(&data);
    }
    Ok(match place {
        None => received.freeze(),
        Some(place) => Bytes::from_owner(LongBody { received, _place: place }),
    })
}

/// A long body, which gives its place free when nobody needs its bytes any more.
struct LongBody {
    received: BytesMut,
    _place: SemaphorePermit<'static>,
}

impl AsRef<[u8]> for LongBody {
    fn as_ref(&self) -> &[u8] {
        &self.received
    }
}

/// The media type without its parameters.
pub(crate) fn media_type(headers: &HeaderMap) -> &str {
    let value = headers.get(header::CONTENT_TYPE).and_then(|v| v.to_str().ok()).unwrap_or_default();
    value.split(';').next().unwrap_or_default().trim()
}

/// A body as a value, and the paths of fields that stood in it twice.
pub(crate) struct Decoded {
    pub value: Value,
    pub duplicates: Vec<String>,
}

/// Reads an object sent to be created or to replace another.
pub(crate) async fn object(media_type: &str, body: Bytes) -> Result<Decoded, Refusal> {
    let media_type = media_type.to_owned();
    apart(body, move |body| read_object(&media_type, body)).await
}

/// Decodes a body, on another thread if it is long.
pub(crate) async fn apart(
    body: Bytes,
    decode: impl FnOnce(&[u8]) -> Result<Decoded, Refusal> + Send + 'static,
) -> Result<Decoded, Refusal> {
    if body.len() <= SHORT {
        return decode(&body);
    }
    let _turn = DECODERS.acquire().await.map_err(|_| Refusal::shutting_down())?;
    tokio::task::spawn_blocking(move || decode(&body))
        .await
        .unwrap_or_else(|_| Err(Refusal::internal("the request body could not be decoded")))
}

fn read_object(media_type: &str, body: &[u8]) -> Result<Decoded, Refusal> {
    match media_type {
        "application/json" | "" => json(body),
        "application/yaml" => yaml(body),
        protobuf::TYPE => Ok(Decoded { value: protobuf::object(body)?, duplicates: Vec::new() }),
        other => Err(Refusal::unsupported_media(format!(
            "bodies of type \"{other}\" cannot be read; send application/json or application/yaml"
        ))),
    }
}

/// Reads JSON and notes duplicate fields.
pub(crate) fn json(body: &[u8]) -> Result<Decoded, Refusal> {
    let duplicates = RefCell::new(Vec::new());
    let mut deserializer = serde_json::Deserializer::from_slice(body);
    let value = Node { path: &Path::Root, duplicates: &duplicates }
        .deserialize(&mut deserializer)
        .and_then(|value| deserializer.end().map(|()| value))
        .map_err(|e| malformed("JSON", e.line(), e.column()))?;
    Ok(Decoded { value, duplicates: duplicates.into_inner() })
}

/// Reads YAML, of which JSON is a part.
pub(crate) fn yaml(body: &[u8]) -> Result<Decoded, Refusal> {
    if body.trim_ascii_start().first() == Some(&b'{') {
        return json(body);
    }
    let text = std::str::from_utf8(body).map_err(|_| Refusal::bad_request("the request body is not UTF-8 text"))?;
    // Only `true` and `false` are truth values: an object may well be called `y` or `on`.
    let options = serde_saphyr::options! { strict_booleans: true };
    let value = serde_saphyr::from_str_with_options::<Value>(text, options).map_err(|error| {
        let place = error.location();
        let (line, column) = place.map_or((0, 0), |p| (p.line() as usize, p.column() as usize));
        malformed("YAML", line, column)
    })?;
    Ok(Decoded { value, duplicates: Vec::new() })
}

// Only the place is told: the parser's words could repeat a secret of the body.
fn malformed(language: &str, line: usize, column: usize) -> Refusal {
    Refusal::bad_request(format!("the request body is not valid {language} (line {line}, column {column})"))
}

/// Where in a body we are; made into text only when somebody has to be told.
enum Path<'a> {
    Root,
    Field(&'a Path<'a>, &'a str),
    Item(&'a Path<'a>, usize),
}

impl Path<'_> {
    fn text(&self) -> String {
        // As much of a name as anybody reads: the text goes into headers.
        let short = |name: &str| name.chars().take(63).collect::<String>();
        match self {
            Path::Root => String::new(),
            Path::Field(Path::Root, name) => short(name),
            Path::Field(parent, name) => format!("{}.{}", parent.text(), short(name)),
            Path::Item(parent, at) => format!("{}[{at}]", parent.text()),
        }
    }
}

struct Node<'a> {
    path: &'a Path<'a>,
    duplicates: &'a RefCell<Vec<String>>,
}

impl<'de> DeserializeSeed<'de> for Node<'_> {
    type Value = Value;

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Node<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        loop {
            let node = Node { path: &Path::Item(self.path, list.len()), duplicates: self.duplicates };
            match items.next_element_seed(node)? {
                Some(item) => list.push(item),
                None => return Ok(Value::Array(list)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            let path = Path::Field(self.path, &key);
            if map.contains_key(&key) && self.duplicates.borrow().len() < 16 {
                self.duplicates.borrow_mut().push(path.text());
            }
            let value = entries.next_value_seed(Node { path: &path, duplicates: self.duplicates })?;
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn duplicate_fields_are_seen_and_the_last_one_counts() {
        let decoded = super::json(br#"{"spec":{"a":1,"l":[{"x":1,"x":2}],"a":3}}"#).ok().unwrap();
        assert_eq!(decoded.value, json!({"spec": {"a": 3, "l": [{"x": 2}]}}));
        assert_eq!(decoded.duplicates, ["spec.l[0].x", "spec.a"]);
    }

    #[test]
    fn any_bytes_are_refused_without_being_repeated() {
        // reliability 129
        let deep = "[".repeat(100_000);
        for bytes in [&b"{\"password\": hunter2"[..], b"", b"\xff\xfe", deep.as_bytes(), b"{} {}"] {
            let refusal = super::json(bytes).err().unwrap();
            assert_eq!(refusal.code(), 400);
            assert!(!refusal.message().contains("hunter2"));
        }
        for bytes in [&b"a: b: c"[..], b"\xff", b"a: [", b"\t- x: *nowhere"] {
            assert_eq!(super::yaml(bytes).err().unwrap().code(), 400, "{bytes:?}");
        }
    }

    #[test]
    fn yaml_is_read() {
        let decoded = super::yaml(b"kind: Pod\nmetadata:\n  name: on\n  labels: {x: \"1\"}\n").ok().unwrap();
        assert_eq!(decoded.value, json!({"kind": "Pod", "metadata": {"name": "on", "labels": {"x": "1"}}}));
    }

    #[test]
    fn other_media_types_are_415() {
        assert_eq!(read_object("application/cbor", b"\xa0").err().unwrap().code(), 415);
    }

    #[test]
    fn h4_long_names_and_long_lists_take_no_longer_than_their_bytes() {
        // One name of a megabyte and a list below it: a path for each item would be a terabyte of text.
        let items = vec!["0"; 750_000].join(",");
        let body = format!(r#"{{"{}":[{items}]}}"#, "k".repeat(1_400_000));
        assert!(body.len() < LIMIT);
        let began = std::time::Instant::now();
        super::json(body.as_bytes()).ok().unwrap();
        super::yaml(body.as_bytes()).ok().unwrap();
        assert!(began.elapsed() < std::time::Duration::from_secs(5), "{:?}", began.elapsed());
        let twice = format!(r#"{{"{0}":{{"a":1,"a":2}},"{0}":1}}"#, "k".repeat(100_000));
        assert!(super::json(twice.as_bytes()).ok().unwrap().duplicates.iter().all(|path| path.len() < 100));
    }

    #[test]
    fn h4_yaml_that_grows_when_it_is_read_is_refused() {
        let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
        for n in 1..12 {
            let above = vec![format!("*a{}", n - 1); 9].join(", ");
            bomb.push_str(&format!("a{n}: &a{n} [{above}]\n"));
        }
        let began = std::time::Instant::now();
        assert_eq!(super::yaml(bomb.as_bytes()).err().unwrap().code(), 400);
        assert!(began.elapsed() < std::time::Duration::from_secs(60), "{:?}", began.elapsed());
    }
}
