//! Encodes and decodes the messages of every method, in place of a generated client and server for each.

use csi::{Call, Method, Response, registration, v1};
use prost::{DecodeError, Message};

/// The largest message that is accepted. Lists of volumes outgrow the usual 4 MiB.
pub const LARGEST_MESSAGE: usize = 16 * 1024 * 1024;

macro_rules! switch {
    ($($service:ident.$name:ident($request:ty) -> $response:ty { $($columns:tt)* })*) => {
        /// The bytes of a request.
        pub fn encode_call(call: &Call) -> Vec<u8> {
            match call { $(Call::$name(message) => message.encode_to_vec()),* }
        }

        /// The request these bytes hold.
        pub fn decode_call(method: Method, bytes: &[u8]) -> Result<Call, DecodeError> {
            Ok(match method { $(Method::$name => Call::$name(<$request>::decode(bytes)?)),* })
        }

        /// The bytes of an answer.
        pub fn encode_response(response: &Response) -> Vec<u8> {
            match response { $(Response::$name(message) => message.encode_to_vec()),* }
        }

        /// The answer these bytes hold.
        pub fn decode_response(method: Method, bytes: &[u8]) -> Result<Response, DecodeError> {
            Ok(match method { $(Method::$name => Response::$name(<$response>::decode(bytes)?)),* })
        }
    };
}
csi::for_each_method!(switch);

/// The method a request travels to, if it is one of ours.
pub fn method_at(path: &str) -> Option<Method> {
    Method::ALL.iter().copied().find(|method| method.path() == path)
}

/// A message as it travels: not compressed, its length, its bytes.
pub fn frame(message: &[u8]) -> Vec<u8> {
    let length = u32::try_from(message.len()).unwrap_or(u32::MAX);
    let mut framed = Vec::with_capacity(5 + message.len());
    framed.push(0);
    framed.extend_from_slice(&length.to_be_bytes());
    framed.extend_from_slice(message);
    framed
}

/// The one message in a body, or `None` if there is not exactly one, whole and not compressed.
pub fn unframe(body: &[u8]) -> Option<&[u8]> {
    let (head, message) = body.split_first_chunk::<5>()?;
    let [compressed, a, b, c, d] = *head;
    let length = usize::try_from(u32::from_be_bytes([a, b, c, d])).ok()?;
    (compressed == 0 && length == message.len()).then_some(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_method_is_found_by_its_path_and_survives_the_trip() {
        for method in Method::ALL {
            assert_eq!(method_at(method.path()), Some(*method));
            let call = decode_call(*method, &[]).unwrap();
            assert_eq!(call.method(), *method);
            assert!(decode_call(*method, &encode_call(&call)).unwrap() == call);
            let response = decode_response(*method, &[]).unwrap();
            assert_eq!(response.method(), *method);
            assert!(decode_response(*method, &encode_response(&response)).unwrap() == response);
        }
        assert_eq!(method_at("/csi.v1.Identity/getplugininfo"), None);
    }

    #[test]
    fn a_body_holds_exactly_one_message() {
        assert_eq!(unframe(&frame(b"abc")), Some(&b"abc"[..]));
        assert_eq!(unframe(&frame(b"")), Some(&b""[..]));
        assert_eq!(unframe(b""), None, "nothing");
        assert_eq!(unframe(&[0, 0, 0, 0, 2, 1]), None, "cut short");
        assert_eq!(unframe(&[0, 0, 0, 0, 1, 1, 0]), None, "more than one");
        assert_eq!(unframe(&[1, 0, 0, 0, 1, 1]), None, "compressed");
    }
}
