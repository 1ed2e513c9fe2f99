//! The pipelines to judge. `REC` stands for the allowed folder, `PRIVATE` for a forbidden one.

/// Pipelines that would reach something forbidden: (the key that a refusal names, the pipeline).
pub(crate) const ESCAPES: &[(&str, &str)] = &[
    // Reading.
    (
        "read_roots",
        "filesrc location=\"clean/../../private/key\" ! fakesink",
    ),
    ("read_roots", "filesrc location=~/.bashrc ! fakesink"),
    ("write_roots", "videotestsrc ! filesink location=folder/new"),
    ("read_roots", "filesrc location=PRIVATE/key ! fakesink"),
    (
        "read_roots",
        "filesrc location=/etc/passwd ! srtsink uri=srt://127.0.0.1:7411",
    ),
    ("read_roots", "filesrc location=REC/../private/key ! fakesink"),
    (
        "read_roots",
        "filesrc location=\"REC/clean/../../private/key\" ! fakesink",
    ),
    ("read_roots", "filesrc location=REC/link.ts ! fakesink"),
    ("read_roots", "filesrc location=REC/folder/key ! fakesink"),
    (
        "read_roots",
        "filesrc location=REC/nothing/../../private/key ! fakesink",
    ),
    ("read_roots", "filesrc location=../private/key ! fakesink"),
    (
        "read_roots",
        "multifilesrc location=PRIVATE/%02d index=0 ! fakesink",
    ),
    ("read_roots", "multifilesrc location=REC/%s ! fakesink"),
    ("read_roots", "splitmuxsrc location=REC/*.ts ! fakesink"),
    ("read_roots", "splitmuxsrc location=PRIVATE/*.ts ! fakesink"),
    ("read_roots", "playbin uri=file://PRIVATE/key"),
    ("read_roots", "playbin uri=file:PRIVATE/key"),
    ("read_roots", "playbin uri=file:///%65tc/passwd"),
    (
        "read_roots",
        "playbin uri=file://REC/clean/plain.txt suburi=file:///etc/passwd",
    ),
    (
        "read_roots",
        "urisourcebin uri=file://REC/%2e%2e/private/key ! fakesink",
    ),
    ("read_roots", "uridecodebin3 uri=file:///etc/passwd ! fakesink"),
    ("write_roots", "file:///etc/passwd ! fakesink"),
    ("read_roots", "giosrc location=file:///etc/passwd ! fakesink"),
    (
        "read_roots",
        "souphttpsrc location=http://127.0.0.1:1/ ssl-ca-file=/etc/shadow ! fakesink",
    ),
    ("read_roots", "gdkpixbufoverlay location=/etc/passwd ! fakesink"),
    ("read_roots", "fluiddec soundfont=/etc/passwd ! fakesink"),
    ("read_roots", "shmsrc socket-path=/run/x ! fakesink"),
    ("devices", "dvdreadsrc device=/etc ! fakesink"),
    ("allow_elements", "fdsrc fd=0 ! fakesink"),
    ("allow_elements", "fdsrc ! fakesink"),
    ("allow_elements", "sdpsrc sdp=v=0 ! fakesink"),
    ("allow_elements", "faultyscript startup-script=x"),
    ("allow_elements", "faultyscript"),
    (
        "allow_elements",
        "filesrc location=REC/clean/list.m3u8 ! hlsdemux ! fakesink",
    ),
    // Writing.
    (
        "write_roots",
        "videotestsrc ! filesink location=/tmp/ovos-tools-escape",
    ),
    (
        "write_roots",
        "videotestsrc ! filesink location=../ovos-tools-escape",
    ),
    ("write_roots", "videotestsrc ! filesink location=REC/link.ts"),
    (
        "write_roots",
        "videotestsrc ! filesink location=\"REC/folder/new file\"",
    ),
    (
        "write_roots",
        "videotestsrc ! multifilesink location=/tmp/%05d.raw",
    ),
    (
        "write_roots",
        "videotestsrc ! multifilesink location=REC/clean/%n.raw",
    ),
    (
        "write_roots",
        "videotestsrc ! x264enc ! hlssink2 location=REC/clean/%05d.ts playlist-location=/tmp/list.m3u8",
    ),
    (
        "write_roots",
        "videotestsrc ! x264enc ! mpegtsmux ! hlssink playlist-location=REC/clean/list.m3u8",
    ),
    (
        "write_roots",
        "videotestsrc ! x264enc ! splitmuxsink location=PRIVATE/%05d.mp4",
    ),
    (
        "write_roots",
        "videotestsrc ! x264enc ! splitmuxsink location=REC/clean/a.mp4 sink-factory=filesink \
      sink-properties=\"properties,location=PRIVATE/x\"",
    ),
    (
        "write_roots",
        "videotestsrc ! x264enc ! splitmuxsink location=REC/clean/a.mp4 muxer-factory=qtmux \
      muxer-properties=\"properties,moov-recovery-file=(string)PRIVATE/x\"",
    ),
    (
        "write_roots",
        "videotestsrc ! x264enc ! splitmuxsink location=REC/clean/a.mp4 sink=\"filesink location=PRIVATE/x\"",
    ),
    (
        "write_roots",
        "videotestsrc ! x264enc ! splitmuxsink location=REC/clean/a.mp4 \
      muxer=\"mp4mux faststart=true faststart-file=PRIVATE/x\"",
    ),
    (
        "write_roots",
        "videotestsrc ! x264enc ! mp4mux moov-recovery-file=/tmp/x ! filesink location=REC/clean/a.mp4",
    ),
    (
        "write_roots",
        "playbin uri=file://REC/clean/plain.txt video-sink=\"filesink location=PRIVATE/x\"",
    ),
    (
        "write_roots",
        "playbin uri=file://REC/clean/plain.txt audio-filter=\"tee name=t ! queue t. ! filesink location=/tmp/x\"",
    ),
    (
        "write_roots",
        "videotestsrc ! encodebin profile=\"video/x-h264|element-properties,multipass-cache-file=PRIVATE/x\" ! fakesink",
    ),
    (
        "allow_elements",
        "videotestsrc ! x264enc option-string=dump-yuv=/tmp/x ! fakesink",
    ),
    (
        "allow_elements",
        "videotestsrc ! x264enc option-string=keyint=30:stats=evil.log ! fakesink",
    ),
    // For a file option a number is a file name, too.
    (
        "allow_elements",
        "videotestsrc num-buffers=9 ! x264enc option-string=dump-yuv=5 ! fakesink",
    ),
    (
        "allow_elements",
        "videotestsrc num-buffers=9 ! x264enc option-string=keyint=30:stats=1 ! fakesink",
    ),
    (
        "allow_elements",
        "videotestsrc num-buffers=9 ! x264enc option-string=keyint=30:dump_yuv=2024/05 ! fakesink",
    ),
    // Formats that open their files themselves, in the working directory.
    (
        "allow_elements",
        "videotestsrc num-buffers=90 ! x264enc key-int-max=30 tune=zerolatency ! avmux_hls ! fakesink",
    ),
    (
        "allow_elements",
        "videotestsrc num-buffers=90 ! x264enc key-int-max=30 tune=zerolatency ! avmux_dash ! fakesink",
    ),
    (
        "write_roots",
        "videotestsrc ! x264enc multipass-cache-file=/tmp/x ! fakesink",
    ),
    ("write_roots", "queue2 temp-template=/tmp/XXXXXX ! fakesink"),
    ("write_roots", "videotestsrc ! shmsink socket-path=/tmp/socket"),
    ("allow_elements", "videotestsrc ! fdsink fd=1"),
    (
        "write_roots",
        "videotestsrc ! curlfilesink location=file:///tmp/ file-name=x",
    ),
    ("write_roots", "videotestsrc ! giosink location=file:///tmp/x"),
    (
        "write_roots",
        "compositor name=c ! fakesink videotestsrc ! c. videotestsrc ! filesink name=f sink::location=/tmp/x",
    ),
    // The same property under its other spelling, in another element, behind an escape.
    (
        "write_roots",
        "videotestsrc ! x264enc multipass_cache_file=/tmp/ovos-tools-escape ! fakesink",
    ),
    (
        "allow_elements",
        "videotestsrc ! x264enc ! splitmuxsink location=REC/clean/a.mp4 muxer-factory=qtmux \
         muxer-properties=\"properties,moov_recovery_file=ovos-tools-escape\"",
    ),
    (
        "allow_elements",
        "videotestsrc ! x264enc ! splitmuxsink location=REC/clean/a.mp4 \
         sink-properties=\"properties,location=(string)\\\"\\\\057tmp\\\\057ovos-tools-escape\\\"\"",
    ),
    (
        "allow_elements",
        "videotestsrc ! x264enc ! splitmuxsink location=REC/clean/a.mp4 \
         sink-properties=\"properties,location=evil,max-bitrate=1,x=REC/clean/b\"",
    ),
    (
        "write_roots",
        "videotestsrc ! fpsdisplaysink video-sink=filesink video-sink::location=/tmp/ovos-tools-escape",
    ),
    (
        "write_roots",
        "videotestsrc ! jpegenc ! camerabin location=/tmp/ovos-tools-escape",
    ),
    (
        "allow_elements",
        "videotestsrc ! curlfilesink location=file://REC/clean/ file-name=../x",
    ),
    // Code and formats of text.
    (
        "allow_elements",
        "videotestsrc ! avenc_h264_omx omx-libname=/tmp/evil.so ! fakesink",
    ),
    (
        "allow_elements",
        "videotestsrc ! jpegenc ! curlhttpsink location=http://127.0.0.1/ crypto-engine=evil",
    ),
    (
        "allow_elements",
        "fakesrc ! teletextdec subtitles-template=%n ! fakesink",
    ),
    ("allow_elements", "ipcpipelinesrc fdin=3 fdout=4 ! fakesink"),
    // The network.
    (
        "allow_elements",
        "videotestsrc ! jpegenc ! curlftpsink location=ftp://127.0.0.1/x ftp-port=198.51.100.7",
    ),
    (
        "network_targets",
        "videotestsrc ! x264enc ! mpegtsmux ! ristsink address=127.0.0.1 bonding-addresses=198.51.100.7:5",
    ),
    ("network_targets", "udpsrc uri=udp://0.0.0.0:7411 ! fakesink"),
    ("network_targets", "webrtcbin http-proxy=http://198.51.100.7:3128"),
    (
        "network_targets",
        "giosrc location=smb://198.51.100.7/x ! fakesink",
    ),
    (
        "network_targets",
        "videotestsrc ! encodebin profile=\"video/x-h264|element-properties,x=http://198.51.100.7/\" ! fakesink",
    ),
    (
        "network_targets",
        "videotestsrc ! x264enc ! mpegtsmux ! srtsink uri=srt://198.51.100.7:5000",
    ),
    (
        "network_targets",
        "videotestsrc ! x264enc ! mpegtsmux ! srtsink uri=srt://:5000?mode=listener",
    ),
    (
        "network_targets",
        "videotestsrc ! x264enc ! mpegtsmux ! srtsink uri=srt://127.0.0.1:5000?localaddress=0.0.0.0",
    ),
    ("network_targets", "videotestsrc ! udpsink host=198.51.100.7"),
    (
        "network_targets",
        "videotestsrc ! udpsink clients=127.0.0.1:1,198.51.100.7:2",
    ),
    (
        "network_targets",
        "videotestsrc ! multiudpsink clients=evil.example:5",
    ),
    (
        "network_targets",
        "videotestsrc ! udpsink host=127.0.0.1 bind-address=0.0.0.0",
    ),
    ("network_targets", "udpsrc port=7411 ! fakesink"),
    ("network_targets", "videotestsrc ! tcpserversink host=0.0.0.0"),
    ("network_targets", "videotestsrc ! tcpclientsink host=2130706433"),
    (
        "network_targets",
        "souphttpsrc location=http://127.0.0.1:1/ proxy=http://evil.example:3128 ! fakesink",
    ),
    (
        "network_targets",
        "souphttpsrc location=http://127.0.0.1@evil.example/ ! fakesink",
    ),
    (
        "network_targets",
        "playbin uri=http://169.254.169.254/latest/meta-data",
    ),
    (
        "network_targets",
        "videotestsrc ! x264enc ! flvmux ! rtmpsink location=\"rtmp://127.0.0.1/a socks=evil.example:1\"",
    ),
    (
        "network_targets",
        "webrtcbin stun-server=stun://evil.example:3478",
    ),
    (
        "network_targets",
        "videotestsrc ! rtpvrawpay ! rtpsink uri=rtp://127.0.0.1:5000?address=198.51.100.7",
    ),
    (
        "network_targets",
        "rtspsrc location=rtsp://evil.example/x ! fakesink",
    ),
    // A session description names its own targets, which differ from the host in the address.
    (
        "network_targets",
        "rtspsrc location=rtsp-sdp://127.0.0.1/#v=0&o=-+0+0+IN+IP4+127.0.0.1&s=x&t=0+0\
         &a=x-gst-clock:GstNetTimeProvider+x+198.51.100.7:9999+0&m=video+9+RTP/AVP+96&a=rtpmap:96+H264/90000 \
         ! fakesink",
    ),
    (
        "network_targets",
        "rtspsrc location=\"rtsp-sdp://127.0.0.1/#v=0&o=-+0+0+IN+IP4+127.0.0.1&s=x&t=0+0\
         &a=x:http://127.0.0.1/%0D%0Aa=control:rtsp://198.51.100.7:554/live&m=video+9+RTP/AVP+96\
         &a=rtpmap:96+H264/90000\" ! fakesink",
    ),
    (
        "network_targets",
        "playbin uri=rtsp-sdp://127.0.0.1/#v=0&o=-+0+0+IN+IP4+127.0.0.1&s=x&t=0+0\
         &a=x-gst-clock:GstNetTimeProvider+x+198.51.100.7:9999+0&m=video+9+RTP/AVP+96&a=rtpmap:96+H264/90000",
    ),
    // A text with several addresses: all of them count.
    (
        "network_targets",
        "faultylate gizmo=\"a http://127.0.0.1/ and http://198.51.100.7/\"",
    ),
    ("network_targets", "audiotestsrc ! pulsesink server=evil.example"),
    (
        "network_targets",
        "audiotestsrc ! pulsesink server=unix:/tmp/socket",
    ),
    // Devices.
    ("devices", "v4l2src device=/dev/sda ! fakesink"),
    ("devices", "v4l2src device=/dev/video0/../mem ! fakesink"),
    ("devices", "v4l2:///dev/sda ! fakesink"),
    (
        "devices",
        "audiotestsrc ! alsasink device=\"file:FILE=/tmp/x,FORMAT=raw\"",
    ),
    (
        "devices",
        "audiotestsrc ! alsasink device=\"tee:default,'|sh',raw\"",
    ),
    // Descriptions in descriptions.
    (
        "read_roots",
        "rtpbin fec-encoders=\"fec,0=\\\"filesrc location=/etc/passwd ! fakesink\\\"\" ! fakesink",
    ),
    (
        "read_roots",
        "fpsdisplaysink video-sink=\"bin. ( filesrc location=PRIVATE/key ! fakesink )\"",
    ),
    (
        "read_roots",
        "playbin vis-plugin=\"playbin uri=file:///etc/passwd\"",
    ),
];

