//! The PX4 parameters that this vehicle uses, with PX4's defaults for a multicopter.
//!
//! Start with [`Params`].

use std::collections::BTreeMap;

/// A value with PX4's type.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Param {
    /// `INT32`.
    Int(i32),
    /// `REAL32`.
    Float(f32),
}

/// Name and default, from `parameters.json` of PX4 1.16.
const DEFAULTS: &[(&str, Param)] = &[
    ("BAT_CRIT_THR", Param::Float(0.07)),
    ("BAT_EMERGEN_THR", Param::Float(0.05)),
    ("BAT_LOW_THR", Param::Float(0.15)),
    ("COM_DISARM_LAND", Param::Float(2.0)),
    ("COM_DISARM_PRFLT", Param::Float(10.0)),
    ("COM_DL_LOSS_T", Param::Int(10)),
    ("COM_LOW_BAT_ACT", Param::Int(0)),
    ("COM_OBL_RC_ACT", Param::Int(0)),
    ("COM_OF_LOSS_T", Param::Float(1.0)),
    ("COM_RC_IN_MODE", Param::Int(3)),
    ("CP_DIST", Param::Float(-1.0)),
    ("GF_ACTION", Param::Int(2)),
    ("GF_MAX_HOR_DIST", Param::Float(0.0)),
    ("GF_MAX_VER_DIST", Param::Float(0.0)),
    // MAVLink's number of a quadcopter; heartbeats carry it.
    ("MAV_TYPE", Param::Int(2)),
    ("MIS_TAKEOFF_ALT", Param::Float(2.5)),
    ("MPC_TKO_SPEED", Param::Float(1.5)),
    ("MPC_XY_CRUISE", Param::Float(5.0)),
    ("MPC_XY_VEL_MAX", Param::Float(12.0)),
    ("MPC_YAWRAUTO_MAX", Param::Float(45.0)),
    ("MPC_Z_V_AUTO_DN", Param::Float(1.5)),
    ("MPC_Z_V_AUTO_UP", Param::Float(3.0)),
    ("NAV_DLL_ACT", Param::Int(0)),
    ("NAV_RCL_ACT", Param::Int(2)),
    ("RTL_RETURN_ALT", Param::Float(30.0)),
    // The values of PX4's own simulation (airframe 10040_sihsim_quadx), by which it is recognised.
    ("SENS_EN_GPSSIM", Param::Int(1)),
    ("SIM_GZ_EN", Param::Int(0)),
    ("SYS_AUTOSTART", Param::Int(10040)),
    ("SYS_HITL", Param::Int(0)),
];

/// A request for an unknown parameter, or with a value of the wrong type.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParamError {
    /// No such parameter.
    #[error("unknown param: {0}")]
    Unknown(String),
    /// It has another type.
    #[error("param types mismatch param: {0}")]
    Type(String),
}

/// All parameters, in memory only: every start begins with the defaults.
#[derive(Debug, Clone)]
pub struct Params(BTreeMap<&'static str, Param>);

impl Default for Params {
    fn default() -> Self {
        Self(DEFAULTS.iter().copied().collect())
    }
}

impl Params {
    /// The value of a parameter.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Param> {
        self.0.get(name).copied()
    }

    /// A floating point parameter; 0 if it does not exist.
    #[must_use]
    pub fn float(&self, name: &str) -> f64 {
        match self.get(name) {
            Some(Param::Float(value)) => f64::from(value),
            Some(Param::Int(value)) => f64::from(value),
            None => 0.0,
        }
    }

    /// An integer parameter; 0 if it does not exist.
    #[must_use]
    pub fn int(&self, name: &str) -> i32 {
        match self.get(name) {
            Some(Param::Int(value)) => value,
            _ => 0,
        }
    }

    /// Sets a parameter.
    ///
    /// # Errors
    /// An unknown name, or a value of another type.
    pub fn set(&mut self, name: &str, value: Param) -> Result<(), ParamError> {
        match self.0.get_mut(name) {
            None => Err(ParamError::Unknown(name.to_owned())),
            Some(old) if std::mem::discriminant(old) != std::mem::discriminant(&value) => {
                Err(ParamError::Type(name.to_owned()))
            }
            Some(old) => {
                *old = value;
                Ok(())
            }
        }
    }

    /// All parameters in order of name.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&'static str, Param)> + '_ {
        self.0.iter().map(|(name, value)| (*name, *value))
    }

    /// The index of a parameter in the order of names.
    #[must_use]
    pub fn index(&self, name: &str) -> Option<usize> {
        self.0.keys().position(|known| *known == name)
    }
}
