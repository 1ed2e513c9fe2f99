//! The text of a pipeline, in the syntax of gst-launch-1.0.
//!
//! Reads the text with positions: elements, properties and links. It does not decide whether a pipeline is valid (the
//! real parser does, see [`crate::parse`]) and creates nothing; it locates errors, and allows checks of a text before
//! anything is made from it. Read [`Description`].

mod read;
mod shell;
mod text;

pub(crate) use shell::normalize;
pub(crate) use text::{Description, ElementText, Endpoint, LinkText, PropertyText};

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, elements: &[&str], links: &[&str], problem: Option<(usize, &str)>) {
        let read = Description::read(text);
        let label = |endpoint: &Endpoint| match endpoint {
            Endpoint::Element(index, pad) => {
                format!(
                    "{}.{}",
                    read.elements[*index].factory,
                    pad.as_deref().unwrap_or("")
                )
            }
            Endpoint::Reference(name, pad) => format!("{name}.{}", pad.as_deref().unwrap_or("")),
        };
        let found: Vec<String> = read
            .elements
            .iter()
            .map(|element| {
                element
                    .properties
                    .iter()
                    .fold(element.factory.clone(), |text, property| {
                        format!("{text} {}={}", property.name, property.value)
                    })
            })
            .collect();
        assert_eq!(found, elements, "elements of {text}");
        let found: Vec<String> = read
            .links
            .iter()
            .map(|link| {
                let caps = link
                    .caps
                    .as_deref()
                    .map(|caps| format!("[{caps}] "))
                    .unwrap_or_default();
                format!("{} > {caps}{}", label(&link.from), label(&link.to))
            })
            .collect();
        assert_eq!(found, links, "links of {text}");
        assert_eq!(
            read.problem.map(|problem| (problem.at, problem.what)),
            problem,
            "problem of {text}"
        );
    }

    #[test]
    fn elements_properties_and_links_are_found() {
        check(
            "videotestsrc num-buffers=10 ! video/x-raw,width=320 , height=240 ! x264enc bitrate = 500 ! fakesink",
            &["videotestsrc num-buffers=10", "x264enc bitrate=500", "fakesink"],
            &[
                "videotestsrc. > [video/x-raw,width=320 , height=240] x264enc.",
                "x264enc. > fakesink.",
            ],
            None,
        );
        check(
            "videotestsrc ! tee name=t t. ! queue ! fakesink t.src_1 ! fakesink",
            &["videotestsrc", "tee name=t", "queue", "fakesink", "fakesink"],
            &[
                "videotestsrc. > tee.",
                "t. > queue.",
                "queue. > fakesink.",
                "t.src_1 > fakesink.",
            ],
            None,
        );
        check(
            r#"filesrc location="/tmp/a b.mp4" ! qtdemux .video_0 ! fakesink name='a\'b'"#,
            &["filesrc location=/tmp/a b.mp4", "qtdemux", "fakesink name=a'b"],
            &["filesrc. > qtdemux.", "qtdemux.video_0 > fakesink."],
            None,
        );
        check(
            "( videotestsrc ! fakesink sync=false ) file:///tmp/x.ogg ! decodebin ! mix.sink_0 audiomixer name=mix",
            &[
                "bin",
                "videotestsrc",
                "fakesink sync=false",
                "file:///tmp/x.ogg",
                "decodebin",
                "audiomixer name=mix",
            ],
            &[
                "videotestsrc. > fakesink.",
                "file:///tmp/x.ogg. > decodebin.",
                "decodebin. > mix.sink_0",
            ],
            None,
        );
        check(
            "compositor name=c sink_1::xpos=320 ! fakesink",
            &["compositor name=c sink_1::xpos=320", "fakesink"],
            &["compositor. > fakesink."],
            None,
        );
    }

    #[test]
    fn what_cannot_be_right_is_pointed_at() {
        check(
            "videotestsrc !",
            &["videotestsrc"],
            &[],
            Some((13, "nothing follows this `!`")),
        );
        check(
            "! fakesink",
            &["fakesink"],
            &[],
            Some((0, "expected an element before this `!`")),
        );
        check(
            "videotestsrc ! ! fakesink",
            &["videotestsrc", "fakesink"],
            &["videotestsrc. > fakesink."],
            Some((15, "expected an element before this `!`")),
        );
        check(
            "( videotestsrc ! fakesink",
            &["bin", "videotestsrc", "fakesink"],
            &["videotestsrc. > fakesink."],
            Some((0, "this `(` is not closed")),
        );
        check(
            "fakesink )",
            &["fakesink"],
            &[],
            Some((9, "this `)` was not opened")),
        );
        check("", &[], &[], Some((0, "the pipeline is empty")));
        check(
            "name=x fakesink",
            &["fakesink"],
            &[],
            Some((0, "no element stands before this property")),
        );
        check(
            "filesrc location=\"/tmp/a",
            &["filesrc location=/tmp/a"],
            &[],
            Some((17, "this quote is not closed")),
        );
        check(
            "videotestsrc ! video/x-raw",
            &["videotestsrc", "video/x-raw"],
            &["videotestsrc. > video/x-raw."],
            Some((15, "caps must be between two `!`")),
        );
    }

    proptest::proptest! {
        /// Any text is read to its end, and every position is inside the text.
        #[test]
        fn any_text_is_read(
            pieces in proptest::collection::vec(
                proptest::prop_oneof![
                    "[a-z0-9]{1,6}",
                    "[!:.(){}=;,/@\"'\\\\ ]{1,3}",
                    "name=[a-z]{1,2}",
                    "video/x-raw,width=[0-9]{1,2}",
                    "\\PC{0,4}",
                ],
                0..30,
            ),
        ) {
            for text in [pieces.concat(), pieces.join(" "), pieces.join(" ! ")] {
                let normalized = normalize(&text);
                let read = Description::read(&normalized);
                let places = read.elements.iter().map(|element| element.at)
                    .chain(read.elements.iter().flat_map(|element| &element.properties).flat_map(|set| [set.at, set.value_at]))
                    .chain(read.links.iter().map(|link| link.at))
                    .chain(read.problem.iter().map(|problem| problem.at));
                for place in places {
                    proptest::prop_assert!(normalized.is_char_boundary(place), "{place} in {normalized}");
                }
                for link in &read.links {
                    for end in [&link.from, &link.to] {
                        if let Endpoint::Element(index, _) = end {
                            proptest::prop_assert!(*index < read.elements.len());
                        }
                    }
                }
            }
        }
    }
}
