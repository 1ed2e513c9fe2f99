//! Everyday pipelines.

/// A pipeline, its elements, and the kinds of its warnings.
pub(crate) type Good = (&'static str, &'static [&'static str], &'static [&'static str]);

pub(crate) const GOOD: &[Good] = &[
    // Streams
    (
        "videotestsrc is-live=true ! video/x-raw,width=1280,height=720,framerate=30/1 ! x264enc tune=zerolatency bitrate=15000 \
         ! h264parse ! mpegtsmux alignment=7 ! srtsink uri=srt://:5000?mode=listener wait-for-connection=false",
        &["videotestsrc", "x264enc", "h264parse", "mpegtsmux", "srtsink"],
        &[],
    ),
    (
        "srtsrc uri=srt://192.0.2.1:5000 ! tsdemux ! h264parse ! avdec_h264 ! videoconvert ! autovideosink",
        &[
            "srtsrc",
            "tsdemux",
            "h264parse",
            "avdec_h264",
            "videoconvert",
            "autovideosink",
        ],
        &["unknown_peer"],
    ),
    (
        "videotestsrc is-live=true ! video/x-raw,width=640,height=360,framerate=25/1 ! x264enc bitrate=1500 ! h264parse \
         ! flvmux name=mux streamable=true ! rtmpsink location=rtmp://live.example.org/app/key \
         audiotestsrc is-live=true ! audioconvert ! avenc_aac ! aacparse ! mux.",
        &[
            "videotestsrc",
            "x264enc",
            "h264parse",
            "flvmux",
            "rtmpsink",
            "audiotestsrc",
            "audioconvert",
            "avenc_aac",
            "aacparse",
        ],
        &["unknown_peer"],
    ),
    (
        "rtspsrc location=rtsp://192.0.2.1/stream latency=200 ! rtph264depay ! h264parse ! avdec_h264 ! videoconvert ! fakesink",
        &[
            "rtspsrc",
            "rtph264depay",
            "h264parse",
            "avdec_h264",
            "videoconvert",
            "fakesink",
        ],
        &["unknown_peer"],
    ),
    (
        "videotestsrc is-live=true ! video/x-raw,width=640,height=360,framerate=30/1 ! x264enc key-int-max=60 ! h264parse \
         ! hlssink2 location=/tmp/segment%05d.ts playlist-location=/tmp/list.m3u8 target-duration=2",
        &["videotestsrc", "x264enc", "h264parse", "hlssink2"],
        &[],
    ),
    (
        "souphttpsrc location=http://192.0.2.1/list.m3u8 ! hlsdemux ! tsdemux ! h264parse ! avdec_h264 ! fakesink",
        &[
            "souphttpsrc",
            "hlsdemux",
            "tsdemux",
            "h264parse",
            "avdec_h264",
            "fakesink",
        ],
        &["unknown_peer"],
    ),
    (
        "webrtcbin name=peer bundle-policy=max-bundle videotestsrc is-live=true ! video/x-raw,width=640,height=360,framerate=30/1 \
         ! vp8enc deadline=1 ! rtpvp8pay ! application/x-rtp,media=video,encoding-name=VP8,payload=96 ! peer.",
        &["webrtcbin", "videotestsrc", "vp8enc", "rtpvp8pay"],
        &[],
    ),
    (
        "udpsrc port=0 caps=application/x-rtp,media=video,encoding-name=H264,payload=96 ! rtpjitterbuffer ! rtph264depay \
         ! avdec_h264 ! videoconvert ! fakesink",
        &[
            "udpsrc",
            "rtpjitterbuffer",
            "rtph264depay",
            "avdec_h264",
            "videoconvert",
            "fakesink",
        ],
        &[],
    ),
    (
        "videotestsrc is-live=true ! video/x-raw,width=320,height=240,framerate=15/1 ! jpegenc ! rtpjpegpay \
         ! udpsink host=127.0.0.1 port=5004",
        &["videotestsrc", "jpegenc", "rtpjpegpay", "udpsink"],
        &[],
    ),
    // Recordings
    (
        "videotestsrc ! video/x-raw,width=640,height=480,framerate=30/1 ! x264enc key-int-max=10 ! h264parse \
         ! splitmuxsink location=/tmp/part%02d.mp4 max-size-time=10000000000",
        &["videotestsrc", "x264enc", "h264parse", "splitmuxsink"],
        &[],
    ),
    (
        "videotestsrc is-live=true ! video/x-raw,width=640,height=480,framerate=30/1 ! x264enc tune=zerolatency \
         ! tee name=t t. ! queue ! h264parse ! mpegtsmux alignment=7 ! udpsink host=127.0.0.1 port=5004 \
         t. ! queue ! h264parse ! mp4mux ! filesink location=/tmp/a.mp4",
        &[
            "videotestsrc",
            "x264enc",
            "tee",
            "queue",
            "h264parse",
            "mpegtsmux",
            "udpsink",
            "queue",
            "h264parse",
            "mp4mux",
            "filesink",
        ],
        &[],
    ),
    (
        "v4l2src device=/dev/video77 ! image/jpeg,width=1280,height=720,framerate=30/1 ! jpegdec ! videoconvert ! queue \
         ! x264enc ! h264parse ! matroskamux ! filesink location=/tmp/a.mkv",
        &[
            "v4l2src",
            "jpegdec",
            "videoconvert",
            "queue",
            "x264enc",
            "h264parse",
            "matroskamux",
            "filesink",
        ],
        &["missing_device"],
    ),
    (
        "alsasrc device=hw:0,0 ! queue ! audioconvert ! audioresample ! opusenc bitrate=64000 ! oggmux ! filesink location=/tmp/a.ogg",
        &[
            "alsasrc",
            "queue",
            "audioconvert",
            "audioresample",
            "opusenc",
            "oggmux",
            "filesink",
        ],
        &[],
    ),
    (
        "videotestsrc num-buffers=1 ! video/x-raw,width=640,height=480 ! jpegenc quality=90 ! filesink location=/tmp/still.jpg",
        &["videotestsrc", "jpegenc", "filesink"],
        &[],
    ),
    // Mixing
    (
        "compositor name=mix sink_1::xpos=320 sink_1::ypos=180 ! videoconvert ! fakesink videotestsrc \
         ! video/x-raw,width=640,height=360 ! mix. videotestsrc pattern=ball ! video/x-raw,width=160,height=90 ! mix.",
        &[
            "compositor",
            "videoconvert",
            "fakesink",
            "videotestsrc",
            "videotestsrc",
        ],
        &[],
    ),
    (
        "audiomixer name=mix ! audioconvert ! audioresample ! fakesink audiotestsrc freq=440 ! mix. audiotestsrc freq=880 volume=0.2 ! mix.",
        &[
            "audiomixer",
            "audioconvert",
            "audioresample",
            "fakesink",
            "audiotestsrc",
            "audiotestsrc",
        ],
        &[],
    ),
    (
        "videotestsrc ! videobalance saturation=0.5 ! videoscale ! \"video/x-raw, width=(int)800, height=(int)600\" ! videoconvert ! fakesink",
        &[
            "videotestsrc",
            "videobalance",
            "videoscale",
            "videoconvert",
            "fakesink",
        ],
        &[],
    ),
    // Files
    (
        "filesrc location=/nonexistent/film.mp4 ! qtdemux name=d d.video_0 ! queue ! h264parse ! avdec_h264 ! fakesink \
         d.audio_0 ! queue ! aacparse ! avdec_aac ! audioconvert ! fakesink",
        &[
            "filesrc",
            "qtdemux",
            "queue",
            "h264parse",
            "avdec_h264",
            "fakesink",
            "queue",
            "aacparse",
            "avdec_aac",
            "audioconvert",
            "fakesink",
        ],
        &["missing_file"],
    ),
    (
        "uridecodebin uri=file:///nonexistent/film.webm name=d d. ! queue ! videoconvert ! videoscale ! video/x-raw,width=640,height=360 \
         ! vp8enc ! webmmux name=m ! filesink location=/tmp/b.webm d. ! queue ! audioconvert ! vorbisenc ! m.",
        &[
            "uridecodebin",
            "queue",
            "videoconvert",
            "videoscale",
            "vp8enc",
            "webmmux",
            "filesink",
            "queue",
            "audioconvert",
            "vorbisenc",
        ],
        &["missing_file"],
    ),
    (
        "( videotestsrc ! video/x-raw,width=320,height=240,framerate=10/1 ! identity ! fakesink ) ( audiotestsrc wave=ticks ! fakesink )",
        &["videotestsrc", "identity", "fakesink", "audiotestsrc", "fakesink"],
        &[],
    ),
    (
        "playbin uri=http://192.0.2.1/film.mp4",
        &["playbin"],
        &["unknown_peer"],
    ),
];
