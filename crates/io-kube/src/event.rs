//! The events of a watch, as they come: a line each in JSON, a length and as many bytes in the binary form.

use api::{Kind, Object};
use bytes::{Buf, BytesMut};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::answer::{Form, ListMeta};

/// No object is as large as this: etcd takes a fortieth of it.
const LONGEST: usize = 64 << 20;
/// The length before each event.
const PREFIX: usize = size_of::<u32>();

/// What has come and is no whole event yet.
pub(crate) struct Events {
    form: Form,
    buffer: BytesMut,
    /// So many bytes were looked at, and no end of a line was among them.
    looked: usize,
}

impl Events {
    pub fn new(form: Form) -> Events {
        Events { form, buffer: BytesMut::new(), looked: 0 }
    }

    /// Takes what came.
    pub fn came(&mut self, data: &[u8]) {
        self.buffer.extend_from_slice(data);
    }

    /// The next whole event, still as it came.
    pub fn next(&mut self) -> Result<Option<BytesMut>, String> {
        match self.form {
            Form::Json => Ok(self.line()),
            Form::Binary => self.frame(),
        }
    }

    fn line(&mut self) -> Option<BytesMut> {
        let Some(end) = self.buffer[self.looked..].iter().position(|byte| *byte == b'\n') else {
            self.looked = self.buffer.len();
            return None;
        };
        let line = self.buffer.split_to(self.looked + end);
        self.buffer.advance(1);
        self.looked = 0;
        Some(line)
    }

    fn frame(&mut self) -> Result<Option<BytesMut>, String> {
        let Some(length) = self.buffer.first_chunk::<PREFIX>() else { return Ok(None) };
        let length = u32::from_be_bytes(*length) as usize;
        if length > LONGEST {
            return Err(format!("cannot understand the watch: it announces an event of {length} bytes"));
        }
        if self.buffer.len() < PREFIX + length {
            return Ok(None);
        }
        self.buffer.advance(PREFIX);
        Ok(Some(self.buffer.split_to(length)))
    }
}

/// One event.
#[derive(Debug)]
pub(crate) enum Event {
    /// The object is new or changed; or why it cannot be understood.
    Set(Result<Object, String>),
    /// The object is gone.
    Removed(Result<Object, String>),
    /// Everything up to this version has been told.
    Bookmark(String),
    /// The watch is over.
    Error { code: u16, message: String },
}

impl Event {
    /// Reads an event.
    pub fn read(form: Form, kind: Kind, event: &[u8]) -> Result<Event, String> {
        let unclear = |error: &dyn std::fmt::Display| format!("cannot understand an event: {error}");
        let (sort, object) = match form {
            Form::Json => {
                let line: Line<'_> = serde_json::from_slice(event).map_err(|error| unclear(&error))?;
                (line.r#type, line.object.get().as_bytes())
            }
            Form::Binary => wire::event(event).map_err(|error| unclear(&error))?,
        };
        Ok(match sort {
            "ADDED" | "MODIFIED" => Event::Set(form.object(kind, object)),
            "DELETED" => Event::Removed(form.object(kind, object)),
            "BOOKMARK" => Event::Bookmark(bookmark(form, kind, object).map_err(|error| unclear(&error))?),
            _error => {
                let said = form.said(object);
                Event::Error { code: said.code, message: said.message }
            }
        })
    }
}

/// A bookmark is an object of the kind that has only a version, which not every kind is read with.
fn bookmark(form: Form, kind: Kind, object: &[u8]) -> Result<String, String> {
    match form {
        Form::Json => {
            let bookmark: Bookmark = serde_json::from_slice(object).map_err(|error| error.to_string())?;
            Ok(bookmark.metadata.resource_version)
        }
        Form::Binary => Ok(form.object(kind, object)?.meta().resource_version.clone()),
    }
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

    fn read(event: &[u8]) -> Result<Event, String> {
        Event::read(Form::Binary, Kind::PersistentVolume, event)
    }

    #[test]
    fn events_are_cut_out_of_what_comes_in_any_pieces() {
        let frames = [&b"one"[..], b"", b"three"].map(|frame| {
            let length = u32::try_from(frame.len()).unwrap();
            [&length.to_be_bytes(), frame].concat()
        });
        for (form, stream, wanted) in [
            (Form::Binary, frames.concat(), vec!["one", "", "three"]),
            (Form::Json, b"one\n\nthree\n".to_vec(), vec!["one", "", "three"]),
        ] {
            for size in 1..=stream.len() {
                let (mut events, mut found) = (Events::new(form), Vec::new());
                for piece in stream.chunks(size) {
                    events.came(piece);
                    while let Some(event) = events.next().unwrap() {
                        found.push(String::from_utf8(event.to_vec()).unwrap());
                    }
                }
                assert_eq!(found, wanted, "{form:?} in pieces of {size}");
            }
        }
    }

    #[test]
    fn an_event_longer_than_any_object_is_refused_before_it_comes() {
        let mut events = Events::new(Form::Binary);
        events.came(&u32::MAX.to_be_bytes());
        assert!(events.next().unwrap_err().contains("4294967295 bytes"));
    }

    #[test]
    fn each_sort_of_binary_event_is_read() {
        let named = |read: Event| match read {
            Event::Set(Ok(object)) => format!("set {}", object.meta().name),
            Event::Removed(Ok(object)) => format!("removed {}", object.meta().name),
            Event::Bookmark(version) => format!("up to {version}"),
            Event::Error { code, message } => format!("{code} {message}"),
            Event::Set(Err(error)) | Event::Removed(Err(error)) => error,
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
            assert_eq!(named(read(&event(sort, &object)).unwrap()), wanted);
        }
    }

    #[test]
    fn an_event_cut_off_anywhere_is_an_error_or_an_object_that_is_not_understood() {
        let whole = event("ADDED", &volume("v", "7"));
        for end in 1..whole.len() {
            match read(&whole[..end]) {
                Ok(Event::Set(Ok(object))) => panic!("{object:?} from {end} bytes"),
                Ok(Event::Set(Err(_)) | Event::Error { .. }) | Err(_) => {}
                Ok(other) => panic!("{other:?} from {end} bytes"),
            }
        }
    }
}
