//! A toolbox that is a program of its own: it rolls dice.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::process::ExitCode;

use ovos_tools_program::protocol::Raw;
use ovos_tools_program::wire::{Failure, Manifest, Start, ToolList};
use ovos_tools_program::{Reply, Run, Toolbox, run};
use serde_json::{from_str, json};

struct Dice;

impl Toolbox for Dice {
    fn tools(&self, reply: Reply<Raw<ToolList>>) {
        let list = json!({"tools": [{
            "name": "roll", "description": "Rolls a die.", "effect": "read",
            "argument_schema": {"type": "object", "properties": {"sides": {"type": "integer", "minimum": 1}}, "required": ["sides"]},
            "output_schema": {"type": "object", "properties": {"number": {"type": "integer"}}},
        }]});
        reply(Ok(Raw::from_text(list.to_string()).expect("it was JSON just now")));
    }

    fn start(&self, run: Run, start: Raw<Start>) {
        let sides = from_str::<Start>(start.text())
            .ok()
            .and_then(|start| start.action.params.get("sides")?.as_u64());
        match sides {
            Some(sides @ 1..) => run.succeed(&json!({"number": 1 + RandomState::new().hash_one(0) % sides})),
            _ => run.fail(&Failure::new("ValueError", "a die has at least one side")),
        }
    }
}

fn main() -> ExitCode {
    let manifest = Manifest {
        id: "dice".to_owned(),
        ..Manifest::default()
    };
    run(&manifest, |_opening, _link| Ok(Dice))
}
