"""What workers map of what is live (module/nginx/ngx_sluice_images.h)."""

from __future__ import annotations

from images_bare import Images

LIVE = 'return w.live(1, w.routes("/a", "/b"))'


def test_a_request_matches_what_is_published() -> None:
    with Images() as nginx:
        nginx.run(LIVE)
        said = nginx.match("/b/c")
        assert said["status"] == 200
        assert (said["slot"], said["generation"], said["prefix"]) == (2, 2, 2)
        assert said["pid"] != nginx.zero()