/// Everyday pipelines that start.
pub(crate) const EVERYDAY: &[&str] = &[
    "videotestsrc ! fakesink",
    "videotestsrc ! x264enc tune=zerolatency bitrate=500 ! h264parse ! mpegtsmux ! srtsink uri=srt://127.0.0.1:0?mode=listener wait-for-connection=false",
    "videotestsrc ! x264enc ! mp4mux ! filesink location=REC/clean/one.mp4",
    "videotestsrc ! x264enc ! mpegtsmux ! filesink location=\"REC/clean/with spaces.ts\"",
    "videotestsrc ! x264enc ! h264parse ! splitmuxsink location=REC/clean/two-%05d.mp4 max-size-time=1000000000",
    "videotestsrc ! x264enc ! h264parse ! splitmuxsink location=REC/clean/three-%05d.mkv muxer-factory=matroskamux \
      muxer-properties=\"properties,streamable=true\"",
    "videotestsrc ! x264enc ! hlssink2 location=REC/clean/four-%05d.ts playlist-location=REC/clean/four.m3u8",
    "videotestsrc ! jpegenc ! multifilesink location=REC/clean/five-%05d.jpg max-files=3",
    "filesrc location=REC/clean/plain.txt ! fakesink",
    "videotestsrc ! rtpvrawpay ! udpsink host=127.0.0.1 port=7412",
    "videotestsrc ! rtpvrawpay ! udpsink host=localhost port=7412",
    "videotestsrc ! rtpvrawpay ! udpsink clients=127.0.0.1:7413,localhost:7414",
    "udpsrc address=127.0.0.1 port=0 ! fakesink async=false",
    "videotestsrc ! jpegenc ! multipartmux ! tcpserversink host=127.0.0.1 port=0",
    "videotestsrc ! jpegenc ! multipartmux boundary=\"see http://example.org/\" ! fakesink",
    "audiotestsrc ! opusenc ! rtpopuspay ! fakesink",
    "videotestsrc ! tee name=t t. ! queue ! fakesink t. ! queue ! x264enc tune=zerolatency ! matroskamux ! filesink location=REC/clean/six.mkv",
    "compositor name=c sink_1::xpos=320 ! fakesink videotestsrc ! c.sink_0 videotestsrc ! c.sink_1",
    "audiomixer name=m ! fakesink audiotestsrc ! m. audiotestsrc freq=880 ! m.",
    "videotestsrc ! encodebin profile=\"video/x-h264\" ! fakesink",
    "videotestsrc ! fpsdisplaysink video-sink=fakesink text-overlay=false",
    "videotestsrc ! intervideosink channel=one",
    "faultydevice device=/dev/video97",
];
