//! What form the client wants its answer in.

use http::{HeaderMap, header};

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

/// Shape and encoding of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub form: Form,
    pub yaml: bool,
    /// Aggregated discovery was asked for.
    pub aggregated: bool,
}

const JSON: Wanted = Wanted { form: Form::Plain, yaml: false, aggregated: false };

/// The first of the client's wishes we can fulfil.
pub(crate) fn wanted(headers: &HeaderMap) -> Result<Wanted, Refusal> {
    let Some(accept) = headers.get(header::ACCEPT) else { return Ok(JSON) };
    let accept = accept.to_str().map_err(|_| Refusal::bad_request("the Accept header cannot be read"))?;
    if accept.trim().is_empty() {
        return Ok(JSON);
    }
    accept.split(',').find_map(offer).ok_or_else(|| Refusal::not_acceptable(accept))
}

fn offer(range: &str) -> Option<Wanted> {
    let mut parts = range.split(';').map(str::trim);
    let yaml = match parts.next()? {
        "application/json" | "*/*" | "application/*" => false,
        "application/yaml" => true,
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
        ("", _, _) => Some(Wanted { yaml, ..JSON }),
        ("Table", "meta.k8s.io", "v1") => Some(Wanted { form: Form::Table, yaml, ..JSON }),
        ("PartialObjectMetadata" | "PartialObjectMetadataList", "meta.k8s.io", "v1") => {
            Some(Wanted { form: Form::Metadata, yaml, ..JSON })
        }
        ("APIGroupDiscoveryList", "apidiscovery.k8s.io", "v2") => Some(Wanted { aggregated: true, yaml, ..JSON }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accept(text: &str) -> Result<Wanted, Refusal> {
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT, text.parse().unwrap());
        wanted(&headers)
    }

    #[test]
    fn the_first_wish_we_can_fulfil_wins() {
        let kubectl = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
        assert_eq!(accept(kubectl).unwrap().form, Form::Table);
        assert_eq!(accept("application/vnd.kubernetes.protobuf, */*").unwrap(), JSON);
        assert_eq!(accept("application/vnd.kubernetes.protobuf,application/json").unwrap(), JSON);
        let metadata = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1, */*";
        assert_eq!(accept(metadata).unwrap().form, Form::Metadata);
        assert!(accept("application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList").unwrap().aggregated);
    }

    #[test]
    fn only_what_cannot_be_served_is_406() {
        assert_eq!(accept("application/vnd.kubernetes.protobuf").unwrap_err().code(), 406);
        assert_eq!(accept("text/html").unwrap_err().code(), 406);
        assert_eq!(wanted(&HeaderMap::new()).unwrap(), JSON);
    }
}
