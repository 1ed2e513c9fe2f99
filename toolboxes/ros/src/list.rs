//! `ros_list`: what is in the graph, within what a model reads.

use std::collections::{BTreeMap, BTreeSet};

use ovos_toolbox_sdk::prelude::*;
use ros_graph::graph::{Entities, Entity};

use crate::shown::LARGEST;
use crate::toolbox::Ros;

/// The services that each node has for its parameters and its types: they are counted, and `ros_params` asks them.
const OF_NODES: [&str; 7] = [
    "describe_parameters",
    "get_parameter_types",
    "get_parameters",
    "get_type_description",
    "list_parameters",
    "set_parameters",
    "set_parameters_atomically",
];

/// List what is in the ROS graph: topics, services, actions and nodes with their types.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct ListArgs {
    /// Only one kind of them.
    #[serde(default)]
    kind: ListedKind,
    /// Only those whose name or type has this text: `/camera`, `sensor_msgs`.
    #[serde(default)]
    filter: String,
}

#[derive(Clone, Copy, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum ListedKind {
    #[default]
    All,
    Topics,
    Services,
    Actions,
    Nodes,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct ListOutput {
    /// Names by type; "(no publisher)" stands behind those that only are subscribed to.
    topics: BTreeMap<String, Vec<String>>,
    services: BTreeMap<String, Vec<String>>,
    actions: BTreeMap<String, Vec<String>>,
    /// Those that have parameters.
    nodes: Vec<String>,
    /// How many there are of each kind.
    count: BTreeMap<&'static str, usize>,
    /// What was left out, and how it is seen.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    left_out: Vec<String>,
}

pub(crate) async fn list(context: Context<Ros>, args: ListArgs) -> Result<ListOutput, ToolError> {
    let graph = context.toolbox().joined.graph().await?;
    Ok(listed(graph.entities().await?, args.kind, args.filter.trim()))
}

/// The nodes, as far as the services of their parameters show them.
pub(crate) fn nodes(services: &[Entity]) -> BTreeSet<String> {
    let node = |service: &Entity| service.name.strip_suffix("/list_parameters").map(str::to_owned);
    services.iter().filter_map(node).collect()
}

fn listed(entities: Entities, kind: ListedKind, filter: &str) -> ListOutput {
    let wanted = |name: &str, types: &BTreeSet<String>| {
        filter.is_empty() || name.contains(filter) || types.iter().any(|of| of.contains(filter))
    };
    let shown = |of: ListedKind| kind == ListedKind::All || kind == of;
    let nodes: Vec<String> = nodes(&entities.services)
        .into_iter()
        .filter(|name| wanted(name, &BTreeSet::new()))
        .collect();
    let is_of_node = |entity: &Entity| {
        let (_, last) = entity.name.rsplit_once('/').unwrap_or_default();
        OF_NODES.contains(&last)
    };
    let mut left_out = Vec::new();
    // A filter that names them wants to see them.
    let of_nodes = entities
        .services
        .iter()
        .filter(|service| is_of_node(service))
        .count();
    let hides = |entity: &Entity| {
        is_of_node(entity) && !(filter.contains("parameter") || filter.contains("description"))
    };
    if of_nodes > 0 && shown(ListedKind::Services) && filter.is_empty() {
        left_out.push(format!(
            "{of_nodes} parameter and type services are left out; use ros_params for parameters"
        ));
    }
    let choose = |list: Vec<Entity>, of: ListedKind, hides: &dyn Fn(&Entity) -> bool| -> Vec<Entity> {
        let list = list
            .into_iter()
            .filter(|entity| shown(of) && wanted(&entity.name, &entity.types) && !hides(entity));
        list.collect()
    };
    let lists = [
        ("topics", choose(entities.topics, ListedKind::Topics, &|_| false)),
        (
            "services",
            choose(entities.services, ListedKind::Services, &hides),
        ),
        (
            "actions",
            choose(entities.actions, ListedKind::Actions, &|_| false),
        ),
    ];
    let nodes = if shown(ListedKind::Nodes) {
        nodes
    } else {
        Vec::new()
    };
    let mut count: BTreeMap<&'static str, usize> =
        lists.iter().map(|(what, list)| (*what, list.len())).collect();
    count.insert("nodes", nodes.len());
    // What comes first in a list of its kind stays where not all fits; the few of one kind are not cut for the many of another.
    let mut order: Vec<(&str, usize)> = lists.iter().map(|(what, list)| (*what, list.len())).collect();
    order.push(("nodes", nodes.len()));
    order.sort_by_key(|(_, count)| *count);
    let mut left = LARGEST - 1200;
    let mut output = ListOutput {
        topics: BTreeMap::new(),
        services: BTreeMap::new(),
        actions: BTreeMap::new(),
        nodes: Vec::new(),
        count,
        left_out,
    };
    for (what, _) in order {
        if what == "nodes" {
            let fitting = take(nodes.iter().map(|name| name.len() + 3), &mut left);
            output.nodes = nodes[..fitting].to_vec();
            note(
                &mut output.left_out,
                what,
                nodes[fitting..].iter().map(String::as_str),
            );
            continue;
        }
        let Some((_, list)) = lists.iter().find(|(of, _)| *of == what) else {
            continue;
        };
        let mut known = BTreeSet::new();
        let lines: Vec<(String, String)> = list
            .iter()
            .map(|entity| (types(entity), line(entity, what)))
            .collect();
        let sizes = lines
            .iter()
            .map(|(of, line)| line.len() + 3 + if known.insert(of) { of.len() + 6 } else { 0 });
        let fitting = take(sizes, &mut left);
        let by_type = match what {
            "topics" => &mut output.topics,
            "services" => &mut output.services,
            _ => &mut output.actions,
        };
        for (of, line) in &lines[..fitting] {
            by_type.entry(of.clone()).or_default().push(line.clone());
        }
        note(
            &mut output.left_out,
            what,
            list[fitting..].iter().map(|entity| entity.name.as_str()),
        );
    }
    output
}

