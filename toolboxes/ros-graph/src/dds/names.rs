//! The names that ROS 2 gives its topics and types in DDS.

use crate::definition::{Kind, TypeName, is_word};
use crate::error::GraphError;

/// `geometry_msgs::msg::dds_::Twist_`.
pub(super) fn dds_type(name: &TypeName) -> String {
    format!("{}::{}::dds_::{}_", name.package, name.kind.folder(), name.name)
}

/// The type of a name in DDS, or `None` where it is not of ROS.
pub(super) fn ros_type(dds_type: &str) -> Option<TypeName> {
    let mut parts = dds_type.split("::");
    let (package, folder, dds, name) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let kind = Kind::of_folder(folder)?;
    match (dds, parts.next(), name.strip_suffix('_')) {
        ("dds_", None, Some(name)) => Some(TypeName::new(package, kind, name)),
        _ => None,
    }
}

/// `cmd_vel` and `/cmd_vel` are `rt/cmd_vel` for the prefix `rt`.
pub(super) fn dds_name(prefix: &str, name: &str, suffix: &str) -> Result<String, GraphError> {
    let relative = name.strip_prefix('/').unwrap_or(name);
    match relative.split('/').all(is_word) {
        true => Ok(format!("{prefix}/{relative}{suffix}")),
        false => Err(GraphError::Name(name.to_owned())),
    }
}

/// The name in ROS of what has this prefix and suffix in DDS.
pub(super) fn ros_name(prefix: &str, dds_name: &str, suffix: &str) -> Option<String> {
    let name = dds_name.strip_prefix(prefix)?.strip_suffix(suffix)?;
    name.starts_with('/').then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::{dds_name, dds_type, ros_name, ros_type};

    #[test]
    fn names_are_those_of_ros() {
        assert_eq!(dds_name("rt", "cmd_vel", "").unwrap(), "rt/cmd_vel");
        assert_eq!(
            dds_name("rq", "/bot/add", "Request").unwrap(),
            "rq/bot/addRequest"
        );
        for wrong in ["", "/", "a b", "/a//b", "1a", "a/"] {
            assert!(dds_name("rt", wrong, "").is_err(), "{wrong}");
        }
        assert_eq!(ros_name("rr", "rr/bot/addReply", "Reply").unwrap(), "/bot/add");
        assert_eq!(ros_name("rt", "rq/x", ""), None);
        assert_eq!(ros_name("rt", "rtx", ""), None);
        let name = "geometry_msgs/msg/Twist".parse().unwrap();
        assert_eq!(dds_type(&name), "geometry_msgs::msg::dds_::Twist_");
        assert_eq!(ros_type("geometry_msgs::msg::dds_::Twist_"), Some(name));
        for wrong in [
            "Twist",
            "a::msg::dds_::B",
            "a::b::dds_::C_",
            "a::msg::dds_::B_::c",
        ] {
            assert_eq!(ros_type(wrong), None, "{wrong}");
        }
    }
}
