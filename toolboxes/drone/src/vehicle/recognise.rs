//! Checks with the vehicle itself whether it is the simulation that the configuration names.
//!
//! Sends queries only, no commands. A vehicle that does not answer is not recognised. Read [`recognise`].

use std::time::Duration;

use tonic::transport::Channel;

use crate::config::Backend;
use crate::mavsdk::info;
use crate::mavsdk::info::info_service_client::InfoServiceClient;
use crate::mavsdk::param;
use crate::mavsdk::param::param_service_client::ParamServiceClient;

/// The `legacy_uid` of PX4's SITL with MAVLink system 1: the middle and last four bytes of its board's "SIMULATIONID"
/// (`boards/px4/sitl`). Each further instance adds one to it and to its MAVLink system. Autopilots on Linux boards use
/// other names there (`BBBLUEID00000000`).
const SITL_UID: u64 = 5_283_920_058_631_409_231;
/// Number of MAVLink systems that PX4 can have (`MAV_SYS_ID`).
const SYSTEMS: u64 = 250;
/// Attempts at reading the identification, and a parameter.
const TRIES: u32 = 40;
const PARAMETER_TRIES: u32 = 3;
const POLL: Duration = Duration::from_millis(50);
/// Time limit of one read; MAVSDK itself tries for 2 s.
const PARAMETER: Duration = Duration::from_secs(4);

/// What a vehicle has to be before any command is sent to it.
#[derive(Clone, Debug)]
pub(super) enum ExpectedVehicle {
    /// The simulator that we started, by its nonce.
    Ours(String),
    /// PX4's own simulation.
    Sitl,
    /// Any vehicle: the operator has allowed it.
    Real,
}

impl ExpectedVehicle {
    /// The expectation for a vehicle that we do not simulate ourselves.
    pub(super) fn of(backend: Backend) -> Self {
        match backend {
            Backend::Px4Sim | Backend::Sitl => Self::Sitl,
            Backend::Vehicle => Self::Real,
        }
    }

    /// Whether a recognised vehicle is a simulation.
    pub(super) fn simulated(&self) -> bool {
        !matches!(self, Self::Real)
    }
}

/// Checks whether this vehicle may be commanded; the inner error is a sentence for the tool's caller.
///
/// # Errors
/// The vehicle does not identify itself, or the connection broke.
///
/// # Cancel safety
/// Safe.
pub(super) async fn recognise(
    channel: &Channel,
    expected: &ExpectedVehicle,
) -> Result<Result<(), String>, String> {
    let verdict = match expected {
        ExpectedVehicle::Real => return Ok(Ok(())),
        ExpectedVehicle::Ours(nonce) => {
            let (uid, hardware_uid) = identity(channel).await?;
            let uid = format!("{uid:016x}");
            if uid == *nonce || hardware_uid.contains(nonce) {
                Ok(())
            } else {
                Err(format!(
                    "this is not the simulator that was started (its id is {uid})"
                ))
            }
        }
        ExpectedVehicle::Sitl => sitl(channel).await?,
    };
    Ok(verdict.map_err(|why| {
        format!(
            "{why}; an unidentified vehicle counts as real and gets no commands: a real one needs the backend `vehicle`, and \
             PX4's simulation the backend `sitl`"
        )
    }))
}

/// Checks for PX4's SITL with simulated sensors.
async fn sitl(channel: &Channel) -> Result<Result<(), String>, String> {
    let (uid, _) = identity(channel).await?;
    if !(SITL_UID..SITL_UID + SYSTEMS).contains(&uid) {
        return Ok(Err(format!(
            "this is not PX4's simulation (its id is {uid}, a simulation has {SITL_UID} plus its instance)"
        )));
    }
    match parameter(channel, "SYS_HITL").await? {
        Some(0) => {}
        Some(value) => {
            return Ok(Err(format!(
                "SYS_HITL is {value}: a real autopilot in the loop, a simulation has 0"
            )));
        }
        None => return Err("the vehicle does not say its SYS_HITL".to_string()),
    }
    // SIH sets the first, Gazebo the second (`init.d-posix/airframes`).
    for name in ["SENS_EN_GPSSIM", "SIM_GZ_EN"] {
        if parameter(channel, name).await? == Some(1) {
            return Ok(Ok(()));
        }
    }
    Ok(Err(
        "no simulated sensor is switched on (neither SENS_EN_GPSSIM nor SIM_GZ_EN is 1)".to_string(),
    ))
}

/// The vehicle's legacy uid and its uid.
async fn identity(channel: &Channel) -> Result<(u64, String), String> {
    let mut client = InfoServiceClient::new(channel.clone());
    for _ in 0..TRIES {
        let asked = client.get_identification(info::GetIdentificationRequest {}).await;
        let answer = asked.map_err(|status| status.message().to_string())?.into_inner();
        if let (Some(1), Some(identity)) = (
            answer.info_result.map(|result| result.result),
            answer.identification,
        ) {
            return Ok((identity.legacy_uid, identity.hardware_uid.to_lowercase()));
        }
        tokio::time::sleep(POLL).await;
    }
    Err("the vehicle did not report its id".to_string())
}

/// An integer parameter of the vehicle; `None` when it does not exist or the vehicle does not answer.
pub(super) async fn parameter(channel: &Channel, name: &str) -> Result<Option<i32>, String> {
    use param::param_result::Result as Said;
    let mut client = ParamServiceClient::new(channel.clone());
    for _ in 0..PARAMETER_TRIES {
        let request = param::GetParamIntRequest {
            name: name.to_string(),
        };
        let asked = tokio::time::timeout(PARAMETER, client.get_param_int(request)).await;
        let answer = match asked {
            Ok(answer) => answer
                .map_err(|status| status.message().to_string())?
                .into_inner(),
            Err(_) => continue,
        };
        match answer.param_result.map(|result| result.result()) {
            Some(Said::Success) => return Ok(Some(answer.value)),
            // PX4 does not answer a request for an unknown parameter.
            Some(Said::Timeout | Said::ConnectionError) | None => {}
            Some(_) => return Ok(None),
        }
    }
    Ok(None)
}
