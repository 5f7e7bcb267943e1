use std::collections::BTreeMap;

use csi::{Call, Method, Response, registration, v1};

/// A request that knows its answer's type.
pub trait Ask: Clone + Send + 'static {
    /// The answer.
    type Answer: Send + 'static;
    /// The method it calls.
    const METHOD: Method;
    /// The request as any call.
    fn into_call(self) -> Call;
    /// The answer, if it is this method's.
    fn read(response: Response) -> Option<Self::Answer>;
}

macro_rules! implement {
    ($($name:ident($request:ty) -> $response:ty, $service:literal;)*) => {
        $(impl Ask for $request {
            type Answer = $response;
            const METHOD: Method = Method::$name;
            fn into_call(self) -> Call {
                Call::$name(self)
            }
            fn read(response: Response) -> Option<$response> {
                match response {
                    Response::$name(answer) => Some(answer),
                    _ => None,
                }
            }
        })*
    };
}
csi::for_each_method!(implement);

/// The secrets a call carries.
pub fn secrets(call: &mut Call) -> Option<&mut BTreeMap<String, String>> {
    match call {
        Call::CreateVolume(r) => Some(&mut r.secrets),
        Call::DeleteVolume(r) => Some(&mut r.secrets),
        Call::ControllerPublishVolume(r) => Some(&mut r.secrets),
        Call::ControllerUnpublishVolume(r) => Some(&mut r.secrets),
        Call::ValidateVolumeCapabilities(r) => Some(&mut r.secrets),
        Call::CreateSnapshot(r) => Some(&mut r.secrets),
        Call::DeleteSnapshot(r) => Some(&mut r.secrets),
        Call::ListSnapshots(r) => Some(&mut r.secrets),
        Call::GetSnapshot(r) => Some(&mut r.secrets),
        Call::ControllerExpandVolume(r) => Some(&mut r.secrets),
        Call::ControllerModifyVolume(r) => Some(&mut r.secrets),
        Call::ControllerGetVolumeHealth(r) => Some(&mut r.secrets),
        Call::ControllerListVolumeHealth(r) => Some(&mut r.secrets),
        Call::CreateVolumeGroupSnapshot(r) => Some(&mut r.secrets),
        Call::DeleteVolumeGroupSnapshot(r) => Some(&mut r.secrets),
        Call::GetVolumeGroupSnapshot(r) => Some(&mut r.secrets),
        Call::NodeStageVolume(r) => Some(&mut r.secrets),
        Call::NodePublishVolume(r) => Some(&mut r.secrets),
        Call::NodeExpandVolume(r) => Some(&mut r.secrets),
        Call::NodeGetStorageHealth(r) => Some(&mut r.secrets),
        _ => None,
    }
}
