//! Pipelines that parse but do not work as intended.

/// A pipeline, the kind of its warning, and a part of the message.
pub(crate) type Doubtful = (&'static str, &'static str, &'static str);

pub(crate) const DOUBTFUL: &[Doubtful] = &[
    (
        "videotestsrc ! video/x-raw,width=320,height=240,framerate=30/1 ! tee name=t t. ! fakesink t. ! queue ! fakesink",
        "no_queue_after_tee",
        "put 'queue' after the tee",
    ),
    (
        "videotestsrc ! video/x-raw,width=320,height=240,framerate=30/1 ! x264enc ! mpegtsmux ! fakesink",
        "no_parser",
        "'h264parse'",
    ),
    (
        "videotestsrc is-live=true ! video/x-raw,width=320,height=240,framerate=30/1 ! filesink location=/tmp/raw",
        "blocked_live_source",
        "put a queue between them",
    ),
    (
        "videotestsrc ! videoconvert ! x264enc ! h264parse ! fakesink",
        "no_raw_caps",
        "put caps between them",
    ),
    (
        "videotestsrc ! video/x-raw,width=320,height=240,framerate=30/1 ! x264enc ! h264parse ! mpegtsmux \
         ! srtsink uri=srt://:5000?mode=listener",
        "unaligned_datagrams",
        "'srtsink', so each packet of 188 bytes may be sent alone: set alignment=7 on 'mpegtsmux'",
    ),
    (
        "audiotestsrc ! avenc_aac ! aacparse ! mpegtsmux name=m ! queue ! tee ! udpsink host=127.0.0.1 port=5004",
        "unaligned_datagrams",
        "set alignment=7 on 'm', which makes 1316 bytes",
    ),
    (
        "audiotestsrc ! avenc_aac ! aacparse ! mpegtsmux alignment=20 ! udpsink host=127.0.0.1 port=5004",
        "unaligned_datagrams",
        "20 packets of 'mpegtsmux' are 3760 bytes",
    ),
    (
        "videotestsrc ! video/x-raw,width=320,height=240,framerate=30/1 ! x264enc bitrate=9999999 ! fakesink",
        "out_of_range",
        "1 to 2048000",
    ),
    ("videomixer ! fakesink", "deprecated", "Deprecated by compositor"),
    (
        "videotestsrc ! videoflip method=clockwise ! fakesink",
        "deprecated",
        "video-direction",
    ),
    (
        "filesrc location=/nonexistent ! fakesink",
        "missing_file",
        "/nonexistent",
    ),
    (
        "v4l2src device=/dev/video77 ! fakesink",
        "missing_device",
        "/dev/video77",
    ),
];
