//! The wire format of plugin registration, which kubelet and every registrar in the field share: KL-10.

use csi::registration::{InfoRequest, PluginInfo, RegistrationStatus, RegistrationStatusResponse};
use prost::Message as _;

/// A field of bytes: its number, their length, the bytes.
fn text(number: u8, text: &str) -> Vec<u8> {
    let length = u8::try_from(text.len()).unwrap_or(u8::MAX);
    [&[number << 3 | 2, length], text.as_bytes()].concat()
}

#[test]
fn kl_10_the_messages_have_the_numbers_of_kubelets() {
    let info = PluginInfo {
        r#type: "CSIPlugin".into(),
        name: "d.example".into(),
        endpoint: "/csi.sock".into(),
        supported_versions: vec!["1.0.0".into(), "1.1.0".into()],
    };
    let wire = [text(1, "CSIPlugin"), text(2, "d.example"), text(3, "/csi.sock"), text(4, "1.0.0"), text(4, "1.1.0")];
    assert_eq!(info.encode_to_vec(), wire.concat());
    let status = RegistrationStatus { plugin_registered: true, error: "why".into() };
    assert_eq!(status.encode_to_vec(), [vec![1 << 3, 1], text(2, "why")].concat());
    assert!(RegistrationStatusResponse {}.encode_to_vec().is_empty() && InfoRequest {}.encode_to_vec().is_empty());
    for (method, path) in [
        (csi::Method::GetInfo, "/pluginregistration.Registration/GetInfo"),
        (csi::Method::NotifyRegistrationStatus, "/pluginregistration.Registration/NotifyRegistrationStatus"),
    ] {
        assert_eq!(method.path(), path);
    }
}
