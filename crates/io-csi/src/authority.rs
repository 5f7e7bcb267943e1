//! Some callers (the kubelet's plugin manager among them) name the socket's path, percent-encoded, as the request's
//! `:authority`. The HTTP library refuses such a request as malformed before anyone sees it. Nobody on a Unix socket
//! needs the authority, so [`Plain`] overwrites it on its way in.
//!
//! A header field is overwritten in place, byte for byte: its value becomes as many plain letters as it had encoded
//! bytes. No length changes, so frames stay whole and nothing is buffered. Encoders use the Huffman code only where it
//! shortens, so the entry in our decoder's table is never larger than the one in the caller's, and later references to
//! either table mean the same entry.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tonic::transport::server::Connected;

use crate::server::Caller;

/// `:authority` spelled out, and the same in the header compression's Huffman code.
const NAME: &[u8] = b":authority";
const NAME_CODED: &[u8] = &[0xb8, 0x3b, 0x53, 0x39, 0xec, 0x32, 0x7d, 0x7f];
/// Where the name stands in the header compression's fixed table.
const NAME_INDEX: u64 = 1;
const FILL: u8 = b'l';

/// A connection on which every authority reads as a plain name.
pub struct Plain<S> {
    stream: S,
    scan: Scan,
}

impl<S> Plain<S> {
    /// Wraps a connection at its very start.
    pub fn new(stream: S) -> Self {
        Plain { stream, scan: Scan::default() }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Plain<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(cx, buffer);
        if matches!(polled, Poll::Ready(Ok(()))) {
            self.scan.pass(&mut buffer.filled_mut()[before..]);
        }
        polled
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Plain<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

impl Connected for Plain<tokio::net::UnixStream> {
    type ConnectInfo = Option<Caller>;
    fn connect_info(&self) -> Option<Caller> {
        Caller::of(&self.stream)
    }
}

/// Where in the frames the connection is.
#[derive(Clone, Copy)]
enum Frames {
    /// So many bytes of the greeting are still to come.
    Greeting(u32),
    /// Inside a frame's nine-byte head, of which so many bytes were seen.
    Head { seen: u8, bytes: [u8; 9] },
    /// At the pad length before a header block, with so many priority bytes to follow.
    PadLength { priority: u32, length: u32 },
    /// Inside the priority before a header block.
    Priority { left: u32, length: u32, padding: u32 },
    /// Inside a header block, so many bytes and then the padding.
    Block { length: u32, padding: u32 },
    /// Inside something that is none of our business.
    Skip(u32),
}

const HEADERS: u8 = 1;
const CONTINUATION: u8 = 9;
const PADDED: u8 = 0x8;
const PRIORITY: u8 = 0x20;
const NEXT_FRAME: Frames = Frames::Head { seen: 0, bytes: [0; 9] };

struct Scan {
    frames: Frames,
    fields: Fields,
}

impl Default for Scan {
    fn default() -> Self {
        Scan { frames: Frames::Greeting(24), fields: Fields::Start }
    }
}

impl Scan {
    fn pass(&mut self, bytes: &mut [u8]) {
        for byte in bytes {
            self.frames = self.step(byte);
        }
    }

    fn step(&mut self, byte: &mut u8) -> Frames {
        match self.frames {
            Frames::Greeting(left) => after(left, Frames::Greeting),
            Frames::Head { seen, mut bytes } => {
                bytes[usize::from(seen)] = *byte;
                if seen < 8 { Frames::Head { seen: seen + 1, bytes } } else { self.begin(bytes) }
            }
            Frames::PadLength { priority, length } => prelude(priority, length - 1, u32::from(*byte)),
            Frames::Priority { left, length, padding } => prelude(left - 1, length - 1, padding),
            Frames::Block { length, padding } => {
                self.fields = self.fields.step(byte);
                if length > 1 { Frames::Block { length: length - 1, padding } } else { skipping(padding) }
            }
            Frames::Skip(left) => after(left, Frames::Skip),
        }
    }

    /// The frame this head begins.
    fn begin(&mut self, head: [u8; 9]) -> Frames {
        let [a, b, c, kind, flags, ..] = head;
        let length = u32::from_be_bytes([0, a, b, c]);
        match kind {
            HEADERS => {
                self.fields = Fields::Start;
                let priority = if flags & PRIORITY == 0 { 0 } else { 5 };
                if flags & PADDED == 0 || length == 0 {
                    prelude(priority, length, 0)
                } else {
                    Frames::PadLength { priority, length }
                }
            }
            CONTINUATION => block(length, 0),
            _ => skipping(length),
        }
    }
}

/// What follows when `priority` bytes, a block and its padding make up the `length` bytes left of a frame.
fn prelude(priority: u32, length: u32, padding: u32) -> Frames {
    if length <= priority + padding {
        skipping(length)
    } else if priority > 0 {
        Frames::Priority { left: priority, length, padding }
    } else {
        block(length - padding, padding)
    }
}

fn after(left: u32, again: fn(u32) -> Frames) -> Frames {
    if left > 1 { again(left - 1) } else { NEXT_FRAME }
}

fn skipping(length: u32) -> Frames {
    if length == 0 { NEXT_FRAME } else { Frames::Skip(length) }
}

fn block(length: u32, padding: u32) -> Frames {
    if length == 0 { skipping(padding) } else { Frames::Block { length, padding } }
}

/// Where in a header block the connection is. A block may be spread over several frames.
#[derive(Clone, Copy)]
enum Fields {
    /// A field begins.
    Start,
    /// Inside a number that is not about us: a whole indexed field, or a table size.
    Other,
    /// Inside the number of a field's name.
    NameIndex(Number),
    /// A name's length begins.
    NameStart,
    /// Inside a name's length.
    NameLength { coded: bool, number: Number },
    /// Inside a name, of which so many bytes were seen, all as expected or not.
    Name { coded: bool, seen: u64, left: u64, ours: bool },
    /// A value's length begins; the value is ours to overwrite or not.
    ValueStart { ours: bool },
    /// Inside a value's length.
    ValueLength { ours: bool, number: Number },
    /// Inside a value.
    Value { ours: bool, left: u64 },
}

/// A number in the making: seven bits per byte, lowest first.
#[derive(Clone, Copy)]
struct Number {
    value: u64,
    shift: u32,
}

impl Number {
    /// Begins with the bits of the first byte; complete unless they are all set.
    fn begin(byte: u8, mask: u8) -> Result<u64, Number> {
        let value = u64::from(byte & mask);
        if byte & mask == mask { Err(Number { value, shift: 0 }) } else { Ok(value) }
    }

    fn step(self, byte: u8) -> Result<u64, Number> {
        let part = u64::from(byte & 0x7f).checked_shl(self.shift).unwrap_or(0);
        let value = self.value.saturating_add(part);
        if byte & 0x80 == 0 { Ok(value) } else { Err(Number { value, shift: self.shift.saturating_add(7) }) }
    }
}

impl Fields {
    fn step(self, byte: &mut u8) -> Fields {
        match self {
            Fields::Start => Fields::begin(*byte),
            Fields::Other => {
                if *byte & 0x80 == 0 {
                    Fields::Start
                } else {
                    Fields::Other
                }
            }
            Fields::NameIndex(number) => match number.step(*byte) {
                Ok(index) => Fields::named(index),
                Err(number) => Fields::NameIndex(number),
            },
            Fields::NameStart => {
                let coded = *byte & 0x80 != 0;
                match Number::begin(*byte, 0x7f) {
                    Ok(length) => Fields::name(coded, length),
                    Err(number) => Fields::NameLength { coded, number },
                }
            }
            Fields::NameLength { coded, number } => match number.step(*byte) {
                Ok(length) => Fields::name(coded, length),
                Err(number) => Fields::NameLength { coded, number },
            },
            Fields::Name { coded, seen, left, ours } => {
                let expected = if coded { NAME_CODED } else { NAME };
                let same = usize::try_from(seen).ok().and_then(|at| expected.get(at)) == Some(byte);
                let ours = ours && same;
                if left > 1 {
                    Fields::Name { coded, seen: seen + 1, left: left - 1, ours }
                } else {
                    Fields::ValueStart { ours }
                }
            }
            Fields::ValueStart { ours } => {
                let number = Number::begin(*byte, 0x7f);
                if ours {
                    // From here on it is spelled out, not coded.
                    *byte &= 0x7f;
                }
                match number {
                    Ok(length) => Fields::value(ours, length),
                    Err(number) => Fields::ValueLength { ours, number },
                }
            }
            Fields::ValueLength { ours, number } => match number.step(*byte) {
                Ok(length) => Fields::value(ours, length),
                Err(number) => Fields::ValueLength { ours, number },
            },
            Fields::Value { ours, left } => {
                if ours {
                    *byte = FILL;
                }
                Fields::value(ours, left - 1)
            }
        }
    }

    fn begin(byte: u8) -> Fields {
        let (mask, literal) = match byte {
            0x80..=0xff => (0x7f, false), // indexed
            0x40..=0x7f => (0x3f, true),  // literal, kept in the table
            0x20..=0x3f => (0x1f, false), // table size
            0x00..=0x1f => (0x0f, true),  // literal, not kept, or never
        };
        match (Number::begin(byte, mask), literal) {
            (Ok(_), false) => Fields::Start,
            (Err(_), false) => Fields::Other,
            (Ok(index), true) => Fields::named(index),
            (Err(number), true) => Fields::NameIndex(number),
        }
    }

    fn named(index: u64) -> Fields {
        if index == 0 { Fields::NameStart } else { Fields::ValueStart { ours: index == NAME_INDEX } }
    }

    fn name(coded: bool, length: u64) -> Fields {
        let expected = if coded { NAME_CODED } else { NAME };
        let ours = u64::try_from(expected.len()) == Ok(length);
        if length == 0 {
            Fields::ValueStart { ours: false }
        } else {
            Fields::Name { coded, seen: 0, left: length, ours }
        }
    }

    fn value(ours: bool, left: u64) -> Fields {
        if left == 0 { Fields::Start } else { Fields::Value { ours, left } }
    }
}

#[cfg(test)]
#[path = "authority_tests.rs"]
mod tests;
