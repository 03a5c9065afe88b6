#!/usr/bin/env python3
"""rtsp_server.py FILE TCP|UDP: a real RTSP server, of GStreamer, on a free port of loopback. It sends the video of a
Matroska file with H.264 to each client, as /film, over this transport alone. Prints its port. Status 77: a part of
GStreamer is missing."""

import sys

try:
    import gi
    gi.require_version("Gst", "1.0")
    gi.require_version("GstRtsp", "1.0")
    gi.require_version("GstRtspServer", "1.0")
    from gi.repository import GLib, Gst, GstRtsp, GstRtspServer
except (ImportError, ValueError):
    sys.exit(77)

Gst.init(None)
if not all(Gst.ElementFactory.find(name) for name in ("matroskademux", "h264parse", "rtph264pay")):
    sys.exit(77)
server = GstRtspServer.RTSPServer()
server.set_address("127.0.0.1")
server.set_service("0")
factory = GstRtspServer.RTSPMediaFactory()
factory.set_launch(f"( filesrc location={sys.argv[1]} ! matroskademux ! h264parse ! rtph264pay name=pay0 config-interval=-1 )")
factory.set_protocols(getattr(GstRtsp.RTSPLowerTrans, sys.argv[2]))
server.get_mount_points().add_factory("/film", factory)
server.attach(None)
print(server.get_bound_port(), flush=True)
GLib.MainLoop().run()
