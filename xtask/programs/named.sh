#!/bin/sh
# Becomes BIND with a zone of its own, on port 8000 of loopback: `named.sh`, in an empty directory.
set -eu
cat >zone <<ZONE
\$TTL 60
@ IN SOA ns.blacklight.test. root.blacklight.test. 1 60 60 60 60
@ IN NS ns.blacklight.test.
ns IN AAAA ::1
lamp IN A 10.20.30.40
lamp IN AAAA fd00::1
ZONE
cat >named.conf <<CONF
options {
    directory "$PWD"; pid-file "$PWD/named.pid"; session-keyfile "$PWD/session.key";
    listen-on { none; }; listen-on-v6 port 8000 { ::1; };
    recursion no; dnssec-validation no;
};
controls { };
zone "blacklight.test" { type primary; file "$PWD/zone"; };
CONF
exec /usr/sbin/named -g -c "$PWD/named.conf"
