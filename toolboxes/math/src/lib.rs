//! Arithmetic for a voice assistant, with the argument and result names of OVOS's own math toolbox.
//!
//! Pure functions behind the tools; everything is bounded, so that hostile input causes an error rather than load.
//! Results that JSON cannot represent (infinite, not a number) are errors. Read `expression` first.
//!
//! ```console
//! $ ovos-tools invoke evaluate_expression expression='sqrt(16) + 2 * pi'
//! ```

#![forbid(unsafe_code)]

mod equation;
mod error;
mod evaluate;
mod expression;
mod statistics;
mod units;

use num_bigint::BigInt;
use ovos_toolbox_sdk::prelude::*;
use ovos_toolbox_sdk::tokio::task::spawn_blocking;

use error::{MathError, finite};
use statistics::StatisticsSummaryOutput;

/// The call's error, with the kind that Python would raise.
fn refuse(error: MathError) -> ToolError {
    let kind = match error {
        MathError::Syntax { .. } => "SyntaxError",
        MathError::DivisionByZero => "ZeroDivisionError",
        MathError::Overflow | MathError::NotANumber => "OverflowError",
        _ => "ValueError",
    };
    ToolError::new(kind, error)
}

/// Evaluate a mathematical expression: + - * / // % **, functions, pi, e and tau.
#[derive(Deserialize, JsonSchema)]
struct EvaluateExpressionArgs {
    /// Functions as in Python: sqrt, log, sin (radians), factorial, gcd.
    expression: String,
}

#[derive(Serialize, JsonSchema)]
struct EvaluateExpressionOutput {
    /// Numeric result of the expression.
    result: f64,
    /// The expression as it was given.
    expression: String,
    /// Always null: what cannot be evaluated is an error of the call.
    error: Option<String>,
}

async fn evaluate_expression(
    _: Context<Math>,
    args: EvaluateExpressionArgs,
) -> Result<EvaluateExpressionOutput, ToolError> {
    let parsed = expression::parse(&args.expression).map_err(refuse)?;
    let result = evaluate::evaluate(&parsed, None)
        .and_then(finite)
        .map_err(refuse)?;
    Ok(EvaluateExpressionOutput {
        result,
        expression: args.expression,
        error: None,
    })
}

/// Convert between units of length, mass, volume, time, speed, area, data and temperature.
#[derive(Deserialize, JsonSchema)]
struct UnitConvertArgs {
    value: f64,
    /// Such as km or celsius.
    from_unit: String,
    to_unit: String,
}

#[derive(Serialize, JsonSchema)]
struct UnitConvertOutput {
    /// The converted value.
    result: f64,
    /// The unit that was given.
    from_unit: String,
    /// The unit that was wanted.
    to_unit: String,
    /// What is measured: length, mass, volume, time, speed, area, data or temperature.
    category: String,
    /// Always null: what cannot be converted is an error of the call.
    error: Option<String>,
}

async fn unit_convert(_: Context<Math>, args: UnitConvertArgs) -> Result<UnitConvertOutput, ToolError> {
    let (result, category) = units::convert(args.value, &args.from_unit, &args.to_unit).map_err(refuse)?;
    Ok(UnitConvertOutput {
        result: finite(result).map_err(refuse)?,
        from_unit: args.from_unit,
        to_unit: args.to_unit,
        category: category.to_string(),
        error: None,
    })
}

/// Count, mean, median, sample standard deviation, minimum, maximum and sum of numbers.
#[derive(Deserialize, JsonSchema)]
struct StatisticsSummaryArgs {
    /// At most 10000.
    numbers: Vec<f64>,
}

async fn statistics_summary(
    _: Context<Math>,
    args: StatisticsSummaryArgs,
) -> Result<StatisticsSummaryOutput, ToolError> {
    spawn_blocking(move || statistics::summarise(&args.numbers))
        .await?
        .map_err(refuse)
}

/// Solve an equation for x, as two sides (x**2 = 4) or an expression that equals zero (x**2 - 4).
#[derive(Deserialize, JsonSchema)]
struct SolveEquationArgs {
    /// As in evaluate_expression.
    equation: String,
}

#[derive(Serialize, JsonSchema)]
struct SolveEquationOutput {
    /// The real solutions for x, in ascending order.
    solutions: Vec<f64>,
    /// The equation as it was given.
    equation: String,
    /// "symbolic": a polynomial, and these are all its real solutions. "numeric": the sign changes between -1000 and
    /// 1000; there may be more solutions.
    method: String,
    /// Why there is no answer.
    error: Option<String>,
}

async fn solve_equation(_: Context<Math>, args: SolveEquationArgs) -> Result<SolveEquationOutput, ToolError> {
    let text = args.equation.clone();
    let solved = spawn_blocking(move || equation::solve(&text)).await?;
    // As in OVOS's own toolbox: an equation that cannot be read is an answer without solutions.
    let (solutions, method, error) = match solved {
        Ok((solutions, method)) => (solutions, method, None),
        Err(error) => (Vec::new(), "numeric", Some(error.to_string())),
    };
    Ok(SolveEquationOutput {
        solutions,
        equation: args.equation,
        method: method.to_string(),
        error,
    })
}

/// Add two integers of any size.
#[derive(Deserialize, JsonSchema)]
struct AddArgs {
    a: Integer,
    b: Integer,
}

#[derive(Serialize, JsonSchema)]
struct AddOutput {
    /// The sum.
    result: Integer,
}

async fn add(_: Context<Math>, args: AddArgs) -> Result<AddOutput, ToolError> {
    let sum: BigInt = args.a.0 + args.b.0;
    Ok(AddOutput { result: Integer(sum) })
}

struct Math;

impl Toolbox for Math {
    type Config = NoConfig;

    fn manifest() -> Manifest {
        Manifest {
            // OVOS's own math toolbox has four tools of the same names and results.
            yields: true,
            ..manifest!("math")
        }
    }

    async fn open(_: Host, _: NoConfig) -> Result<Self, ToolError> {
        Ok(Self)
    }

    fn tools(&self) -> Vec<Tool<Self>> {
        vec![
            Tool::read("evaluate_expression", evaluate_expression).category("math"),
            Tool::read("unit_convert", unit_convert).category("math"),
            Tool::read("statistics_summary", statistics_summary).category("math"),
            Tool::read("solve_equation", solve_equation).category("math"),
            Tool::read("add", add).category("math"),
        ]
    }

    no_motion!();
}

export_toolbox!(Math);