/// How many of these sizes fit into what is left.
fn take(sizes: impl Iterator<Item = usize>, left: &mut usize) -> usize {
    let mut fitting = 0;
    for size in sizes {
        let Some(rest) = left.checked_sub(size) else { break };
        *left = rest;
        fitting += 1;
    }
    fitting
}

/// Says what did not fit, by the first words of the names.
fn note<'a>(left_out: &mut Vec<String>, what: &str, names: impl Iterator<Item = &'a str>) {
    let mut by_first: BTreeMap<&str, usize> = BTreeMap::new();
    for name in names {
        let first = name.trim_start_matches('/').split('/').next().unwrap_or_default();
        *by_first.entry(first).or_default() += 1;
    }
    if by_first.is_empty() {
        return;
    }
    let count: usize = by_first.values().sum();
    let mut most: Vec<(&str, usize)> = by_first.into_iter().collect();
    most.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let shown: Vec<String> = most
        .iter()
        .take(8)
        .map(|(first, count)| format!("/{} ({count})", first.chars().take(40).collect::<String>()))
        .collect();
    left_out.push(format!(
        "{count} {what}, such as {}: name a part with filter",
        shown.join(", ")
    ));
}

fn types(entity: &Entity) -> String {
    match entity.types.is_empty() {
        true => "type not told".to_owned(),
        false => entity
            .types
            .iter()
            .cloned()
            .collect::<Vec<String>>()
            .join(" and "),
    }
}

fn line(entity: &Entity, what: &str) -> String {
    let lacks = what == "topics" && entity.sources == Some(0);
    format!("{}{}", entity.name, if lacks { " (no publisher)" } else { "" })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entity(name: &str, of: &str) -> Entity {
        Entity {
            name: name.to_owned(),
            types: BTreeSet::from([of.to_owned()]),
            sources: Some(1),
            sinks: Some(1),
        }
    }

    fn graph(topics: usize, letters: usize) -> Entities {
        let name = |number: usize| format!("/robot_{}/{}_{number}", number % 7, "x".repeat(letters));
        let of = |number: usize| format!("package_{}_msgs/msg/Message{}", number % 9, number % 36);
        let service = |suffix: &str| entity(&format!("/base/{suffix}"), "rcl_interfaces/srv/Parameters");
        Entities {
            topics: (0..topics)
                .map(|number| entity(&name(number), &of(number)))
                .collect(),
            services: OF_NODES
                .iter()
                .map(|suffix| service(suffix))
                .chain([entity("/motor_power", "std_srvs/srv/SetBool")])
                .collect(),
            actions: vec![entity("/dock", "a_msgs/action/Dock")],
        }
    }

    #[test]
    fn a_large_graph_is_listed_within_what_a_model_reads() {
        for (topics, letters, all) in [(300, 12, true), (300, 60, false), (3000, 20, false)] {
            let output = listed(graph(topics, letters), ListedKind::All, "");
            let size = serde_json::to_string(&output).unwrap().len();
            assert!(size <= LARGEST, "{topics} topics in {size} bytes");
            let shown: usize = output.topics.values().map(Vec::len).sum();
            assert_eq!(shown == topics, all, "{shown} of {topics}");
            assert_eq!(output.count["topics"], topics);
            assert_eq!(
                output
                    .left_out
                    .iter()
                    .any(|said| said.contains("topics, such as /robot_")),
                !all
            );
            // The few are not cut for the many.
            assert_eq!(
                output.services.values().flatten().collect::<Vec<_>>(),
                ["/motor_power"]
            );
            assert_eq!(
                (output.actions.len(), &output.nodes[..]),
                (1, &["/base".to_owned()][..])
            );
        }
    }

    #[test]
    fn a_filter_and_a_kind_choose() {
        for (kind, filter, expected) in [
            (ListedKind::All, "", [20, 1, 1, 1]),
            (ListedKind::Topics, "", [20, 0, 0, 0]),
            (ListedKind::Services, "", [0, 1, 0, 0]),
            (ListedKind::Services, "get_parameter", [0, 2, 0, 0]),
            (ListedKind::All, "robot_0", [3, 0, 0, 0]),
            (ListedKind::All, "package_0_msgs", [3, 0, 0, 0]),
            (ListedKind::Nodes, "base", [0, 0, 0, 1]),
            (ListedKind::All, "nothing", [0, 0, 0, 0]),
        ] {
            let output = listed(graph(20, 5), kind, filter);
            let count = ["topics", "services", "actions", "nodes"].map(|what| output.count[what]);
            assert_eq!(count, expected, "{filter}");
        }
    }
}
