use wire::Type::{Message, Messages, String};
use wire::messages;
use wire::messages::OBJECT_META;

use super::KindRules;
use crate::fields::meta::META;
use crate::fields::tables;

pub(super) static RULES: KindRules = KindRules::plain(&FIELDS);

// A CustomResourceDefinition declares it, so it has no protobuf form and no field numbers.
messages! {
    in "io.k8s.networking.gateway.v1beta1";

    REFERENCE_GRANT_FROM = "ReferenceGrantFrom" { group! String, kind! String, namespace! String }
    REFERENCE_GRANT_TO = "ReferenceGrantTo" { group! String, kind! String, name? String }
    REFERENCE_GRANT_SPEC = "ReferenceGrantSpec" {
        from: Messages(&REFERENCE_GRANT_FROM), to: Messages(&REFERENCE_GRANT_TO),
    }
    REFERENCE_GRANT = "ReferenceGrant" { metadata: Message(&OBJECT_META), spec: Message(&REFERENCE_GRANT_SPEC) }
}

tables! {
    FIELDS = REFERENCE_GRANT {
        honoured metadata => META;
        honoured spec => GRANT_TERMS;
    }
    GRANT_TERMS = REFERENCE_GRANT_SPEC {
        honoured from => GRANT_FROM;
        honoured to => GRANT_TO;
    }
    GRANT_FROM = REFERENCE_GRANT_FROM {
        honoured group, kind, namespace;
    }
    GRANT_TO = REFERENCE_GRANT_TO {
        honoured group, kind, name;
    }
}
