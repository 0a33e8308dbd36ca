#!/bin/sh
# Drives BIND on the libuv under test: `named.sh CHECK PORT`, in an empty directory.
#
# named serves a zone of its own on loopback; its control channel is TCP as well.
set -eu
check=$1
port=$2
control=$((port + 1))

cat >zone <<ZONE
\$TTL 60
@ IN SOA ns.blacklight.test. root.blacklight.test. 1 60 60 60 60
@ IN NS ns.blacklight.test.
ns IN A 127.0.0.1
lamp IN A 10.20.30.40
lamp IN AAAA fd00::1
ZONE
# An answer of many kilobytes, which UDP cannot carry.
i=0
while [ $i -lt 90 ]; do
    echo "large IN TXT \"record number $i of an answer that is too long for a datagram\"" >>zone
    i=$((i + 1))
done
cat >key <<KEY
key "k" { algorithm hmac-sha256; secret "YmxhY2tsaWdodCBibGFja2xpZ2h0IGJsYWNr"; };
KEY
cat >named.conf <<CONF
include "$PWD/key";
options {
    directory "$PWD"; pid-file "$PWD/named.pid"; session-keyfile "$PWD/session.key";
    listen-on port $port { 127.0.0.1; }; listen-on-v6 { none; };
    recursion no; dnssec-validation no; allow-transfer { any; };
};
controls { inet 127.0.0.1 port $control allow { 127.0.0.1; } keys { "k"; }; };
zone "blacklight.test" { type primary; file "$PWD/zone"; };
CONF
cat >rndc.conf <<CONF
include "$PWD/key";
options { default-key "k"; default-server 127.0.0.1; default-port $control; };
CONF

named -g -n 2 -c "$PWD/named.conf" >named.log 2>&1 &
named=$!
trap 'kill $named 2>/dev/null || true; wait $named 2>/dev/null || true' EXIT
ask() { dig @127.0.0.1 -p "$port" +tries=1 +time=10 "$@"; }
expect() {
    if [ "$1" != "$2" ]; then
        echo "$check: '$1' instead of '$2'" >&2
        tail -n 30 named.log >&2
        exit 1
    fi
}

tries=0
until grep -q ' running$' named.log; do
    tries=$((tries + 1))
    [ $tries -lt 300 ] && kill -0 $named || expect "named does not start" "running"
    sleep 0.1
done

case $check in
udp)
    expect "$(ask +short lamp.blacklight.test A)" 10.20.30.40
    expect "$(ask +short lamp.blacklight.test AAAA)" fd00::1
    expect "$(ask none.blacklight.test | grep -c NXDOMAIN)" 1
    n=0
    while [ $n -lt 30 ]; do
        expect "$(ask +short lamp.blacklight.test A)" 10.20.30.40
        n=$((n + 1))
    done
    ;;
tcp)
    expect "$(ask +tcp +short lamp.blacklight.test A)" 10.20.30.40
    expect "$(ask +tcp +keepopen +short lamp.blacklight.test A lamp.blacklight.test AAAA | tr '\n' ' ')" '10.20.30.40 fd00::1 '
    ;;
truncated)
    expect "$(ask +short large.blacklight.test TXT | wc -l)" 90
    ;;
transfer)
    expect "$(ask +short blacklight.test AXFR | grep -c 'record number')" 90
    ;;
control)
    expect "$(rndc -c rndc.conf status | grep -c 'server is up and running')" 1
    sed -i 's/10.20.30.40/10.20.30.41/; s/ 1 60 60 60 60/ 2 60 60 60 60/' zone
    rndc -c rndc.conf reload blacklight.test >/dev/null
    n=0
    while [ "$(ask +short lamp.blacklight.test A)" != 10.20.30.41 ] && [ $n -lt 50 ]; do
        n=$((n + 1))
        sleep 0.1
    done
    expect "$(ask +short lamp.blacklight.test A)" 10.20.30.41
    ;;
esac

rndc -c rndc.conf stop >/dev/null
status=0
wait $named || status=$?
trap - EXIT
expect "exit $status" "exit 0"
