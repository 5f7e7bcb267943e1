//! The small kinds of the core group.

use super::meta::OBJECT_META;
use super::volume::OBJECT_REFERENCE;
use crate::Type::{Bool, BytesMap, Int32, Message, MicroTime, String, StringMap, Time};
use crate::messages;

messages! {
    in "k8s.io.api.core.v1";

    SECRET = "Secret" {
        1 metadata: Message(&OBJECT_META), 2 data: BytesMap, 3 type: String, 4 stringData: StringMap, 5 immutable? Bool,
    }
    CONFIG_MAP = "ConfigMap" {
        1 metadata: Message(&OBJECT_META), 2 data: StringMap, 3 binaryData: BytesMap, 4 immutable? Bool,
    }
    EVENT_SOURCE = "EventSource" { 1 component: String, 2 host: String }
    EVENT_SERIES = "EventSeries" { 1 count: Int32, 2 lastObservedTime: MicroTime }
    EVENT = "Event" {
        1 metadata: Message(&OBJECT_META), 2 involvedObject: Message(&OBJECT_REFERENCE), 3 reason: String,
        4 message: String, 5 source: Message(&EVENT_SOURCE), 6 firstTimestamp: Time, 7 lastTimestamp: Time,
        8 count: Int32, 9 type: String, 10 eventTime: MicroTime, 11 series? Message(&EVENT_SERIES), 12 action: String,
        13 related? Message(&OBJECT_REFERENCE), 14 reportingComponent! String, 15 reportingInstance! String,
    }
}
