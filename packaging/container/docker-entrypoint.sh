#!/bin/bash
# The first process of a container. `kong docker-start` and other words that start the gateway: runs
# it, and ends it after the requests in work when the container is told to end (SIGQUIT, SIGTERM or
# SIGINT); at once when it is told so again. nginx by itself cuts requests off at SIGTERM. SIGHUP loads
# what has changed. Any other command takes this one's place.
set -eu

# As in Kong's image: `kong start`, too, is the container's process.
export KONG_NGINX_DAEMON=${KONG_NGINX_DAEMON:-off}

[ $# -gt 0 ] || set -- kong docker-start
case $1-${2:-} in
    kong-docker-start | kong-start | sluice-start) ;;
    *) exec "$@" ;;
esac

gateway=
told=0

# What still prepares has no requests, and is deaf to SIGQUIT, as a shell's background jobs are:
# nginx is who catches it.
# shellcheck disable=SC2317 # the trap calls it
stop() {
    told=$((told + 1))
    [ -n "$gateway" ] || return 0
    if [ "$told" -eq 1 ] && grep -q '^SigCgt:.*[4-7c-f]$' "/proc/$gateway/status"; then
        kill -s QUIT "$gateway" || :
    else
        kill -s TERM "$gateway" || :
    fi
} 2>/dev/null

# The kernel keeps signals from a first process that does not wait for them.
trap stop TERM INT QUIT
trap 'kong reload &' HUP

# Where the whole container is killed before, a gateway that was here begins anew.
"$@" &
gateway=$!
[ "$told" -eq 0 ] || kill -s TERM "$gateway"

# A signal ends a wait, too.
status=0
wait "$gateway" || status=$?
while kill -0 "$gateway" 2>/dev/null; do
    status=0
    wait "$gateway" || status=$?
done
exit "$status"
