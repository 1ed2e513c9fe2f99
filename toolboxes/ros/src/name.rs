//! Names of the graph as a caller gives them.

use ovos_toolbox_sdk::prelude::*;

/// The name with its leading `/`.
///
/// # Errors
/// It is not a ROS name, or that of a part of an action, which only `ros_goal` speaks to.
pub(crate) fn full(name: &str) -> Result<String, ToolError> {
    let name = format!("/{}", name.trim().trim_start_matches('/'));
    let is_word = |word: &str| {
        word.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
            && word
                .chars()
                .all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
    };
    if name.len() > 255 || !name[1..].split('/').all(is_word) {
        return Err(ToolError::bad_args(format!(
            "`{}` is not a ROS name: expected words of letters, digits and underscores with / between them",
            name.chars().take(80).collect::<String>()
        )));
    }
    match name.split('/').any(|word| word == "_action") {
        true => Err(ToolError::bad_args(format!(
            "{name} is a part of an action: send goals to the action itself with ros_goal"
        ))),
        false => Ok(name),
    }
}

/// What a call holds while it moves something: the name without its leading `/`.
pub(crate) fn subsystem(name: &str) -> String {
    name.trim_start_matches('/').to_owned()
}

#[cfg(test)]
mod tests {
    use super::full;

    #[test]
    fn a_name_is_whole_or_refused() {
        for (given, expected) in [
            ("cmd_vel", Some("/cmd_vel")),
            ("/cmd_vel", Some("/cmd_vel")),
            (" /tb3/cmd_vel ", Some("/tb3/cmd_vel")),
            ("", None),
            ("/", None),
            ("/a//b", None),
            ("/a/", None),
            ("/1a", None),
            ("/a b", None),
            ("/ä", None),
            ("/navigate/_action/send_goal", None),
        ] {
            assert_eq!(full(given).ok().as_deref(), expected, "{given}");
        }
    }
}
