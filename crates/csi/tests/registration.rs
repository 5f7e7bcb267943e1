//! The wire format of plugin registration, which kubelet and every registrar in the field share: KL-10.

use csi::registration::{
    CsiDriverInfo, CsiDriverOptions, InfoRequest, PluginInfo, RegistrationStatus, RegistrationStatusResponse,
};
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

// S1-6: the numbers of the fields. S1-14: an answer with more in it than is known today is read for what is known.
#[test]
fn s1_14_what_a_later_registrar_says_besides_is_passed_over() {
    let wants = CsiDriverInfo {
        csi_endpoint: "/csi.sock".into(),
        options: Some(CsiDriverOptions { requires_publish_pod: true }),
    };
    let options = vec![1 << 3, 1];
    let wire = [text(1, "/csi.sock"), vec![2 << 3 | 2, 2], options.clone()].concat();
    assert_eq!(wants.encode_to_vec(), wire);
    let options = [options, vec![9 << 3, 1], text(10, "later")].concat();
    let length = u8::try_from(options.len()).unwrap_or(u8::MAX);
    let later = [text(1, "/csi.sock"), vec![2 << 3 | 2, length], options, text(7, "later")].concat();
    assert!(CsiDriverInfo::decode(later.as_slice()).is_ok_and(|read| read.encode_to_vec() == wire));
}
