# SPDX-License-Identifier: Apache-2.0
# The checks of the tree itself, which are part of make check.
EXTRA_DIST += \
	.ci/run \
	build-aux/check-ci \
	build-aux/check-docs \
	build-aux/check-examples \
	build-aux/check-exports \
	build-aux/check-faults \
	build-aux/check-texts \
	build-aux/check-words \
	build-aux/words \
	build-aux/check-layers \
	build-aux/check-probes \
	build-aux/check-pthread \
	build-aux/design-rules \
	doc/DESIGN.md \
	doc/FAULTS.md \
	doc/MIGRATING.md \
	doc/PERFORMANCE.md \
	doc/OBSERVABILITY.md \
	doc/design/README.md \
	doc/design/client.md \
	doc/design/crash-guard.md \
	doc/design/guarantees.md \
	doc/design/hand-off.md \
	doc/design/processes.md \
	doc/design/protocol.md \
	doc/design/retention.md \
	doc/design/robust.md \
	doc/design/rwlock.md \
	doc/design/scripts.md \
	doc/design/topology.md \
	doc/design/times.md \
	doc/model/README.md \
	doc/model/check \
	doc/model/exclusive.pml \
	doc/model/guard.pml \
	doc/model/handoff.pml \
	doc/model/joining.pml \
	doc/model/marks.pml \
	doc/model/process.pml \
	doc/model/rwlock.pml \
	doc/model/share.pml \
	doc/model/state.pml \
	doc/model/tokens.pml \
	scripts/abi \
	scripts/build-parts \
	scripts/check \
	scripts/common.sh \
	scripts/consumers \
	scripts/demo \
	scripts/matrix \
	scripts/parts.sh \
	scripts/redisson \
	scripts/soak \
	scripts/tsan.supp \
	scripts/valgrind.supp \
	tests/consumer/CMakeLists.txt \
	tests/consumer/consumer.c \
	tests/redisson/ClusterLocks.java \
	tests/redisson/Holders.java \
	tests/redisson/cluster_locks.c \
	tests/redisson/holders.c

check-local: check-layers check-programs check-exports check-probes check-docs check-pthread check-examples

check-layers: librlk.la
	$(AM_V_GEN)$(srcdir)/build-aux/check-layers $(srcdir) $(abs_builddir)

check-programs:
	$(AM_V_GEN)$(srcdir)/build-aux/test-programs check

# Only a shared library has a table of exports.
check-exports: librlock.la
	$(AM_V_GEN)test ! -f .libs/librlock.so || \
	  NM='$(NM)' $(srcdir)/build-aux/check-exports .libs/librlock.so $(srcdir)

# Likewise.
check-probes: librlock.la
	$(AM_V_GEN)test ! -f .libs/librlock.so || \
	  $(srcdir)/build-aux/check-probes .libs/librlock.so $(srcdir)

check-docs:
	$(AM_V_GEN)CC='$(CC)' $(srcdir)/build-aux/check-docs $(srcdir)

check-pthread:
	$(AM_V_GEN)CC='$(CC)' $(srcdir)/build-aux/check-pthread $(srcdir)

check-examples: examples/01_hello examples/02_flash_sale
	$(AM_V_GEN)$(srcdir)/build-aux/check-examples $(srcdir)

.PHONY: check-layers check-programs check-exports check-probes check-docs check-pthread check-examples
