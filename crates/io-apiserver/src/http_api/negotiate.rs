//! The media type of an answer.

use http::{HeaderMap, header};

use super::protobuf;
use crate::refusal::Refusal;

/// The shape of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// The object itself.
    Plain,
    /// Rows and columns, as `kubectl get` prints them.
    Table,
    /// Only the metadata.
    Metadata,
}

/// How an answer is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    Json,
    Yaml,
    Protobuf,
}

/// The negotiated media type of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Accepted {
    pub form: Form,
    pub encoding: Encoding,
    /// Aggregated discovery was asked for.
    pub aggregated: bool,
}

const JSON: Accepted = Accepted { form: Form::Plain, encoding: Encoding::Json, aggregated: false };

/// The first media type in `Accept` that can be served. Not every kind has a protobuf form.
pub(crate) fn accepted(headers: &HeaderMap, has_protobuf: bool) -> Result<Accepted, Refusal> {
    let Some(accept) = headers.get(header::ACCEPT) else { return Ok(JSON) };
    let accept = accept.to_str().map_err(|_| Refusal::bad_request("the Accept header cannot be read"))?;
    if accept.trim().is_empty() {
        return Ok(JSON);
    }
    let served = |accepted: &Accepted| has_protobuf || accepted.encoding != Encoding::Protobuf;
    accept.split(',').filter_map(media_type).find(served).ok_or_else(|| Refusal::not_acceptable(accept))
}

fn media_type(range: &str) -> Option<Accepted> {
    let mut parts = range.split(';').map(str::trim);
    let encoding = match parts.next()? {
        "application/json" | "*/*" | "application/*" => Encoding::Json,
        "application/yaml" => Encoding::Yaml,
        protobuf::TYPE => Encoding::Protobuf,
        _ => return None,
    };
    let (mut shape, mut version, mut group) = ("", "", "");
    for (key, value) in parts.filter_map(|p| p.split_once('=')) {
        match key {
            "as" => shape = value,
            "v" => version = value,
            "g" => group = value,
            _ => {}
        }
    }
    match (shape, group, version) {
        ("", _, _) => Some(Accepted { encoding, ..JSON }),
        // Tables and metadata alone have no protobuf form here.
        _ if encoding == Encoding::Protobuf => None,
        ("Table", "meta.k8s.io", "v1") => Some(Accepted { form: Form::Table, encoding, ..JSON }),
        ("PartialObjectMetadata" | "PartialObjectMetadataList", "meta.k8s.io", "v1") => {
            Some(Accepted { form: Form::Metadata, encoding, ..JSON })
        }
        ("APIGroupDiscoveryList", "apidiscovery.k8s.io", "v2") => Some(Accepted { aggregated: true, encoding, ..JSON }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accept(text: &str, has_protobuf: bool) -> Result<Accepted, Refusal> {
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT, text.parse().unwrap());
        accepted(&headers, has_protobuf)
    }

    #[test]
    fn the_first_media_type_that_can_be_served_wins() {
        let kubectl = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
        assert_eq!(accept(kubectl, true).unwrap().form, Form::Table);
        for either in
            ["application/vnd.kubernetes.protobuf, */*", "application/vnd.kubernetes.protobuf,application/json"]
        {
            assert_eq!(accept(either, true).unwrap().encoding, Encoding::Protobuf);
            assert_eq!(accept(either, false).unwrap(), JSON);
        }
        let table = "application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io,application/json";
        assert_eq!(accept(table, true).unwrap(), JSON);
        let metadata = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1, */*";
        assert_eq!(accept(metadata, true).unwrap().form, Form::Metadata);
        assert!(
            accept("application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList", true).unwrap().aggregated
        );
    }

    #[test]
    fn only_what_cannot_be_served_is_406() {
        assert_eq!(accept("application/vnd.kubernetes.protobuf", false).unwrap_err().code(), 406);
        assert_eq!(accept("text/html", true).unwrap_err().code(), 406);
        assert_eq!(accepted(&HeaderMap::new(), true).unwrap(), JSON);
    }
}
