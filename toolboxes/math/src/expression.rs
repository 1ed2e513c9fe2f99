//! The language: Python's arithmetic on floats, parsed with winnow.
//!
//! Owns the grammar and the limits that bound the parser's recursion. Does not evaluate. Read [`Expression`].

use winnow::ascii::multispace0;
use winnow::combinator::{
    Infix, Prefix, alt, cut_err, delimited, expression, opt, preceded, separated, terminated,
};
use winnow::error::{ContextError, ErrMode, StrContext, StrContextValue};
use winnow::prelude::*;
use winnow::token::{one_of, take_while};

use crate::error::MathError;

/// A parsed expression.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Expression {
    Number(f64),
    Name(String),
    Call(String, Vec<Expression>),
    Negative(Box<Expression>),
    Binary(Operator, Box<Expression>, Box<Expression>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    FloorDivide,
    Modulo,
    Power,
}

/// Greatest length in characters; longer expressions are not arithmetic.
const MAX_LENGTH: usize = 1000;
/// The parser recurses on signs, powers and brackets; tests/hostile.rs checks that this depth fits its stack.
const MAX_NESTING: usize = 100;

/// Parses an expression.
pub(crate) fn parse(text: &str) -> Result<Expression, MathError> {
    let length = text.chars().count();
    if length > MAX_LENGTH {
        return Err(MathError::TooLarge {
            what: "characters in an expression",
            limit: MAX_LENGTH,
            found: length,
        });
    }
    let nesting = deepest(text);
    if nesting > MAX_NESTING {
        return Err(MathError::TooLarge {
            what: "nested brackets, signs and powers",
            limit: MAX_NESTING,
            found: nesting,
        });
    }
    terminated(whole, multispace0)
        .parse(text)
        .map_err(|error| MathError::Syntax {
            at: text.get(..error.offset()).unwrap_or(text).chars().count() + 1,
            expected: describe(error.inner()),
        })
}

/// An upper bound of the parser's recursion depth: open brackets, plus the longest sequence of signs and powers without
/// an operator of lower precedence.
fn deepest(text: &str) -> usize {
    let (mut open, mut row, mut deepest) = (0_usize, 0_usize, 0_usize);
    let mut before = ' ';
    for letter in text.chars().filter(|letter| !letter.is_whitespace()) {
        match letter {
            '(' => {
                open += 1;
                row += 1;
            }
            ')' => open = open.saturating_sub(1),
            '+' | '-' if "+-*/%(,".contains(before) || before == ' ' => row += 1,
            '*' if before == '*' => row += 1,
            '+' | '-' | '/' | '%' | ',' => row = 0,
            _ => {}
        }
        deepest = deepest.max(open + row);
        before = letter;
    }
    deepest
}

fn describe(error: &ContextError) -> String {
    let expected: Vec<String> = error
        .context()
        .filter_map(|context| match context {
            StrContext::Expected(StrContextValue::Description(what)) => Some((*what).to_string()),
            _ => None,
        })
        .collect();
    if expected.is_empty() {
        "expected an operator or the end".to_string()
    } else {
        format!("expected {}", expected.join(" or "))
    }
}

type Parsed = Result<Expression, ErrMode<ContextError>>;

