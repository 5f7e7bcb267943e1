//! What a container may do on the machine: `securityContext` of pod and container, and `resources`.

use alloc::format;
use alloc::string::String;

use api::{ConfinementProfile, Container, Pod, Quantity};
use control::host::{LinuxCapabilities, ProcessLimits, Sandbox};

use crate::Reason;
use crate::status::Blocked;

/// The sandbox of a container, or why it cannot be had. What a container says counts before what its pod says.
pub fn of(pod: &Pod, container: &Container) -> Result<Sandbox, Blocked> {
    offered(pod, container)?;
    let (shared, own) = (&pod.spec.security_context, &container.security_context);
    let user = id("runAsUser", own.run_as_user.or(shared.run_as_user))?;
    if own.run_as_non_root.or(shared.run_as_non_root) == Some(true) && user.unwrap_or(0) == 0 {
        let text = format!("container {} has runAsNonRoot and would run as root; set runAsUser", container.name);
        return Err(wrong(text));
    }
    let privileged = own.privileged == Some(true);
    if privileged && own.allow_privilege_escalation == Some(false) {
        let text = format!("container {} is privileged, so allowPrivilegeEscalation cannot be false", container.name);
        return Err(wrong(text));
    }
    let groups = shared.supplemental_groups.iter().chain(&shared.fs_group);
    let profile = own.seccomp_profile.as_ref().or(shared.seccomp_profile.as_ref());
    let hostname = if pod.spec.hostname.is_empty() { &pod.metadata.name } else { &pod.spec.hostname };
    Ok(Sandbox {
        pod: pod.metadata.uid.clone(),
        hostname: if pod.spec.host_network { String::new() } else { hostname.clone() },
        user: user.unwrap_or(0),
        group: id("runAsGroup", own.run_as_group.or(shared.run_as_group))?,
        supplemental_groups: groups
            .filter_map(|group| id("supplementalGroups", Some(*group)).transpose())
            .collect::<Result<_, _>>()?,
        capabilities: if privileged { LinuxCapabilities::ALL } else { capabilities(container)? },
        no_new_privileges: own.allow_privilege_escalation == Some(false),
        seccomp: profile.is_none_or(|profile| profile.r#type != "Unconfined"),
        privileged,
        read_only_root: own.read_only_root_filesystem != Some(false),
        host_network: pod.spec.host_network,
        host_ipc: pod.spec.host_ipc,
        limits: limits(container)?,
    })
}

/// What changes how the process is isolated and is not done here is refused rather than left out.
fn offered(pod: &Pod, container: &Container) -> Result<(), Blocked> {
    let (shared, own) = (&pod.spec.security_context, &container.security_context);
    let named =
        |profile: &Option<ConfinementProfile>| profile.as_ref().is_some_and(|profile| profile.r#type == "Localhost");
    let asked = [
        ("spec.hostPID", pod.spec.host_pid),
        ("spec.shareProcessNamespace", pod.spec.share_process_namespace),
        ("spec.hostUsers: false", pod.spec.host_users == Some(false)),
        ("securityContext.sysctls", !shared.sysctls.is_empty()),
        ("seccompProfile.type: Localhost", named(&own.seccomp_profile) || named(&shared.seccomp_profile)),
        ("appArmorProfile.type: Localhost", named(&own.app_armor_profile) || named(&shared.app_armor_profile)),
        ("securityContext.seLinuxOptions", own.se_linux_options.is_some() || shared.se_linux_options.is_some()),
        ("securityContext.procMount: Unmasked", own.proc_mount == "Unmasked"),
    ];
    match asked.into_iter().find(|(_, asked)| *asked) {
        None => Ok(()),
        Some((field, _)) => Err(Blocked {
            reason: Reason::SecurityContextNotSupported,
            message: format!("{field} is not supported yet, and running the pod without it could harm; remove it"),
            fatal: false,
        }),
    }
}

fn wrong(message: String) -> Blocked {
    Blocked { reason: Reason::CreateContainerConfigError, message, fatal: false }
}

/// A user or group as the kernel counts them.
fn id(field: &str, number: Option<i64>) -> Result<Option<u32>, Blocked> {
    let Some(number) = number else { return Ok(None) };
    match u32::try_from(number) {
        // The kernel's own word for "no change".
        Ok(u32::MAX) | Err(_) => Err(wrong(format!("{field} {number} is no user or group number of this machine"))),
        Ok(number) => Ok(Some(number)),
    }
}

/// The default set, without what is dropped, with what is added.
fn capabilities(container: &Container) -> Result<LinuxCapabilities, Blocked> {
    let asked = &container.security_context.capabilities;
    let all = |names: &[String]| {
        names.iter().try_fold(LinuxCapabilities::NONE, |all, name| match LinuxCapabilities::named(name) {
            Some(one) => Ok(all.with(one)),
            None => Err(wrong(format!(
                "container {} names the capability {name:?}, which the kernel does not have; names are like NET_ADMIN",
                container.name
            ))),
        })
    };
    Ok(LinuxCapabilities::DEFAULT.without(all(&asked.drop)?).with(all(&asked.add)?))
}

fn limits(container: &Container) -> Result<ProcessLimits, Blocked> {
    let resources = &container.resources;
    let positive = |name: &str, quantity: Option<&Quantity>, read: fn(&Quantity) -> Result<i64, api::BadQuantity>| {
        let Some(quantity) = quantity else { return Ok(None) };
        let amount = read(quantity).ok().and_then(|amount| u64::try_from(amount).ok());
        let wrong = || wrong(format!("the {name} {quantity} of container {} is no amount", container.name));
        amount.ok_or_else(wrong).map(|amount| Some(amount).filter(|amount| *amount > 0))
    };
    Ok(ProcessLimits {
        memory: positive("memory limit", resources.limits.get("memory"), Quantity::bytes)?,
        cpu_millis: positive("cpu limit", resources.limits.get("cpu"), Quantity::millis)?,
        cpu_request_millis: positive("cpu request", resources.requests.get("cpu"), Quantity::millis)?,
    })
}
