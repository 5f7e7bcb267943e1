//! Splits the body of a watch into events and decodes them: JSON has one line for each event, protobuf a length and as many
//! bytes.

use api::{Kind, Object};
use bytes::{Buf, BytesMut};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::error::DecodeError;
use crate::negotiation::{ListMeta, MediaType, Unreadable};

/// No event is longer than this: etcd takes objects of a fortieth of it.
const LONGEST: usize = 64 << 20;
/// The length before each protobuf event.
const PREFIX: usize = size_of::<u32>();

/// Splits a stream of bytes into events.
pub(crate) struct EventDecoder {
    media_type: MediaType,
    buffer: BytesMut,
    /// How many bytes of the buffer are known to contain no end of a line.
    searched: usize,
}

impl EventDecoder {
    pub fn new(media_type: MediaType) -> EventDecoder {
        EventDecoder { media_type, buffer: BytesMut::new(), searched: 0 }
    }

    pub fn push(&mut self, data: &[u8]) {
        self.buffer.extend_from_slice(data);
    }

    /// The bytes of the next whole event; `None` until more bytes arrive.
    pub fn next(&mut self) -> Result<Option<BytesMut>, DecodeError> {
        match self.media_type {
            MediaType::Json => Ok(self.next_line()),
            MediaType::Protobuf => self.next_frame(),
        }
    }

    fn next_line(&mut self) -> Option<BytesMut> {
        let Some(end) = self.buffer[self.searched..].iter().position(|byte| *byte == b'\n') else {
            self.searched = self.buffer.len();
            return None;
        };
        let line = self.buffer.split_to(self.searched + end);
        self.buffer.advance(1);
        self.searched = 0;
        Some(line)
    }

    fn next_frame(&mut self) -> Result<Option<BytesMut>, DecodeError> {
        let Some(length) = self.buffer.first_chunk::<PREFIX>() else { return Ok(None) };
        let length = u32::from_be_bytes(*length) as usize;
        if length > LONGEST {
            return Err(DecodeError::TooLong(length));
        }
        if self.buffer.len() < PREFIX + length {
            return Ok(None);
        }
        self.buffer.advance(PREFIX);
        Ok(Some(self.buffer.split_to(length)))
    }
}

/// An event as the server sends it.
#[derive(Debug)]
pub(crate) enum ServerEvent {
    /// `ADDED` or `MODIFIED`.
    Applied(Result<Object, Box<Unreadable>>),
    /// `DELETED`.
    Deleted(Result<Object, Box<Unreadable>>),
    /// `BOOKMARK`: the watch has sent every event up to this `resourceVersion`.
    Bookmark(String),
    /// `ERROR`: the watch is over.
    Error { code: u16, message: String },
}

impl ServerEvent {
    pub fn decode(media_type: MediaType, kind: Kind, event: &[u8]) -> Result<ServerEvent, DecodeError> {
        let (event_type, object) = match media_type {
            MediaType::Json => {
                let line: Line<'_> = serde_json::from_slice(event).map_err(malformed)?;
                (line.r#type, line.object.get().as_bytes())
            }
            MediaType::Protobuf => wire::event(event).map_err(malformed)?,
        };
        Ok(match event_type {
            "ADDED" | "MODIFIED" => ServerEvent::Applied(media_type.watched_object(kind, object)),
            "DELETED" => ServerEvent::Deleted(media_type.watched_object(kind, object)),
            "BOOKMARK" => ServerEvent::Bookmark(bookmark(media_type, kind, object)?),
            _error => {
                let status = media_type.status(object);
                ServerEvent::Error { code: status.code, message: status.message }
            }
        })
    }
}

/// The version of a bookmark, which is an object that has nothing else. Not every kind decodes such an object from JSON.
fn bookmark(media_type: MediaType, kind: Kind, object: &[u8]) -> Result<String, DecodeError> {
    match media_type {
        MediaType::Json => {
            let bookmark: Bookmark = serde_json::from_slice(object).map_err(malformed)?;
            Ok(bookmark.metadata.resource_version)
        }
        MediaType::Protobuf => Ok(media_type.object(kind, object)?.meta().resource_version.0.clone()),
    }
}

fn malformed(error: impl std::fmt::Display) -> DecodeError {
    DecodeError::Malformed(format!("a watch event: {error}"))
}

#[derive(Deserialize)]
struct Line<'a> {
    r#type: &'a str,
    #[serde(borrow)]
    object: &'a RawValue,
}

