//! GetCapacity.

use csi::{Code, v1};
use v1::volume_capability::access_mode::Mode;

use crate::case::{T, cases, ensure, fail};
use crate::context::said;
use crate::requests::{files, plain};

fn question(t: &T) -> v1::GetCapacityRequest {
    v1::GetCapacityRequest {
        volume_capabilities: vec![plain()],
        parameters: t.suite.options.parameters.clone(),
        ..Default::default()
    }
}

cases! {
    parity "controller/capacity/answers" [Controller(GetCapacity)]
    "A driver that knows its capacity says it."
    |t| { t.ok(v1::GetCapacityRequest::default()).await?; }
    beyond "controller/capacity/not-negative" [Controller(GetCapacity)]
    "Capacities are not negative."
    |t| {
        let answer = t.ok(question(&t)).await?;
        ensure!(answer.available_capacity >= 0, "{} bytes are available", answer.available_capacity);
        ensure!(answer.maximum_volume_size.is_none_or(|size| size >= 0), "the largest volume is negative");
        ensure!(answer.minimum_volume_size.is_none_or(|size| size >= 0), "the smallest volume is negative");
    }
    beyond "controller/capacity/smallest-below-largest" [Controller(GetCapacity)]
    "The smallest volume is not larger than the largest."
    |t| {
        let answer = t.ok(question(&t)).await?;
        if let (Some(least), Some(most)) = (answer.minimum_volume_size, answer.maximum_volume_size) {
            ensure!(least <= most, "volumes have at least {least} and at most {most} bytes");
        }
    }
    beyond "controller/capacity/falls" [Controller(CreateDeleteVolume), Controller(GetCapacity), Alone]
    "Making a volume does not make more room."
    |t| {
        let before = t.ok(question(&t)).await?.available_capacity;
        t.volume().await?;
        let after = t.ok(question(&t)).await?.available_capacity;
        ensure!(after <= before, "{before} bytes were available, {after} after making a volume");
        if after == before {
            t.warn("making a volume takes nothing from the capacity");
        }
    }
    beyond "controller/capacity/comes-back" [Controller(CreateDeleteVolume), Controller(GetCapacity), Alone]
    "Deleting a volume gives its room back."
    |t| {
        let before = t.ok(question(&t)).await?.available_capacity;
        let volume = t.volume().await?;
        t.ok(crate::requests::delete(&volume.id)).await?;
        let after = t.ok(question(&t)).await?.available_capacity;
        if after < before {
            t.warn(format!("{before} bytes were available, {after} after making and deleting a volume"));
        }
    }
    beyond "controller/capacity/beyond-the-largest" [Controller(CreateDeleteVolume), Controller(GetCapacity)]
    "A volume beyond the largest size is refused."
    |t| {
        let Some(most) = t.ok(question(&t)).await?.maximum_volume_size else {
            return crate::case::skip("the driver names no largest size");
        };
        let Some(size) = most.checked_add(1 << 30) else { return crate::case::skip("the largest size is endless") };
        let request = v1::CreateVolumeRequest { capacity_range: crate::requests::at_least(size), ..t.create_request() };
        t.refused(request, &[Code::OutOfRange, Code::ResourceExhausted, Code::InvalidArgument], "beyond the largest size").await?;
    }
    beyond "controller/capacity/unsupported-use" [Controller(GetCapacity)]
    "For a use it does not offer a driver has room for nothing, or says so."
    |t| {
        let request = v1::GetCapacityRequest { volume_capabilities: vec![files(Mode::Unknown)], ..question(&t) };
        match t.ask(request).await {
            Ok(answer) if answer.available_capacity > 0 => t.warn("there is room for volumes of no access mode"),
            Ok(_) => {}
            Err(status) if status.code == Code::InvalidArgument => {}
            Err(status) => return fail(format!("an unknown access mode was answered {}", said(&status))),
        }
    }
}
