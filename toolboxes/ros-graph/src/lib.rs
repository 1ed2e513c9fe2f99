//! Any ROS graph without a ROS installation.
//!
//! A driver or a toolbox joins the graph of a robot, sees what is in it, and reads, commands, calls and sends goals with
//! JSON values. Types are text that is read at run time: nothing is generated and nothing is compiled for a robot.
//!
//! - **Types**: [`text`] reads `.msg`, `.srv` and `.action`; a [`library::Library`] keeps [`definition`]s: the
//!   [`shipped`] ones of a distribution, those of an owner's folder, and those that the graph describes ([`description`]).
//!   A [`shape::Shape`] is one of them with all that lies in it.
//! - **Bytes**: [`cdr`] is the codec between JSON and the wire. All of this is pure.
//! - **Carriers**: [`dds`] and [`rosbridge`] implement [`graph::Graph`]. What waits is bounded ([`inbox`]).
//!
//! [`velocity`] is what a driver of a base begins with, [`goals`] what ends every goal that was sent; a [`picture`] is one JPEG of what a
//! camera says.
//!
//! A topic of another type, a topic that nothing listens to, a service that does not answer and a peer that left are
//! errors ([`error::GraphError`]), never a success.
//!
//! ```
//! use ros_graph::cdr::{Cdr, Order};
//! use ros_graph::library::Library;
//! use ros_graph::shipped::Distribution;
//! use serde_json::json;
//!
//! let library = Library::shipped(Distribution::Jazzy)?;
//! let twist = library.shape(&"geometry_msgs/msg/Twist".parse()?)?;
//! // What is not given is zero.
//! let bytes = Cdr::default().encode(&twist, &json!({"linear": {"x": 0.2}}))?;
//! assert_eq!(bytes.len(), 48);
//! let value = Cdr::default().decode(&twist, &bytes, Order::Little)?;
//! assert_eq!(value["linear"]["x"], 0.2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! In a graph:
//!
//! ```no_run
//! # async fn example() -> Result<(), ros_graph::error::GraphError> {
//! use std::time::Duration;
//!
//! use ros_graph::cdr::Cdr;
//! use ros_graph::dds::{Dds, DdsConfig};
//! use ros_graph::graph::Graph;
//! use ros_graph::inbox::Bounds;
//! use ros_graph::library::Library;
//! use ros_graph::shipped::Distribution;
//! use serde_json::json;
//!
//! let patience = Duration::from_secs(2);
//! let graph = Dds::join(&DdsConfig::default(), Library::shipped(Distribution::Jazzy)?, Cdr::default())?;
//! let mut odometry = graph.subscribe("/odom", None, Bounds::default(), patience).await?;
//! println!("{}", odometry.next(patience).await?.value["pose"]["pose"]["position"]["x"]);
//! let velocity = graph.publisher("/cmd_vel", &"geometry_msgs/msg/Twist".parse()?).await?;
//! velocity.ready(patience).await?;
//! velocity.publish(&json!({"linear": {"x": 0.2}}))?;
//! # Ok(())
//! # }
//! ```

pub mod cdr;
pub mod dds;
pub mod definition;
pub mod description;
pub mod error;
pub mod goals;
pub mod graph;
pub mod inbox;
pub mod library;
pub mod picture;
pub mod rosbridge;
pub mod shape;
pub mod shipped;
pub mod text;
pub mod velocity;