#[derive(Deserialize)]
struct Bookmark {
    metadata: ListMeta,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(number: u8, content: &[u8]) -> Vec<u8> {
        [&[number << 3 | 2, u8::try_from(content.len()).unwrap()], content].concat()
    }

    fn enveloped(api_version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
        let of = [field(1, api_version.as_bytes()), field(2, kind.as_bytes())].concat();
        [wire::MAGIC.to_vec(), field(1, &of), field(2, raw), field(3, b""), field(4, b"")].concat()
    }

    fn event(sort: &str, object: &[u8]) -> Vec<u8> {
        [field(1, sort.as_bytes()), field(2, &field(1, object))].concat()
    }

    fn volume(name: &str, version: &str) -> Vec<u8> {
        enveloped(
            "v1",
            "PersistentVolume",
            &field(1, &[field(1, name.as_bytes()), field(6, version.as_bytes())].concat()),
        )
    }

    fn decode(event: &[u8]) -> Result<ServerEvent, DecodeError> {
        ServerEvent::decode(MediaType::Protobuf, Kind::PersistentVolume, event)
    }

    #[test]
    fn events_are_cut_out_of_what_comes_in_any_pieces() {
        let frames = [&b"one"[..], b"", b"three"].map(|frame| {
            let length = u32::try_from(frame.len()).unwrap();
            [&length.to_be_bytes(), frame].concat()
        });
        for (media_type, stream, wanted) in [
            (MediaType::Protobuf, frames.concat(), vec!["one", "", "three"]),
            (MediaType::Json, b"one\n\nthree\n".to_vec(), vec!["one", "", "three"]),
        ] {
            for size in 1..=stream.len() {
                let (mut events, mut found) = (EventDecoder::new(media_type), Vec::new());
                for piece in stream.chunks(size) {
                    events.push(piece);
                    while let Some(event) = events.next().unwrap() {
                        found.push(String::from_utf8(event.to_vec()).unwrap());
                    }
                }
                assert_eq!(found, wanted, "{media_type:?} in pieces of {size}");
            }
        }
    }

    #[test]
    fn an_event_longer_than_any_object_is_refused_before_it_comes() {
        let mut events = EventDecoder::new(MediaType::Protobuf);
        events.push(&u32::MAX.to_be_bytes());
        assert!(events.next().unwrap_err().to_string().contains("4294967295 bytes"));
    }

    #[test]
    fn each_type_of_protobuf_event_is_decoded() {
        let named = |event: ServerEvent| match event {
            ServerEvent::Applied(Ok(object)) => format!("set {}", object.meta().name),
            ServerEvent::Deleted(Ok(object)) => format!("removed {}", object.meta().name),
            ServerEvent::Bookmark(version) => format!("up to {version}"),
            ServerEvent::Error { code, message } => format!("{code} {message}"),
            ServerEvent::Applied(Err(error)) | ServerEvent::Deleted(Err(error)) => error.reason.to_string(),
        };
        let said = [field(3, b"too old"), field(4, b"Expired"), [0x30].to_vec(), vec![0x9a, 0x03]].concat();
        for (sort, object, wanted) in [
            ("ADDED", volume("v", "7"), "set v"),
            ("MODIFIED", volume("v", "8"), "set v"),
            ("DELETED", volume("v", "9"), "removed v"),
            ("BOOKMARK", volume("", "10"), "up to 10"),
            ("ERROR", enveloped("v1", "Status", &said), "410 too old"),
            (
                "ADDED",
                enveloped("v1", "Status", &said),
                "it is a \"Status\" of \"v1\" and not a PersistentVolume of v1",
            ),
        ] {
            assert_eq!(named(decode(&event(sort, &object)).unwrap()), wanted);
        }
    }

    #[test]
    fn an_event_cut_off_anywhere_is_an_error_or_an_object_that_is_not_understood() {
        let whole = event("ADDED", &volume("v", "7"));
        for end in 1..whole.len() {
            match decode(&whole[..end]) {
                Ok(ServerEvent::Applied(Ok(object))) => panic!("{object:?} from {end} bytes"),
                Ok(ServerEvent::Applied(Err(_)) | ServerEvent::Error { .. }) | Err(_) => {}
                Ok(other) => panic!("{other:?} from {end} bytes"),
            }
        }
    }
}
