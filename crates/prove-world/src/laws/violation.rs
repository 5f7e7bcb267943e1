//! Every way to break a law, with what was found: one line each.

use std::fmt;

use crate::laws::Law;

macro_rules! violations {
    ($($law:ident { $($name:ident { $($field:ident: $type:ty),* } $text:literal;)+ })+) => {
        /// A law that does not hold, and what shows it.
        #[derive(Clone, Debug, PartialEq, Eq)]
        #[allow(missing_docs, reason = "the sentence of each is beside it")]
        pub enum Violation { $($($name { $($field: $type),* },)+)+ }

        impl Violation {
            /// The law it breaks.
            pub fn law(&self) -> Law {
                match self { $($(Violation::$name { .. } => Law::$law,)+)+ }
            }
        }

        impl fmt::Display for Violation {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self { $($(Violation::$name { $($field),* } => write!(f, $text),)+)+ }
            }
        }
    };
}

violations! {
    OneNode {
        AttachedToSeveral { volume: String, nodes: Vec<String> } "{volume} is attached to {nodes:?}";
        MountedOnSeveral { volume: String, nodes: Vec<String> } "{volume} is mounted on {nodes:?}";
    }
    MountedIsAttached {
        MountedUnattached { volume: String, node: String, path: String } "{volume} is mounted on {node} at {path}";
    }
    NoDetachWhileMounted {
        DetachesMounted { actor: String, volume: String, node: String } "{actor} detaches {volume} from {node}, where it is mounted";
    }
    MountedIsInUse {
        MountedUnreported { volume: String, node: String, path: String } "{volume} is mounted on {node} at {path}";
    }
    MountedIsRecorded {
        MountedUnrecorded { volume: String, node: String, path: String } "{volume} is mounted on {node} at {path}";
        MountsWithoutRecord { actor: String, volume: String, node: String } "{actor} mounts {volume} on {node} without a record";
        MountsUnlisted { actor: String, volume: String, path: String }
            "{actor} mounts {volume} at {path}, which its record does not list";
        DropsFromRecord { actor: String, volume: String, path: String }
            "{actor} drops {path} from the record of {volume}, which may be mounted there";
        RemovesRecord { actor: String, volume: String, node: String, path: String } "{actor} removes {path} while {volume} is mounted on {node}";
    }
    StageOrder {
        UnstagesPublished { actor: String, volume: String, path: String } "{actor} unstages {volume}, published at {path}";
        UnstagesUncertain { actor: String, volume: String, path: String }
            "{actor} unstages {volume}, which may yet be published at {path}";
        PublishedUnstaged { volume: String, node: String, path: String } "{volume} is published on {node} at {path} and not staged";
    }
    RunningHasVolumes {
        UnpublishesUnderProcess { actor: String, path: String, process: String } "{actor} unpublishes {path} while {process} runs";
        RunsWithoutVolume { process: String, node: String } "{process} runs on {node} without its volume";
    }
    RightVolume {
        SeesDirectory { process: String, path: String } "{process} sees a bare directory at {path}";
        SeesAnother { process: String, path: String, volume: String } "{process} sees {volume} at {path}";
        SeesOtherwise { process: String, path: String, read_only: bool }
            "{process} sees {path} with read-only {read_only}, against what its pod says";
        ShowsNothing { node: String, path: String } "{path} on {node} is a mount of no volume";
    }
    OnePod {
        SeveralPods { volume: String, paths: Vec<String> } "{volume} is published at {paths:?}";
    }
    RecordsWhole {
        RecordTorn { path: String } "{path} is no record";
    }
    UnreadableInUse {
        TouchesUnreadable { actor: String, path: String, what: String }
            "{actor} does {what} while {path} cannot be read";
        UnreportsUnreadable { node: String, path: String } "{node} does not report the volume of {path}";
    }
    SecretsKept {
        TellsSecret { actor: String, what: String } "{actor} puts it into {what}";
    }
    InlineOwn {
        PublishesForeign { actor: String, volume: String, path: String } "{actor} publishes {volume} at {path}";
        StagesInline { actor: String, volume: String } "{actor} stages {volume}, which is a pod's own";
    }
    GrowsInPlace {
        GrowsElsewhere { actor: String, volume: String, path: String } "{actor} grows {volume} at {path}";
    }
    ControllerFirst {
        GrowsFirst { actor: String, volume: String, asked: i64, has: i64 }
            "{actor} grows the filesystem of {volume} to {asked} and the volume has {has}";
    }
    OneServer {
        AttachesForPlugin { actor: String, volume: String, node: String }
            "{actor} attaches {volume} to {node}, which serves it by its plugin";
        AttachesHeld { actor: String, volume: String, node: String, holder: String }
            "{actor} attaches {volume} to {node}, and {holder} holds it by its plugin";
    }
    GateObeyed {
        AttachesSwitchedOff { actor: String, volume: String, node: String }
            "{actor} attaches {volume} to {node}, and was started with the gate of its plugin off";
    }
    AttachedIsAttached {
        SaysAttached { attachment: String, volume: String, node: String } "{attachment} says {volume} is attached to {node}";
    }
    FinalizerAfterDetach {
        AttachedUnheld { volume: String, node: String } "{volume} is attached to {node} and no attachment holds a finalizer for it";
    }
    Accounted {
        Unaccounted { volume: String } "{volume} is in the driver and nobody knows";
    }
    IntentFirst {
        CreatesWithoutIntent { actor: String, volume: String } "{actor} creates {volume} and nothing records the intent";
    }
    NoDeleteInUse {
        DeletesAttached { actor: String, volume: String, nodes: Vec<String> } "{actor} deletes {volume}, attached to {nodes:?}";
        DeletesWanted { actor: String, volume: String, node: String } "{actor} deletes {volume}, wanted on {node}";
        DeletesBound { actor: String, volume: String, claim: String } "{actor} deletes {volume}, bound to {claim}";
    }
    KeptStays {
        DeletesKept { actor: String, volume: String }
            "{actor} deletes {volume}, which the user had kept before it was asked for";
    }
    UsedClaimStays {
        ClaimWent { claim: String, pod: String } "{claim} is gone and {pod} uses it";
    }
    OneToOne {
        TwoClaims { volume: String, one: String, other: String } "{one} and {other} both name {volume}";
        ForAnother { claim: String, volume: String } "{claim} names {volume}, which is for another";
        TwoVolumes { handle: String, one: String, other: String } "{one} and {other} are both {handle}";
    }
    ForAClaim {
        CreatesForNobody { actor: String, volume: String } "{actor} creates {volume} for a claim that is gone";
    }
    SourceStays {
        DeletesSource { actor: String, volume: String, copy: String } "{actor} deletes {volume}, which {copy} is being made from";
    }
    SizesTrue {
        Shrank { volume: String, from: i64, to: i64 } "{volume} shrank from {from} to {to}";
        SaysTooMuch { claim: i64, volume: i64, there: i64 } "the claim says {claim}, its volume {volume}, and there are {there}";
    }
    NodeFirst {
        FilesystemSmaller { claim: i64, filesystem: i64 } "the claim says {claim} and its filesystem has {filesystem}";
    }
    SizeOnRecord {
        AsksUnrecorded { actor: String, volume: String, asked: i64, recorded: i64 } "{actor} asks for {asked} bytes of {volume}, and the claim says {recorded}";
        MayStillCome { late: i64, recorded: i64 } "{late} bytes may still come and the claim says {recorded}";
    }
    NeverSmaller {
        AsksForLess { actor: String, volume: String, asked: i64, has: i64 } "{actor} asks for {asked} bytes of {volume}, which has {has}";
    }
    AttributesTrue {
        AsksUnrecordedTier { actor: String, tier: String } "{actor} asks for {tier}, which is not on record";
        NamesTier { named: String, tier: String } "{named} is named and the volume is {tier}";
    }
    ListedAsRegistered {
        WelcomesUnlisted { actor: String, socket: String, says: String, listed: String }
            "{actor} tells {socket} that it is registered, which calls the node {says}, and CSINode has {listed}";
    }
    EntryStaysInUse {
        EntryWent { driver: String, node: String }
            "the entry of {driver} went from CSINode {node}, where a volume of it is in use";
    }
    OneRegistered {
        RegisteredTwice { sockets: Vec<String> }
            "the drivers at {sockets:?} are of one name and were both told that they are registered";
    }
    SilentFirst {
        CallsUnknown { actor: String, node: String } "{actor} calls {node} Unknown, which never was silent";
        TakesPod { actor: String, pod: String, node: String } "{actor} deletes {pod}, and {node} never was silent";
    }
    AsAsked {
        NodeNotNoticed { node: String } "{node} is silent, and is not called Unknown or keeps its pod";
        NodeNotForgiven { node: String } "{node} is heard of, and is still called Unknown or tainted";
        NotRegistered { sockets: Vec<String>, wanted: Vec<String> }
            "the drivers at {sockets:?} are registered, not those at {wanted:?}";
        EntryUntrue { listed: Vec<String>, wanted: Vec<String> } "CSINode lists {listed:?}, not {wanted:?}";
        PodLeft { pod: String } "pod {pod} was deleted and is still there";
        PodNotPlaced { pod: String } "pod {pod} and its claim are there and the pod is on no node";
        PodDoesNotRun { node: String } "the pod on {node} does not run with its volume";
        PathLeft { path: String } "{path} is left";
        LeftOnNode { node: String } "something is left on {node}";
        NodeStatusUntrue { node: String } "the status of {node} does not say what is so";
        AttachmentsTo { nodes: Vec<String> } "there are attachments to {nodes:?}";
        AttachmentsLeft { attachments: Vec<String>, attached: Vec<String> } "attachments {attachments:?} and, at the driver, {attached:?} are left or missing";
        EntryLeft { claim: String } "the journal still tells of claim {claim}";
        IntentLeft { claim: String } "the intent is still on claim {claim}";
        ClaimLeft { claim: String } "claim {claim} was deleted and is still there";
        VolumeLeft { volume: String } "the claim is gone and volume {volume} is left";
        HandleLeft { handle: String } "the claim is gone and {handle} is left in the driver";
        ClaimUnserved { phase: String, volumes: usize } "the claim is {phase} and there are {volumes} volumes";
        DriverDiffers { volumes: Vec<String> } "the driver's volumes {volumes:?} are not those of the claim";
        CopyNotMade {} "the source is there and the copy is not made";
        WrongCount { volumes: usize, claims: usize } "{volumes} volumes for {claims} claims that have one";
        NotInfeasible { asked: i64 } "{asked} bytes are more than there are, and the claim does not say so";
        NotGrown { asked: i64, has: i64, filesystem: i64 } "the claim asks for {asked}, has {has}, and its filesystem {filesystem}";
        NotModified { asked: String, says: String, tier: String } "the claim asks for {asked}, says {says}, and the volume is {tier}";
        JournalReads { text: String } "the journal reads {text}";
    }
    SilentRestart {
        WritesAfterRestart { actor: String, what: String } "{actor} would {what}";
    }
    NobodyOversleeps {
        Overslept { actor: String, what: String } "{actor}: {what}";
    }
    ComesToRest {
        NoWayToRest {} "no order of steps leads to rest from here";
        Circle {} "controllers undo each other's work in a circle from here";
        StillGoing { steps: usize } "not at rest after {steps} steps";
    }
    VersionsGrow {
        WentBack { kind: String, from: u64, to: u64 } "{kind} went from {from} to {to}";
        NewUnderOldVersion { object: String } "{object} is new under an old version";
        ChangedUnderOldVersion { object: String } "{object} changed under an old version";
        ChangedForGood { object: String } "{object} changed what never changes";
    }
    StaleIsRefused {
        WroteOnStale { verb: String, object: String, uid: Option<String>, version: Option<String> } "{verb} {object} on uid {uid:?} version {version:?}";
    }
    FinalizersHold {
        WentHeld { object: String, finalizers: Vec<String> } "{object} went with {finalizers:?}";
    }
    WithinItsRole {
        NotAllowed { actor: String, verb: String, kind: String, subresource: String } "{actor} has no right to {verb} {kind} {subresource}";
    }
}
