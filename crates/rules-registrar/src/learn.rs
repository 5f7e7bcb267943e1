//! What is known of a socket after it was asked or told something.

use control::{Outcome, Reply};
use csi::{Response, v1};

use crate::action::{Action, At};
use crate::local::{Local, NodeInfo, PluginAtSocket, RegisteredDriver, RegistrationProgress, Socket};

/// Takes note of what a socket answered, if it is still the one that was asked.
pub fn learn(local: &mut Local, did: &Action, got: &Outcome) {
    let Some(at) = did.at() else { return };
    if matches!(did, Action::TakeName(_)) {
        return take_name(local, at);
    }
    let Some(socket) = local.sockets.get_mut(&at.path).filter(|socket| socket.incarnation == at.incarnation) else {
        return;
    };
    let answer = match got {
        Outcome::Done(Reply::Csi(response)) => Some(response),
        Outcome::Done(Reply::Nothing | Reply::Object(_) | Reply::Objects(_) | Reply::Gone | Reply::Host(_))
        | Outcome::Refused(_)
        | Outcome::Unknown(_) => None,
    };
    match (did, answer) {
        (Action::AskWho(_), Some(Response::GetInfo(info))) => {
            local.absent.remove(&info.name);
            (socket.turned_away, socket.listed) = (None, false);
            if socket.holds.as_ref().is_some_and(|name| *name != info.name) {
                (socket.holds, socket.registered) = (None, None);
            }
            socket.progress = RegistrationProgress::Introduced(PluginAtSocket {
                kind: info.r#type.clone(),
                name: info.name.clone(),
                endpoint: info.endpoint.clone(),
                versions: info.supported_versions.clone(),
                wants_pod: None,
            });
        }
        (Action::ListDriver { .. }, _) => socket.listed |= matches!(got, Outcome::Done(_)),
        (Action::AskOptions(_), _) => optioned(socket, got),
        (Action::AskPlace(..), Some(Response::NodeGetInfo(info))) => placed(socket, info),
        (Action::AskAbilities(..), Some(Response::NodeGetCapabilities(answer))) => able(socket, answer),
        // Without an answer the entry stays as it is, until the next time.
        (Action::AskLimit { asked, .. }, answer) => {
            socket.limit_asked = Some(asked.clone());
            if let (RegistrationProgress::Told(_, place, _), Some(Response::NodeGetInfo(info))) =
                (&mut socket.progress, answer)
            {
                place.max_volumes = info.max_volumes_per_node;
            }
        }
        // Everything before the welcome is done, so the driver can be used even if it never hears it.
        (Action::Welcome(_), _) => welcomed(socket, &at.path, answer.is_some()),
        (Action::TurnAway { problem, now, .. }, answer) => {
            // It may have heard it without an answer, and then has to be welcomed again.
            if let RegistrationProgress::Told(plugin, place, can) = &socket.progress {
                socket.progress = RegistrationProgress::Able(plugin.clone(), place.clone(), *can);
            }
            if answer.is_some() {
                socket.turned_away = Some((problem.clone(), *now));
                (socket.holds, socket.registered) = (None, None);
            }
        }
        (_, Some(_) | None) => {}
    }
}

/// Reliability 65: a name that another has stays with it, whoever was decided on first.
fn take_name(local: &mut Local, at: &At) {
    let socket = local.sockets.get(&at.path).filter(|socket| socket.incarnation == at.incarnation);
    let Some(name) = socket.and_then(|socket| socket.progress.plugin()).map(|plugin| plugin.name.clone()) else {
        return;
    };
    if local.holder(&name).is_none()
        && let Some(socket) = local.sockets.get_mut(&at.path)
    {
        // What it was told before does not count any more, and who had the name meanwhile may have changed the entry.
        (socket.holds, socket.turned_away, socket.listed) = (Some(name), None, false);
    }
}

/// S1-10: a registrar that does not know the question speaks for a driver that does not want to know. An answer that
/// did not come is asked for again.
fn optioned(socket: &mut Socket, got: &Outcome) {
    let RegistrationProgress::Introduced(plugin) = &mut socket.progress else { return };
    plugin.wants_pod = match got {
        Outcome::Done(Reply::Csi(Response::GetCSIDriverInfo(info))) => {
            Some(info.options.as_ref().is_some_and(|options| options.requires_publish_pod))
        }
        Outcome::Done(_) | Outcome::Refused(_) => Some(false),
        Outcome::Unknown(_) => None,
    };
}

fn placed(socket: &mut Socket, info: &v1::NodeGetInfoResponse) {
    let RegistrationProgress::Introduced(plugin) = &socket.progress else { return };
    socket.progress = RegistrationProgress::Placed(plugin.clone(), NodeInfo::of(info));
}

fn able(socket: &mut Socket, answer: &v1::NodeGetCapabilitiesResponse) {
    let RegistrationProgress::Placed(plugin, place) = &socket.progress else { return };
    socket.progress = RegistrationProgress::Able(plugin.clone(), place.clone(), answer.into());
}

fn welcomed(socket: &mut Socket, path: &str, heard: bool) {
    let (RegistrationProgress::Able(plugin, place, can) | RegistrationProgress::Told(plugin, place, can)) =
        &socket.progress
    else {
        return;
    };
    let wants_pod = plugin.wants_pod.unwrap_or(false);
    let driver = RegisteredDriver { socket: plugin.socket(path), capabilities: *can, wants_pod };
    socket.registered = Some((plugin.name.clone(), driver));
    socket.turned_away = None;
    if heard {
        socket.progress = RegistrationProgress::Told(plugin.clone(), place.clone(), *can);
    }
}
