//! `ros_describe`: what a topic, a service, an action or a type is made of.

use ovos_toolbox_sdk::prelude::*;
use ros_graph::definition::{Definition, Kind, TypeName};
use ros_graph::graph::{Entities, Entity, Graph};

use crate::name::full;
use crate::shown::LARGEST;
use crate::toolbox::Ros;

/// Describe a topic, a service, an action or a type of the ROS graph: who has it, and its type as text.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct DescribeArgs {
    /// A name of the graph, `/odom`, or a type, `nav_msgs/msg/Odometry`.
    name: String,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct DescribeOutput {
    name: String,
    /// topic, service, action or type.
    kind: &'static str,
    /// Its types; more than one where nodes disagree.
    types: Vec<String>,
    /// How many publish or serve it; absent where that is not told.
    #[serde(skip_serializing_if = "Option::is_none")]
    publishers: Option<usize>,
    /// How many subscribe to it; absent where that is not told.
    #[serde(skip_serializing_if = "Option::is_none")]
    subscribers: Option<usize>,
    /// The definition of the type, with those of the types in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    definition: Option<String>,
    /// What is not known, or was left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

pub(crate) async fn describe(context: Context<Ros>, args: DescribeArgs) -> Result<DescribeOutput, ToolError> {
    let graph = context.toolbox().joined.graph().await?;
    // Both `nav_msgs/msg/Odometry` and `nav_msgs/Odometry` are types, and the latter may be a name as well.
    let of: Option<TypeName> = args.name.trim().parse().ok();
    let found = match full(&args.name) {
        Ok(name) => find(graph.entities().await?, &name),
        Err(_) if of.is_some() => None,
        Err(error) => return Err(error),
    };
    let output = match (found, of) {
        (Some((kind, entity)), _) => {
            let types: Vec<String> = entity.types.iter().cloned().collect();
            DescribeOutput {
                name: entity.name,
                kind,
                publishers: entity.sources,
                subscribers: entity.sinks.filter(|_| kind == "topic"),
                definition: None,
                note: (types.len() != 1).then(|| match types.is_empty() {
                    true => "its type is unknown".to_owned(),
                    false => {
                        "nodes disagree about its type: messages of one are not heard by those of another"
                            .to_owned()
                    }
                }),
                types,
            }
        }
        (None, Some(of)) => DescribeOutput {
            name: of.to_string(),
            kind: "type",
            types: vec![of.to_string()],
            publishers: None,
            subscribers: None,
            definition: None,
            note: None,
        },
        (None, None) => {
            return Err(ToolError::bad_args(format!(
                "no topic, service or action {} in the graph: ros_list shows what there is",
                args.name.trim()
            )));
        }
    };
    Ok(with_text(graph.as_ref(), output).await)
}

fn find(entities: Entities, name: &str) -> Option<(&'static str, Entity)> {
    let lists = [
        ("topic", entities.topics),
        ("service", entities.services),
        ("action", entities.actions),
    ];
    let mut all = lists
        .into_iter()
        .flat_map(|(kind, list)| list.into_iter().map(move |entity| (kind, entity)));
    all.find(|(_, entity)| entity.name == name)
}

/// Adds the text of its first type.
async fn with_text(graph: &dyn Graph, mut output: DescribeOutput) -> DescribeOutput {
    let Some(of) = output.types.first().and_then(|of| of.parse::<TypeName>().ok()) else {
        return output;
    };
    match text_of(graph, &of).await {
        Ok(text) => {
            let limit = LARGEST - 2000;
            if text.len() > limit {
                output.note =
                    Some("the definition is longer than what is shown: describe the types in it".to_owned());
            }
            output.definition = Some(text.chars().take(limit).collect());
        }
        Err(error) => output.note = Some(error.to_string()),
    }
    output
}

/// The parts of a type with the types in them, in the language of .msg files.
async fn text_of(graph: &dyn Graph, of: &TypeName) -> Result<String, ros_graph::error::GraphError> {
    let parts: &[&str] = match of.kind {
        Kind::Message => &[""],
        Kind::Service => &["_Request", "_Response"],
        Kind::Action => &["_Goal", "_Result", "_Feedback"],
    };
    let mut all: Vec<Definition> = Vec::new();
    for part in parts {
        for definition in graph.definitions(&of.part(part)).await? {
            if !all.iter().any(|known| known.name == definition.name) {
                all.push(definition);
            }
        }
    }
    Ok(all
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<String>>()
        .join("\n"))
}
