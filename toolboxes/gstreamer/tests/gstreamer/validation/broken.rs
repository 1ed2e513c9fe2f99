//! Pipelines with typical errors.

/// A pipeline, the kind of its error, the text at the error's position, and a part of the suggestion.
pub(crate) type Bad = (&'static str, &'static str, &'static str, &'static str);

pub(crate) const BAD: &[Bad] = &[
    (
        "videotestsrc ! aml_h264enc bitrate=15000000 ! h264parse ! fakesink",
        "no_element",
        "aml_h264enc",
        "Did you mean 'x264enc'?",
    ),
    (
        "videotestsrc ! x264encc ! fakesink",
        "no_element",
        "x264encc",
        "Did you mean 'x264enc'?",
    ),
    (
        "vidoetestsrc ! autovideosink",
        "no_element",
        "vidoetestsrc",
        "Did you mean 'videotestsrc'?",
    ),
    (
        "videotestsrc ! invalid_element ! fakesink",
        "no_element",
        "invalid_element",
        "",
    ),
    (
        "videotestsrc ! x264enc ! h264parser ! fakesink",
        "no_element",
        "h264parser",
        "Did you mean 'h264parse'?",
    ),
    (
        "videotestsrc patern=ball ! fakesink",
        "no_property",
        "patern=ball",
        "Did you mean 'pattern'?",
    ),
    (
        "videotestsrc ! x264enc bit-rate=500 ! fakesink",
        "no_property",
        "bit-rate=500",
        "Did you mean 'bitrate'?",
    ),
    (
        "videotestsrc ! fakesink location=/tmp/x",
        "no_property",
        "location=/tmp/x",
        "",
    ),
    (
        "videotestsrc pattern=bal ! fakesink",
        "bad_value",
        "bal ! fakesink",
        "Did you mean 'ball'?",
    ),
    (
        "videotestsrc ! x264enc bitrate=4M ! fakesink",
        "bad_value",
        "4M ! fakesink",
        "from 1 to 2048000",
    ),
    (
        "videotestsrc is-live=maybe ! fakesink",
        "bad_value",
        "maybe ! fakesink",
        "boolean",
    ),
    ("videotestsrc !", "syntax", "!", "nothing follows"),
    (
        "videotestsrc ! ! fakesink",
        "syntax",
        "! fakesink",
        "expected an element before",
    ),
    (
        "( videotestsrc ! fakesink",
        "syntax",
        "( videotestsrc",
        "not closed",
    ),
    (
        "videotestsrc ! audioconvert ! fakesink",
        "link",
        "! audioconvert",
        "",
    ),
    ("videotestsrc ! mp4mux ! fakesink", "link", "! mp4mux", "put "),
    (
        "videotestsrc ! x265enc ! flvmux ! fakesink",
        "link",
        "! flvmux",
        "",
    ),
    (
        "videotestsrc ! video/x-raw,format=NOPE ! fakesink",
        "link",
        "! video/x-raw,format=NOPE",
        "videotestsrc",
    ),
    (
        "videotestsrc ! video/x-raw,width=wide ! fakesink",
        "link",
        "! video/x-raw,width=wide",
        "",
    ),
    (
        "videotestsrc ! video/x-h264 ! fakesink",
        "link",
        "! video/x-h264",
        "put ",
    ),
    (
        "audiotestsrc ! queue ! x264enc ! fakesink",
        "link",
        "! x264enc",
        "",
    ),
    (
        "videotestsrc ! fakesink ! filesink location=/tmp/x",
        "link",
        "! filesink",
        "it is a sink",
    ),
    (
        "videotestsrc ! audiotestsrc ! fakesink",
        "link",
        "! audiotestsrc",
        "it is a source",
    ),
    (
        "videotestsrc ! tee name=t t. ! fakesink tea. ! fakesink",
        "link",
        "! fakesink",
        "elements with a name: t",
    ),
    (
        "videotestsrc name=source ! fakesink source.video ! fakesink",
        "link",
        "! fakesink",
        "",
    ),
];
