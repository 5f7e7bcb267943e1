//! Leave to refer to objects of another namespace (`gateway.networking.k8s.io`).

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::Meta;
use crate::core_v1::part;

part! {
    /// Objects of its namespace may be referred to from others.
    ReferenceGrant { metadata: Meta, spec: GrantSpec }
}

part! {
    /// Who may refer to what.
    GrantSpec { from: Vec<GrantFrom>, to: Vec<GrantTo> }
}

part! {
    /// Objects of a kind in a namespace.
    GrantFrom { group: String, kind: String, namespace: String }
}

part! {
    /// Objects of a kind, or the one of that name.
    GrantTo { group: String, kind: String, name: Option<String> }
}