fn whole(input: &mut &str) -> Parsed {
    expression(operand)
        .prefix(preceded(
            multispace0,
            alt((
                '-'.value(Prefix(9, |_: &mut &str, a| Ok(Expression::Negative(Box::new(a))))),
                '+'.value(Prefix(9, |_: &mut &str, a| Ok(a))),
            )),
        ))
        .infix(preceded(
            multispace0,
            alt((
                "**".value(Infix::Right(11, |_: &mut &str, a, b| {
                    Ok(binary(Operator::Power, a, b))
                })),
                "//".value(Infix::Left(7, |_: &mut &str, a, b| {
                    Ok(binary(Operator::FloorDivide, a, b))
                })),
                '*'.value(Infix::Left(7, |_: &mut &str, a, b| {
                    Ok(binary(Operator::Multiply, a, b))
                })),
                '/'.value(Infix::Left(7, |_: &mut &str, a, b| {
                    Ok(binary(Operator::Divide, a, b))
                })),
                '%'.value(Infix::Left(7, |_: &mut &str, a, b| {
                    Ok(binary(Operator::Modulo, a, b))
                })),
                '+'.value(Infix::Left(5, |_: &mut &str, a, b| {
                    Ok(binary(Operator::Add, a, b))
                })),
                '-'.value(Infix::Left(5, |_: &mut &str, a, b| {
                    Ok(binary(Operator::Subtract, a, b))
                })),
            )),
        ))
        .parse_next(input)
}

fn binary(operator: Operator, left: Expression, right: Expression) -> Expression {
    Expression::Binary(operator, Box::new(left), Box::new(right))
}

fn operand(input: &mut &str) -> Parsed {
    preceded(multispace0, alt((number, bracket, name)))
        .context(StrContext::Expected(StrContextValue::Description(
            "a number, a name or an opening bracket",
        )))
        .parse_next(input)
}

fn bracket(input: &mut &str) -> Parsed {
    delimited('(', cut_err(whole), closing).parse_next(input)
}

fn closing(input: &mut &str) -> Result<char, ErrMode<ContextError>> {
    cut_err(preceded(multispace0, ')'))
        .context(StrContext::Expected(StrContextValue::Description(
            "an operator or a closing bracket",
        )))
        .parse_next(input)
}

/// A constant, or a call.
fn name(input: &mut &str) -> Parsed {
    let name = (
        one_of(|c: char| c.is_ascii_alphabetic() || c == '_'),
        take_while(0.., is_word),
    )
        .take()
        .parse_next(input)?
        .to_string();
    if opt(preceded(multispace0, '(')).parse_next(input)?.is_none() {
        return Ok(Expression::Name(name));
    }
    if opt(preceded(multispace0, ')')).parse_next(input)?.is_some() {
        return Ok(Expression::Call(name, Vec::new()));
    }
    let arguments = cut_err(separated(1.., whole, preceded(multispace0, ','))).parse_next(input)?;
    closing(input)?;
    Ok(Expression::Call(name, arguments))
}

fn is_word(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '_'
}

/// Decimal with an optional fraction and exponent, or an integer of base 16, 8 or 2; single `_` between digits.
fn number(input: &mut &str) -> Parsed {
    let based = |prefix: [&'static str; 2], radix: u32| {
        preceded(
            alt(prefix),
            take_while(1.., move |c: char| c.is_digit(radix) || c == '_'),
        )
        .verify_map(move |digits: &str| {
            let value = u64::from_str_radix(&digits.replace('_', ""), radix).ok()?;
            // Exact up to 2^53, rounded beyond, as in Python.
            #[expect(clippy::cast_precision_loss, reason = "rounding is what is wanted")]
            Some(value as f64)
        })
    };
    let digits = || take_while(1.., |c: char| c.is_ascii_digit() || c == '_');
    let exponent = || opt((one_of(['e', 'E']), opt(one_of(['+', '-'])), digits()));
    let decimal = alt((
        (digits(), opt(('.', opt(digits()))), exponent()).take(),
        ('.', digits(), exponent()).take(),
    ))
    .verify_map(|text: &str| {
        let legal = !text.starts_with('_') && !text.ends_with('_') && !text.contains("__");
        legal.then(|| text.replace('_', "").parse::<f64>().ok()).flatten()
    });
    terminated(
        alt((
            based(["0x", "0X"], 16),
            based(["0o", "0O"], 8),
            based(["0b", "0B"], 2),
            decimal,
        )),
        // 2x, 1j and 5abc are not numbers.
        winnow::combinator::not(one_of(is_word)),
    )
    .map(Expression::Number)
    .parse_next(input)
}
