# SPDX-License-Identifier: Apache-2.0
# Surprises of other software; no check runs them.
EXTRA_DIST += \
	findings/README.md \
	findings/common.sh \
	findings/sherlock-expire.sh \
	findings/redis-py-lost-reply.sh \
	findings/redislock-token-prefix.sh \
	findings/pottery-try-forgets-hold.sh \
	findings/python-redis-lock-takes-and-raises.sh \
	findings/python-redis-lock-waits-for-the-free.sh \
	findings/fakeredis-get-is-a-status.sh \
	findings/glibc-ppoll-time64-fortify.sh \
	findings/sentinel-master-is-the-old-one.sh \
	findings/redis-wait-is-late.sh \
	findings/valkey-wait-is-of-the-connection.sh \
	findings/valkey-buffer-limit-is-late.sh \
	findings/portalocker-lock-comes-back.sh
